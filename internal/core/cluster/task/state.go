package task

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/words"
)

// Bounds of the schema.
const (
	longestMessage = 2048
	longestResult  = 1024
)

// state is a task as it stands now: with the status that it is to have.
type state struct {
	task   *v1alpha1.CassandraTask
	status v1alpha1.CassandraTaskStatus
	// backup is the one that the task stands for; nil for a task. Uploaded is what nodes of it have
	// put into its store.
	backup   *v1alpha1.CassandraBackup
	uploaded map[string]v1alpha1.Uploaded
	// cluster of a backup whose turn it has just become; nil for others.
	cluster *v1alpha1.CassandraCluster
	// restore is the one that the task stands for; nil for a task and for a backup. Replaced is
	// what its tables had before.
	restore  *v1alpha1.CassandraRestore
	replaced *v1alpha1.ReplacedRows
	// storeIn is how long it waits for its store yet.
	storeIn time.Duration
	// taken is what the snapshots of a backup are of; nil before they are taken.
	taken *snapshotted
	// full says that a node of a backup has failed since its volume is full, needed that one has
	// lost its snapshot which the backup cannot do without.
	full, needed bool
	// step that is open or suspended for it, or that would be.
	step *ledger.Step
	// open, suspended: the step is. turn: no other task is in the way.
	open, suspended, turn bool
}

// states of all tasks, restores and backups that are not being deleted, each in their order.
func states(v *assess.View) []*state {
	return assess.Once(v, "tasks", func() []*state { return readAll(v) })
}

func readAll(v *assess.View) []*state {
	var all []*state
	for _, t := range v.Tasks {
		if t.DeletionTimestamp == nil {
			all = append(all, &state{task: t, status: *t.Status.DeepCopy()})
		}
	}
	for _, b := range v.Backups {
		if b.DeletionTimestamp == nil {
			all = append(all, stateOfBackup(b))
		}
	}
	for _, r := range v.Restores {
		// one whose backup is still to be taken is no task yet
		if _, backup := r.From(v.Cluster.UID); r.DeletionTimestamp == nil && backup != "" {
			all = append(all, stateOfRestore(r))
		}
	}
	// of tasks and restores, and of backups, one goes after the other
	before := map[bool]string{}
	for _, s := range slices.Concat(v.Ledger.Open(), v.Ledger.Suspended) {
		if slices.Contains(Kinds(), s.Kind) && !slices.ContainsFunc(all, func(t *state) bool { return t.is(s.ID) }) {
			before[s.Kind == ledger.Backup] = "a task that was deleted"
		}
	}
	for _, s := range all { // also after one that was created later, whose step is open
		if !s.status.Finished() && before[s.backup != nil] == "" && v.Ledger.StepByID(string(s.task.UID)) != nil {
			before[s.backup != nil] = "task " + s.task.Name
		}
	}
	for _, s := range all {
		if !s.status.Finished() {
			s.read(v, before[s.backup != nil])
		}
		if !s.status.Finished() {
			before[s.backup != nil] = cmp.Or(before[s.backup != nil], "task "+s.task.Name)
		}
	}
	return all
}

func (s *state) is(uid string) bool { return string(s.task.UID) == uid }

func stateOf(v *assess.View, uid string) *state {
	for _, s := range states(v) {
		if s.is(uid) {
			return s
		}
	}
	return nil
}

// atTurn is the task, or the backup, whose turn it is, and for which no step is open; nil if there
// is none.
func atTurn(v *assess.View, backups bool) *state {
	for _, s := range states(v) {
		if (s.backup != nil) == backups && s.turn && !s.open && !s.status.Finished() {
			return s
		}
	}
	return nil
}

// read works out the status: what of the nodes is over is taken from their records, once.
func (s *state) read(v *assess.View, before string) {
	out := &s.status
	out.ObservedGeneration, out.Phase = s.task.Generation, cmp.Or(out.Phase, v1alpha1.TaskPending)
	s.step = v.Ledger.StepByID(string(s.task.UID))
	s.open = s.step != nil
	s.suspended = s.open && !slices.Contains(v.Ledger.Open(), s.step)
	s.turn = s.open || before == "" && v.HasRing()
	switch {
	case !s.turn && before != "":
		s.wait("waits until %s has finished", before)
		return
	case !s.turn:
		s.wait("waits until the ring is formed")
		return
	case out.StartedAt == nil:
		s.cluster = v.Cluster
		now := metav1.NewTime(v.Now).Rfc3339Copy()
		out.StartedAt = &now
	}
	if name := s.store(); name != "" && v.Stores[name] == nil {
		s.withoutStore(v)
		return
	}
	if len(out.Nodes) == 0 || s.snapshots() {
		out.Nodes = nil // a backup that takes its snapshots yet is of those who are members then
		names, wrong := selected(v, &s.task.Spec)
		if s.open {
			names, wrong = s.step.Nodes, ""
		}
		if wrong != "" {
			s.finish(v, v1alpha1.ReasonTaskInvalidTarget, wrong)
			return
		}
		for _, name := range names {
			out.Nodes = append(out.Nodes, v1alpha1.TaskNode{Node: name, Phase: v1alpha1.TaskPending})
		}
	}
	if !s.open {
		s.step = &ledger.Step{ID: string(s.task.UID), Attempts: map[string]int{}}
		for _, n := range out.Nodes {
			s.step.Nodes = append(s.step.Nodes, n.Node)
			if n.Attempts > 1 {
				s.step.Attempts[n.Node] = int(n.Attempts) - 1
			}
		}
	}
	s.leaveOutBefore(v)
	for i := range out.Nodes {
		s.readNode(v, &out.Nodes[i])
	}
	s.leaveOutGone(v)
	s.leaveOutLost(v)
	s.count(v)
	s.readReplaced(v)
}

// readNode takes over what a node says.
func (s *state) readNode(v *assess.View, out *v1alpha1.TaskNode) {
	if out.Phase.Final() {
		return
	}
	n := v.Live(out.Node)
	switch {
	case s.taken == nil && s.store() != "" && v.Ledger.Members[out.Node] == "":
		s.fail(v, out, "it is no member any more")
		return
	case n == nil:
		s.pending(v, out, "its record is recreated", false)
		return
	case s.restarts():
		s.readRestart(v, n, out)
		return
	case s.task.Spec.Type == v1alpha1.TaskReplace, s.task.Spec.Type == v1alpha1.TaskRemove:
		s.readReplace(v, out)
		return
	}
	id := s.step.AttemptID(purpose, out.Node)
	switch {
	case s.snapshots():
		id = s.step.AttemptID(taking, out.Node)
	case s.prepares() != "":
		id = s.step.AttemptID(s.prepares(), out.Node)
	}
	o := n.Record.Status.Operation(id)
	if why := guard.VolumeFull(n); why != "" && s.keepsSnapshots() &&
		(o == nil || o.Phase != v1alpha1.OperationSucceeded || s.snapshots()) {
		s.full = true
		s.fail(v, out, why+"; its snapshot is cleared")
		return
	}
	if s.snapshots() && o != nil {
		s.pending(v, out, "snapshot: "+cmp.Or(o.Message, string(o.Phase)), !o.Phase.Final() && !procedure.AgentGone(n))
		return
	}
	if o == nil || o.Phase == v1alpha1.OperationWithdrawn {
		may := o == nil && n.Record.Spec.Operation(id) != nil && n.CurrentAgent() != nil
		why := ""
		if len(v.UpAmong([]string{out.Node})) == 0 {
			why = "it is down: " + assess.WhyDown(n)
		}
		s.pending(v, out, why, may)
		return
	}
	if out.Operation != id {
		out.Operation = id
		out.Attempts++
	}
	if out.StartedAt == nil {
		out.StartedAt = o.StartedAt
	}
	out.Phase = v1alpha1.TaskRunning
	why := cmp.Or(o.Message, string(o.Phase))
	switch {
	case o.Phase == v1alpha1.OperationSucceeded && s.prepares() != "":
		s.pending(v, out, why, false)
	case o.Phase == v1alpha1.OperationSucceeded:
		out.Phase, out.FinishedAt = v1alpha1.TaskSucceeded, o.FinishedAt
		out.Message = words.Shorten(o.Message, longestResult)
		if o.Uploaded != nil {
			s.uploaded[out.Node] = *o.Uploaded
		}
	case o.Phase == v1alpha1.OperationRunning:
		s.pending(v, out, why, !procedure.AgentGone(n))
	case out.Attempts >= s.task.Spec.MaxAttempts:
		out.Phase, out.FinishedAt = v1alpha1.TaskFailed, o.FinishedAt
		out.Message = words.Shorten(why, longestResult)
	default:
		s.pending(v, out, fmt.Sprintf("attempt %d of %d: %s", out.Attempts, s.task.Spec.MaxAttempts, why), false)
	}
}

// pending says what a node waits for. When the deadline is over it has failed, unless it may still
// go on by itself.
func (s *state) pending(v *assess.View, out *v1alpha1.TaskNode, why string, may bool) {
	if s.expired(v) && !may {
		s.fail(v, out, fmt.Sprintf("it has not ended before the deadline: %s", cmp.Or(why, "it has not begun")))
		return
	}
	out.Message = words.Shorten(why, longestResult)
}

func (s *state) fail(v *assess.View, out *v1alpha1.TaskNode, why string) {
	now := metav1.NewTime(v.Now).Rfc3339Copy()
	out.Phase, out.FinishedAt, out.Message = v1alpha1.TaskFailed, &now, words.Shorten(why, longestResult)
}

// count sums up what the nodes say.
func (s *state) count(v *assess.View) {
	out := &s.status
	out.Total, out.Succeeded, out.Failed = int32(len(out.Nodes)), 0, 0 //nolint:gosec // bounded by the schema
	var failed, running, waiting []string
	for _, n := range out.Nodes {
		said := n.Node
		if n.Message != "" {
			said += ": " + n.Message
		}
		switch n.Phase {
		case v1alpha1.TaskSucceeded:
			out.Succeeded++
		case v1alpha1.TaskFailed:
			out.Failed++
			failed = append(failed, said)
		case v1alpha1.TaskRunning:
			running = append(running, said)
		default:
			if n.Message != "" {
				waiting = append(waiting, said)
			}
		}
	}
	out.Progress = fmt.Sprintf("%d/%d", out.Succeeded+out.Failed, out.Total)
	leftOut := int32(len(s.leftOut())) //nolint:gosec // bounded by the schema
	over := out.Succeeded+out.Failed+leftOut == out.Total
	switch {
	case out.Failed > 0 && s.prepares() != "":
		s.failedBefore(v, failed)
	case s.uploadsEnd():
		s.awaitDescription(v)
	case out.Succeeded == out.Total:
		done := "done on " + words.Plural(int(out.Total), "node")
		if s.restore != nil {
			done += restore.Without(out.Nodes[0].Message) // all say the same
		}
		s.finish(v, v1alpha1.ReasonTaskSucceeded, done)
	// nothing is uploaded yet, and the snapshots may be taken again; or it cannot become complete
	case s.full && s.snapshots(), s.needed:
		s.finish(v, v1alpha1.ReasonTaskNodesFailed, "failed on "+words.List(failed, 3))
	case over && s.expired(v):
		s.finish(v, v1alpha1.ReasonTaskDeadlineExceeded, "failed on "+words.List(failed, 3))
	case over:
		s.finish(v, v1alpha1.ReasonTaskNodesFailed, "failed on "+words.List(failed, 3))
	case s.restarts() && len(running) > 0:
		out.Phase = v1alpha1.TaskRunning
		s.reconciling(v1alpha1.ReasonTaskRunning, words.List(running, 3))
	case !s.open: // what it waits for is said by Explain
	case s.suspended:
		out.Phase = v1alpha1.TaskRunning
		s.wait("suspended until what goes first is over")
	case s.awaits(v) != "":
		out.Phase = v1alpha1.TaskRunning
		s.wait("%s", s.awaits(v))
	default:
		out.Phase = v1alpha1.TaskRunning
		s.reconciling(v1alpha1.ReasonTaskRunning, cmp.Or(words.List(append(running, waiting...), 3), "nodes are asked"))
	}
}

// deadline of a task whose turn it is, or was.
func (s *state) deadline() metav1.Time {
	length, from := 24*time.Hour, s.status.StartedAt
	if s.replaced != nil { // a user may have been waited for
		from = &s.replaced.KeptAt
	}
	if s.task.Spec.Deadline != nil {
		length = s.task.Spec.Deadline.Duration
	}
	return metav1.NewTime(from.Add(length))
}

func (s *state) expired(v *assess.View) bool {
	return s.status.StartedAt != nil && !v.Now.Before(s.deadline().Time)
}

func (s *state) wait(format string, args ...any) {
	s.reconciling(v1alpha1.ReasonWaiting, fmt.Sprintf(format, args...))
}

func (s *state) reconciling(reason, message string) {
	s.status.Message = words.Shorten(message, longestMessage)
	s.condition(v1alpha1.ConditionReconciling, reason, s.status.StartedAt)
}

// finish says how it ended.
func (s *state) finish(v *assess.View, reason, message string) {
	now := metav1.NewTime(v.Now).Rfc3339Copy()
	out := &s.status
	message = words.Shorten(message, longestMessage-longestResult) + s.kept()
	out.Phase, out.FinishedAt, out.Message = v1alpha1.TaskFailed, &now, words.Shorten(message, longestMessage)
	meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionReconciling)
	if reason == v1alpha1.ReasonTaskSucceeded {
		out.Phase = v1alpha1.TaskSucceeded
		s.condition(v1alpha1.ConditionComplete, reason, &now)
		return
	}
	s.condition(v1alpha1.ConditionFailed, reason, &now)
	s.condition(v1alpha1.ConditionStalled, reason, &now) // kstatus takes it for the failure
}

func (s *state) condition(kind, reason string, since *metav1.Time) {
	at := s.task.CreationTimestamp
	if since != nil {
		at = *since
	}
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
		Reason: reason, Message: s.status.Message, ObservedGeneration: s.task.Generation, LastTransitionTime: at})
}
