package task

import (
	"slices"

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

const (
	// attemptsOfRestore of a node: each goes on where the one before ended.
	attemptsOfRestore = 5
	downloading       = "download"
)

// stateOfRestore is a restore as the task that it is.
func stateOfRestore(r *v1alpha1.CassandraRestore) *state {
	return &state{restore: r, status: *r.Status.DeepCopy(), task: &v1alpha1.CassandraTask{ObjectMeta: r.ObjectMeta,
		Spec: v1alpha1.CassandraTaskSpec{Cluster: r.Spec.Cluster, TaskTemplate: v1alpha1.TaskTemplate{
			Type: restoreTables, Concurrency: v1alpha1.MaxTaskNodes, MaxAttempts: attemptsOfRestore,
			Deadline: r.Spec.Deadline}},
		Status: *r.Status.DeepCopy()}}
}

// downloads says that the nodes download yet what they are to load: nobody reads it.
func (s *state) downloads() bool {
	return s.restore != nil && s.open && s.step.Stage == ledger.StageDownload
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
// had, or held, is known before a row has come back.
func download(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	if t.status.Finished() {
		return plan.Waiting("restore %s: %s", t.task.Name, t.status.Message)
	}
	p := s.Run(t.restores(v, downloading, v1alpha1.OperationStageTables), s.Nodes())
	s.Describe(len(p.Finished), "restore %s: %s", t.task.Name, t.status.Message)
	if len(p.Finished) < len(s.Nodes()) {
		return p.Result("restore %s: %s", t.task.Name, words.List(p.Waiting, 3))
	}
	s.Advance(false, "every node has what it loads", ledger.StageOperations)
	return plan.Acting("restore %s: every node has what it loads", t.task.Name)
}

// restores is an operation of the restore.
func (s *state) restores(v *assess.View, purpose string, of v1alpha1.OperationType) procedure.Operation {
	begun, _ := ledger.StateOf[snapshotted](s.step)
	a := &v1alpha1.RestoreArguments{Tag: begun.Tag, Cluster: v.Cluster.UID, Backup: s.restore.Spec.Backup,
		Tables: s.restore.Spec.Tables, Members: begun.Members}
	if from := s.restore.Spec.Source; from != nil {
		a.Cluster = from.UID
	}
	if from := v.Stores[s.store()]; from != nil {
		a.Store = *from
	}
	o := before(purpose, of, &v1alpha1.OperationArguments{Restore: a})
	notAfter := s.deadline()
	o.NotAfter = &notAfter
	return o
}

// failedDownload ends a restore of which a node cannot download its part.
func (s *state) failedDownload(v *assess.View, failed []string) {
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
