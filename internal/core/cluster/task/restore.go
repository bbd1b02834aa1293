package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// restoreTables is the type of the task that a CassandraRestore is: nobody creates a CassandraTask
// of it.
const restoreTables v1alpha1.TaskType = "RestoreTables"

// attemptsOfRestore of a node: each continues where the one before ended.
const attemptsOfRestore = 5

// replaced begins the tags of what was replaced.
const replaced = "replaced"

// preparing are the purposes of the stages before rows are loaded: what nodes do in them is no
// result yet.
var preparing = map[ledger.Stage]string{ledger.StageDownload: "download", ledger.StageConfirm: "check",
	ledger.StageSnapshot: "keep", ledger.StageTruncate: "truncate"}

// stateOfRestore is a restore as the task that it is.
func stateOfRestore(r *v1alpha1.CassandraRestore) *state {
	have := r.Status.DeepCopy()
	attempts := int32(attemptsOfRestore)
	if r.Spec.Mode == v1alpha1.RestoreReplace {
		attempts += int32(len(preparing)) - 1 //nolint:gosec // a few: each stage is attempted
	}
	return &state{restore: r, status: have.CassandraTaskStatus, replaced: have.Replaced,
		task: &v1alpha1.CassandraTask{ObjectMeta: r.ObjectMeta,
			Spec: v1alpha1.CassandraTaskSpec{Cluster: r.Spec.Cluster, TaskTemplate: v1alpha1.TaskTemplate{
				Type: restoreTables, Concurrency: v1alpha1.MaxTaskNodes, MaxAttempts: attempts,
				Deadline: r.Spec.Deadline}},
			Status: r.Status.DeepCopy().CassandraTaskStatus}}
}

// prepares is the purpose of what nodes do before they load; empty from then on, and for others.
func (s *state) prepares() string {
	if s.restore == nil || !s.open {
		return ""
	}
	return preparing[s.step.Stage]
}

// begins is the state of the step of a restore: who shares its work, whatever becomes of them.
func (s *state) begins(v *assess.View) snapshotted {
	out := snapshotted{Tag: v1alpha1.RestoreTagPrefix + string(s.restore.UID)}
	for _, name := range s.step.Nodes {
		out.Members = append(out.Members, v.Ledger.Members[name])
	}
	slices.Sort(out.Members)
	return out
}

// download has all members download what they are to load, before any loads it: so what cannot be
// had, or held, is known before a row has come back. Where rows are replaced, and a user was waited
// for since, all look once more.
func download(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	confirms, replaces := s.Stage() == ledger.StageConfirm, t.restore.Spec.Mode == v1alpha1.RestoreReplace
	if t.status.Finished() || confirms && !t.restore.Spec.Confirm {
		s.Describe(0, "restore %s: %s", t.task.Name, t.status.Message)
		return plan.Waiting("restore %s: %s", t.task.Name, t.status.Message)
	}
	o := t.restores(v, t.prepares(), v1alpha1.OperationStageTables)
	o.Arguments.Restore.Replace = replaces
	p := s.Run(o, s.Nodes())
	s.Describe(len(p.Finished), "restore %s: %s", t.task.Name, t.status.Message)
	if len(p.Finished) < len(s.Nodes()) {
		return p.Result("restore %s: %s", t.task.Name, words.List(p.Waiting, 3))
	}
	next := ledger.StageOperations
	switch {
	case !replaces:
	case !t.restore.Spec.Confirm:
		next = ledger.StageConfirm
	default:
		next = ledger.StageSnapshot
	}
	s.Advance(next != ledger.StageOperations, "every node has what it loads", next)
	return plan.Acting("restore %s: every node has what it loads", t.task.Name)
}

// keep has every member take a snapshot of the tables that are to be truncated: those that have
// joined since, too. None is taken again once the status says that all have one.
func keep(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	members := v.Members()
	switch {
	case t.restore.Status.Replaced != nil:
		s.Advance(true, "every member keeps what the tables have", ledger.StageTruncate)
		return plan.Acting("restore %s: every member keeps what the tables have", t.task.Name)
	case !t.status.Finished() && !slices.Equal(members, s.Nodes()):
		s.Write(true, "every member keeps what the tables have", func(_ *ledger.Ring, own *ledger.Step) {
			own.Nodes = members
		})
	case !t.status.Finished():
		a := t.targets()
		a.Tag = tagOf(replaced, t.task)
		p := s.Run(t.onTables(v1alpha1.OperationSnapshot, a), members)
		s.Describe(len(p.Finished), "restore %s: %s", t.task.Name, t.status.Message)
	}
	s.WakeIn(lookAgain) // what the status says counts when it is written
	return plan.Waiting("restore %s: %s", t.task.Name, t.status.Message)
}

// truncateTimeout is how long Cassandra delivers a request to truncate (truncate_request_timeout):
// one that was cut off begins no more afterwards.
const truncateTimeout = time.Minute

// empty has one node truncate the tables, always the same one: no other does so when this one has
// long been done. It is not asked again once the status says that they are empty, and no row comes
// back before.
func empty(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	first, kept := t.status.Nodes[0].Node, t.restore.Status.Replaced
	switch {
	case kept != nil && kept.TruncatedAt != nil:
		left := kept.TruncatedAt.Add(truncateTimeout).Sub(v.Now)
		if s.Attempts(first) == 0 || left <= 0 {
			s.Advance(true, "the tables are empty", ledger.StageOperations)
			return plan.Acting("restore %s: the tables are empty", t.task.Name)
		}
		s.WakeIn(left)
	case kept != nil && !t.status.Finished() && len(repairs(v)) == 0:
		p := s.Run(t.onTables(v1alpha1.OperationTruncate, t.targets()), []string{first})
		s.Describe(0, "restore %s: %s", t.task.Name, words.List(p.Waiting, 1))
	}
	s.WakeIn(lookAgain)
	return plan.Waiting("restore %s: %s", t.task.Name, t.status.Message)
}

// repairs are the open steps that may stream rows to a node that has truncated already.
func repairs(v *assess.View) (kinds []ledger.Kind) {
	for _, s := range v.Ledger.Maintenance {
		if s.Kind == ledger.Repair || s.Kind == ledger.RepairTables {
			kinds = append(kinds, s.Kind)
		}
	}
	return kinds
}

// targets are the tables that get rows: of one keyspace, if they are replaced.
func (s *state) targets() *v1alpha1.OperationArguments {
	a := &v1alpha1.OperationArguments{}
	for _, wanted := range s.restore.Spec.Tables {
		keyspace, table, _ := strings.Cut(wanted.Target(), ".")
		a.Keyspaces, a.Tables = []string{keyspace}, append(a.Tables, table)
	}
	return a
}

// onTables is an operation of the present stage.
func (s *state) onTables(of v1alpha1.OperationType, a *v1alpha1.OperationArguments) procedure.Operation {
	o := before(s.prepares(), of, a)
	notAfter := s.deadline()
	o.NotAfter = &notAfter
	return o
}

// readReplaced takes over that all members keep what the tables had, and that these are empty.
func (s *state) readReplaced(v *assess.View) {
	did := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			n := v.Live(name)
			if n == nil {
				return true
			}
			o := n.Record.Status.Operation(s.step.AttemptID(s.prepares(), name))
			return o == nil || o.Phase != v1alpha1.OperationSucceeded
		})
	}
	now := metav1.NewTime(v.Now).Rfc3339Copy()
	switch kept := s.replaced; {
	case s.prepares() == "" || s.status.Failed > 0:
	case s.step.Stage == ledger.StageSnapshot && kept == nil && did(v.Members()...):
		s.replaced = &v1alpha1.ReplacedRows{Snapshot: tagOf(replaced, s.task), KeptAt: now}
	case s.step.Stage == ledger.StageTruncate && kept != nil && kept.TruncatedAt == nil && did(s.status.Nodes[0].Node):
		kept.TruncatedAt = &now
	}
}

// awaits is what a restore that replaces rows waits for; empty if nodes work for it.
func (s *state) awaits(v *assess.View) string {
	switch s.prepares() {
	case preparing[ledger.StageConfirm]:
		if !s.restore.Spec.Confirm {
			return fmt.Sprintf("every node has what it loads, and nothing is touched; waits for spec.confirm: true: "+
				"then every node keeps a snapshot of %s, all rows are removed, and those of the backup come: "+
				`kubectl -n %s patch cassandrarestore %s --type merge -p '{"spec":{"confirm":true}}'`, s.tables(),
				s.task.Namespace, s.task.Name)
		}
	case preparing[ledger.StageTruncate]:
		up, down := v.UpAmong(v.Members()), slices.Clone(v.Members())
		down = slices.DeleteFunc(down, func(name string) bool { return slices.Contains(up, name) })
		switch others := repairs(v); {
		case len(down) > 0:
			return "TRUNCATE needs all members, and waits until these are up: " + words.List(down, 3)
		case len(others) > 0:
			return fmt.Sprintf("TRUNCATE waits until %s is over, which may stream rows that are to go", others[0])
		}
	}
	return ""
}

// tables that get rows, in words.
func (s *state) tables() string {
	var out []string
	for _, wanted := range s.restore.Spec.Tables {
		out = append(out, wanted.Target())
	}
	return words.List(out, len(out))
}

// kept says where the rows are that the tables had; empty if they have them.
func (s *state) kept() string {
	if s.replaced == nil && (s.prepares() == "" || s.step.Stage != ledger.StageSnapshot) {
		return ""
	}
	tag := tagOf(replaced, s.task)
	return fmt.Sprintf("; snapshot %s keeps what %s had, until kubectl helenus -n %s task %s clearsnapshot --tag %s "+
		"removes it", tag, s.tables(), s.task.Namespace, s.task.Spec.Cluster.Name, tag)
}

// restores is an operation of the restore.
func (s *state) restores(v *assess.View, purpose string, of v1alpha1.OperationType) procedure.Operation {
	begun, _ := ledger.StateOf[snapshotted](s.step)
	a := &v1alpha1.RestoreArguments{Tag: begun.Tag, Tables: s.restore.Spec.Tables,
		Keyspaces: s.restore.Spec.Keyspaces, Members: begun.Members}
	a.Cluster, a.Backup = s.restore.From(v.Cluster.UID)
	if from := v.Stores[s.store()]; from != nil {
		a.Store = *from
	}
	o := before(purpose, of, &v1alpha1.OperationArguments{Restore: a})
	notAfter := s.deadline()
	o.NotAfter = &notAfter
	return o
}

// failedBefore ends a restore of which a node cannot do its part before all load.
func (s *state) failedBefore(v *assess.View, failed []string) {
	if s.expired(v) && s.step.Stage == ledger.StageConfirm && !s.restore.Spec.Confirm {
		s.finish(v, v1alpha1.ReasonTaskDeadlineExceeded, "not confirmed before the deadline: nothing is touched")
		return
	}
	s.finish(v, v1alpha1.ReasonTaskNodesFailed, "no row has come back: failed on "+words.List(failed, 3))
}

// store is the one that a backup or a restore names; empty for a task.
func (s *state) store() string {
	switch {
	case s.backup != nil:
		return s.backup.Spec.Store.Name
	case s.restore != nil:
		return s.restore.Spec.Store.Name
	}
	return ""
}
