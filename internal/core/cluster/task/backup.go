package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// backup is the type of the task that a CassandraBackup is: nobody creates a CassandraTask of it.
const backup v1alpha1.TaskType = "Backup"

const (
	// attemptsOfUpload are many: each goes on where the one before ended.
	attemptsOfUpload = 10
	// clearGrace is how long nodes are waited for that drop their snapshots.
	clearGrace = 10 * time.Minute
	// lookAgain is when the members are looked at again for the schema that they have.
	lookAgain = 2 * time.Second
	// storeGrace is how long after the operator has seen a backup its store may be created: who
	// applies both does not order them.
	storeGrace = time.Minute
	// pastDeadline is how much longer than the backup its snapshots live, if nobody clears them.
	pastDeadline = time.Hour
)

// besideData are the keyspaces that are part of each backup.
var besideData = []string{"system_auth", "system_distributed", "system_schema", "system_traces"}

// stateOfBackup is a backup as the task that it is.
func stateOfBackup(b *v1alpha1.CassandraBackup) *state {
	have, deadline := b.Status.DeepCopy(), b.Spec.Deadline
	if deadline == nil {
		deadline = &metav1.Duration{Duration: 24 * time.Hour}
	}
	s := &state{backup: b, uploaded: map[string]v1alpha1.Uploaded{}, task: &v1alpha1.CassandraTask{
		ObjectMeta: b.ObjectMeta, Spec: v1alpha1.CassandraTaskSpec{Cluster: b.Spec.Cluster,
			TaskTemplate: v1alpha1.TaskTemplate{Type: backup, Concurrency: v1alpha1.MaxTaskNodes,
				MaxAttempts: attemptsOfUpload, Deadline: deadline}}}}
	s.status = v1alpha1.CassandraTaskStatus{ObservedGeneration: have.ObservedGeneration, Message: have.Message,
		Progress: have.Progress, StartedAt: have.StartedAt, FinishedAt: have.FinishedAt, Conditions: have.Conditions}
	switch have.Phase {
	case "", v1alpha1.BackupPending:
		s.status.Phase = v1alpha1.TaskPhase(have.Phase)
	case v1alpha1.BackupComplete:
		s.status.Phase = v1alpha1.TaskSucceeded
	case v1alpha1.BackupIncomplete, v1alpha1.BackupFailed:
		s.status.Phase = v1alpha1.TaskFailed
	default:
		s.status.Phase = v1alpha1.TaskRunning
	}
	for _, n := range have.Nodes {
		s.status.Nodes = append(s.status.Nodes, n.TaskNode)
		s.uploaded[n.Node] = n.Uploaded
		switch n.Phase {
		case v1alpha1.TaskSucceeded:
			s.status.Succeeded++
		case v1alpha1.TaskFailed:
			s.status.Failed++
		default:
		}
	}
	s.task.Status = *s.status.DeepCopy()
	return s
}

// ofBackup is the status of a backup by that of the task that it is.
func (s *state) ofBackup() v1alpha1.CassandraBackupStatus {
	of := &s.status
	out := v1alpha1.CassandraBackupStatus{ObservedGeneration: of.ObservedGeneration, Message: of.Message,
		Progress: of.Progress, StartedAt: of.StartedAt, FinishedAt: of.FinishedAt, Conditions: of.Conditions,
		Phase: s.phase(), Verified: s.backup.Status.Verified}
	if out.ClusterUID = s.backup.Status.ClusterUID; s.cluster != nil {
		out.ClusterUID = s.cluster.UID
	}
	if of.StartedAt != nil {
		out.ID = s.backup.BackupID()
	}
	var first, last *metav1.MicroTime
	for _, n := range of.Nodes {
		u := s.uploaded[n.Node]
		out.Nodes = append(out.Nodes, v1alpha1.BackupNode{TaskNode: n, Uploaded: u})
		out.Bytes, out.NewBytes = out.Bytes+u.Bytes, out.NewBytes+u.NewBytes
		if u.TakenAt != nil && (first == nil || u.TakenAt.Before(first)) {
			first = u.TakenAt
		}
		if u.TakenAt != nil && (last == nil || last.Before(u.TakenAt)) {
			last = u.TakenAt
		}
	}
	if out.Phase == v1alpha1.BackupComplete {
		out.Restorable = &v1alpha1.Restorable{SameShape: len(s.leftOut()) == 0, Ranges: "100%"}
	}
	if first != nil {
		out.TakenAt, out.Skew = first, &metav1.Duration{Duration: last.Sub(first.Time)}
	}
	return out
}

// withoutStore waits for the store for a moment, as long as nothing was asked of anybody.
func (s *state) withoutStore(v *assess.View) {
	s.turn = false
	why := "there is no CassandraBackupStore " + s.store()
	if s.storeIn = s.status.StartedAt.Add(storeGrace).Sub(v.Now); s.storeIn > 0 && !s.open {
		s.wait("%s", why)
		return
	}
	s.finish(v, v1alpha1.ReasonTaskInvalidTarget, why)
}

func (s *state) phase() v1alpha1.BackupPhase {
	switch phase := s.status.Phase; {
	case phase == v1alpha1.TaskSucceeded:
		return v1alpha1.BackupComplete
	case phase == v1alpha1.TaskFailed && s.status.Failed > 0 && s.status.Succeeded > 0:
		return v1alpha1.BackupIncomplete
	case phase == v1alpha1.TaskFailed:
		return v1alpha1.BackupFailed
	case !s.open:
		return cmp.Or(s.backup.Status.Phase, v1alpha1.BackupPending)
	case s.step.Stage == ledger.StageSnapshot:
		return v1alpha1.BackupSnapshotting
	case s.step.Stage == ledger.StageOperations:
		return v1alpha1.BackupUploading
	}
	return v1alpha1.BackupVerifying
}

// snapshots says that the backup takes its snapshots yet.
func (s *state) snapshots() bool {
	return s.backup != nil && s.open && s.step.Stage == ledger.StageSnapshot
}

// keepsSnapshots says that the nodes of the backup keep theirs until they are uploaded.
func (s *state) keepsSnapshots() bool {
	return s.snapshots() || s.backup != nil && s.open && s.step.Stage == ledger.StageOperations
}

// backupRefused is why no restore begins: rows are streamed to all members, and what moves from one
// to another might be lost.
func backupRefused(v *assess.View, rules guard.Rules) []guard.Refusal {
	return guard.Check(procedure.MemberNodes(v), rules.Backup...)
}

// snapshotsRefused is why no backup begins: what a member that is down has would be missing, unless
// it can be left out; what moves between two snapshots might be in neither; and a snapshot might
// fill a volume.
func (s *state) snapshotsRefused(v *assess.View, rules guard.Rules) []guard.Refusal {
	without, needs := s.leavesOut(v)
	about := procedure.TheseNodes(v, but(v.Members(), without)...)
	out := append(guard.Check(about, rules.Backup...), guard.Check(about, rules.Snapshots...)...)
	for i := range out {
		switch {
		case out[i].Reason != v1alpha1.BlockedMemberDown:
		case needs != nil:
			out[i].Message += "; it is not left out: " + needs.Error()
		default:
			out[i].Message += fmt.Sprintf("; it is left out once it is down for %s, if others have a quorum of "+
				"each range", procedure.DownTimeout)
		}
	}
	return out
}

// snapshotted is the state of the step of a backup, or of a restore.
type snapshotted struct {
	// Tag of its snapshots, or of what is downloaded: the step clears these when the backup, or the
	// restore, is deleted, too.
	Tag string `json:"tag"`
	// Schema is the version that all members had before the snapshots; empty before these.
	Schema string `json:"schema,omitempty"`
	// LeftOut are the nodes of the step that take no snapshot.
	LeftOut []string `json:"leftOut,omitempty"`
	// Members are the host ids of the nodes of the step: of a backup when the snapshots were taken,
	// in their order.
	Members []string `json:"members,omitempty"`
	// Lacking are nodes that had lost writes, and were not repaired before the snapshots.
	Lacking []string `json:"lacking,omitempty"`
	// Left is where in the ring nodes were that have left it since, or are about to.
	Left []v1alpha1.LeftOutNode `json:"left,omitempty"`
}

// left is a node that is left out: with its place in the ring, if it leaves that.
func (s *snapshotted) left(node, hostID string) v1alpha1.LeftOutNode {
	for _, n := range s.Left {
		if n.HostID == hostID {
			return n
		}
	}
	return v1alpha1.LeftOutNode{Node: node, HostID: hostID}
}

// takeSnapshots has all members take a snapshot at once that are not left out: again if another
// schema, or other ones of them, are there afterwards.
func takeSnapshots(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	o, state, members := t.snapshot(), procedure.State[snapshotted](s), v.Members()
	without, _ := t.leavesOut(v)
	taking, now := but(members, without), asNow(v)
	same := slices.Equal(members, s.Nodes()) && slices.Equal(without, state.LeftOut) &&
		slices.Equal(now.Members, state.Members) && slices.Equal(now.Lacking, state.Lacking)
	schema := oneSchema(v, s, o, taking)
	wait := func(why string) plan.Result {
		s.Describe(0, "backup %s: %s", t.task.Name, why)
		return plan.Waiting("backup %s: %s", t.task.Name, why)
	}
	if state.Schema != "" && same {
		if p := s.Run(o, taking); len(p.Finished) < len(taking) {
			s.Describe(len(p.Finished), "backup %s: %s", t.task.Name, words.List(p.Waiting, 3))
			return p.Result("backup %s: every member takes a snapshot", t.task.Name)
		}
	}
	switch {
	case schema == "":
		s.WakeIn(lookAgain)
		return wait("waits until all members have one schema")
	case state.Schema == schema && same:
		s.Advance(false, "every member has a snapshot", ledger.StageOperations)
		return plan.Acting("backup %s: every member has a snapshot", t.task.Name)
	}
	s.Write(true, "every member takes a snapshot", func(_ *ledger.Ring, own *ledger.Step) {
		now.Tag, now.Schema, now.LeftOut = t.tag(), schema, without
		own.Nodes, own.State = members, ledger.Encoded(now)
		attempts := map[string]int{}
		for _, name := range members {
			attempts[name] = own.Attempts[name]
			if state.Schema != "" {
				attempts[name]++
			}
		}
		own.Attempts = attempts
	})
	return plan.Acting("backup %s: the members are asked for snapshots", t.task.Name)
}

// oneSchema is the version of the schema that members have, as each has seen since it took its
// snapshot; empty if they have none in common, or one has not said.
func oneSchema(v *assess.View, s *procedure.Step, o procedure.Operation, members []string) string {
	out := ""
	for _, name := range members {
		n := v.Live(name)
		if n == nil || n.CurrentAgent() == nil || n.CurrentAgent().Ring == nil {
			return ""
		}
		agent, taken := n.CurrentAgent(), n.Record.Status.Operation(s.Attempt(o, name))
		if taken != nil && !slices.Contains(agent.Ended, taken.ID) ||
			out != "" && agent.Ring.SchemaVersion != out {
			return ""
		}
		out = agent.Ring.SchemaVersion
	}
	return out
}

// complete has a node write the description of the backup, which ends it: by Report.
func complete(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	keepPlaces(v, s)
	spec, err := json.Marshal(v.Cluster.Spec)
	if err != nil || len(spec) > v1alpha1.MaxClusterSpec {
		spec = nil
	}
	a := t.about(v)
	a.ClusterSpec = string(spec)
	for _, n := range t.status.Nodes {
		member := t.uploaded[n.Node].Member
		if n.Phase == v1alpha1.TaskLeftOut {
			member = t.hostID(v, n.Node)
			a.LeftOut = append(a.LeftOut, t.taken.left(n.Node, member))
		}
		if member != "" { // else nothing of it is in the store
			a.Members = append(a.Members, member)
		}
	}
	slices.Sort(a.Members)
	r, _ = s.RunOnOne(before(completing, v1alpha1.OperationCompleteBackup, &v1alpha1.OperationArguments{Backup: a}),
		s.Wave(), "describes the backup")
	return r
}

const (
	taking     = "snapshot"
	completing = "complete"
	clearing   = "clear"
	dropping   = "drop"
)

// meanwhile is what a step does although it is suspended.
func meanwhile(v *assess.View, s *procedure.Step) {
	keepPlaces(v, s)
	dropSnapshots(v, s)
}

// dropSnapshots has nodes drop their snapshots before the step is over, and end their uploads: of
// nodes that have failed or are left out, of those that are done once their volumes are full, and
// of all if the backup is over and its step is not continued. That a node has failed must be
// written first: no backup is described then that relies on what it still uploads.
func dropSnapshots(v *assess.View, s *procedure.Step) {
	t, tag := stateOf(v, s.ID()), procedure.State[snapshotted](s).Tag
	over := t == nil || t.task.Status.Finished()
	if tag == "" || !over && s.Stage() != ledger.StageOperations {
		return
	}
	o := before(dropping, v1alpha1.OperationClearSnapshot, &v1alpha1.OperationArguments{Tag: tag})
	for _, name := range v.UpAmong(s.Nodes()) {
		n := v.Live(name)
		if n == nil || !over && !t.needsNoSnapshot(n) {
			continue
		}
		asked := n.Record.Spec.Operation(s.Attempt(o, name)) != nil
		if asked || len(s.CancelOn([]string{name}, "its snapshot is cleared")) == 0 {
			s.Run(o, []string{name})
		}
	}
}

// needsNoSnapshot says that a node has failed or is left out, as it is written, or that it is done
// and its volume is full.
func (s *state) needsNoSnapshot(n *facts.Node) bool {
	return slices.ContainsFunc(s.task.Status.Nodes, func(of v1alpha1.TaskNode) bool {
		return of.Node == n.Name && (of.Phase == v1alpha1.TaskFailed || of.Phase == v1alpha1.TaskLeftOut ||
			of.Phase == v1alpha1.TaskSucceeded && !s.uploadsEnd() && guard.VolumeFull(n) != "")
	})
}

// clearSnapshots has the nodes that are up drop their snapshots, or what they have downloaded, for
// a while; snapshots of the others go by themselves. Then the step ends.
func clearSnapshots(v *assess.View, s *procedure.Step) plan.Result {
	tag, up := procedure.State[snapshotted](s).Tag, v.UpAmong(s.Nodes())
	if left := s.StageSince().Add(clearGrace).Sub(v.Now); left > 0 && tag != "" {
		p := s.Run(before(clearing, v1alpha1.OperationClearSnapshot, &v1alpha1.OperationArguments{Tag: tag}), up)
		s.Describe(len(p.Finished), "what was kept is cleared: %s", words.List(p.Waiting, 3))
		if len(p.Waiting) > 0 {
			s.WakeIn(left)
			return p.Result("clearing what was kept on %s", words.List(up, 3))
		}
		// An operator that has just started has heard of nobody yet.
		if len(up) < len(s.Nodes()) && (v.AnyRing() == nil || v.Now.Sub(s.StageSince()) < downGrace) {
			s.WakeIn(min(left, downGrace))
			return plan.Waiting("clearing what was kept: waiting a while for nodes that do not answer")
		}
	}
	if waiting := cancel(v, s, "it took too long"); len(waiting) > 0 {
		s.Describe(0, "waiting for %s", words.List(waiting, 3))
		return plan.Waiting("waiting for %s", words.List(waiting, 3))
	}
	if s.ClearOperations(s.Nodes()) {
		return plan.Acting("the operations are over")
	}
	switch t := stateOf(v, s.ID()); {
	case t == nil:
		s.Close(false, v1alpha1.StepWithdrawn, "it is deleted")
	case t.status.Phase == v1alpha1.TaskSucceeded:
		s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(s.Nodes()), "node"))
	default:
		s.Close(false, v1alpha1.StepWithdrawn, words.Shorten(t.task.Name+": "+t.status.Message, 512))
	}
	return plan.Nothing()
}

func (s *state) tag() string { return v1alpha1.BackupTagPrefix + s.backup.BackupID() }

// snapshot of what the backup is of. It outlives the backup if nobody clears it.
func (s *state) snapshot() procedure.Operation {
	a := &v1alpha1.OperationArguments{Tag: s.tag(), Keyspaces: s.keyspaces(),
		TTL: &metav1.Duration{Duration: s.task.Spec.Deadline.Duration + pastDeadline}}
	o := before(taking, v1alpha1.OperationSnapshot, a)
	notAfter := s.deadline()
	o.NotAfter = &notAfter
	return o
}

// keyspaces of a backup; none if it is of all.
func (s *state) keyspaces() []string {
	if len(s.backup.Spec.Keyspaces) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.backup.Spec.Keyspaces, besideData))))
}

// about are the arguments of what works with the store.
func (s *state) about(v *assess.View) *v1alpha1.BackupArguments {
	a := &v1alpha1.BackupArguments{ID: s.backup.BackupID(), ExcludeTables: s.backup.Spec.ExcludeTables}
	if to := v.Stores[s.store()]; to != nil {
		a.Store = *to
	}
	if l := s.backup.Spec.Limits; l != nil && l.BandwidthPerNode != nil {
		a.Bandwidth = l.BandwidthPerNode.Value()
	}
	return a
}

// awaitDescription: what every node has put into the store is a backup when it is described.
func (s *state) awaitDescription(v *assess.View) {
	why, runs := "nothing describes it yet", false
	for _, n := range v.Records() {
		o := n.Record.Status.Operation(s.step.AttemptID(completing, n.Name))
		switch {
		case o == nil:
		case o.Phase == v1alpha1.OperationSucceeded:
			done := "kept on " + words.Plural(int(s.status.Succeeded), "node")
			if of := s.leftOut(); len(of) > 0 {
				done += "; without " + words.List(of, 8) + ": others have a quorum of each range"
			}
			s.finish(v, v1alpha1.ReasonTaskSucceeded, done)
			return
		default:
			why, runs = n.Name+": "+cmp.Or(o.Message, string(o.Phase)), !o.Phase.Final() && !procedure.AgentGone(n)
		}
	}
	if s.expired(v) && !runs {
		s.finish(v, v1alpha1.ReasonTaskDeadlineExceeded, "not described before the deadline: "+why)
		return
	}
	s.status.Phase = v1alpha1.TaskRunning
	s.reconciling(v1alpha1.ReasonTaskRunning, why)
}
