package task

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// Report writes how far the tasks have come, and deletes those whose time is over. It comes before
// all that clears the records of the nodes: the status of a task is where their results are kept.
func Report(v *assess.View, d *plan.Draft) plan.Result {
	for _, s := range states(v) {
		was := s.task.Status
		put(d, s)
		kind := "Task"
		switch {
		case s.backup != nil:
			kind = "Backup"
		case s.restore != nil:
			kind = "Restore"
		}
		switch {
		case !was.Finished() && s.status.Phase == v1alpha1.TaskFailed:
			event(d, s, corev1.EventTypeWarning, kind+"Failed")
		case !was.Finished() && s.status.Phase == v1alpha1.TaskSucceeded:
			event(d, s, corev1.EventTypeNormal, kind+"Succeeded")
		case was.Phase != v1alpha1.TaskRunning && s.status.Phase == v1alpha1.TaskRunning:
			event(d, s, corev1.EventTypeNormal, kind+"Started")
		}
		switch ttl := s.task.Spec.TTLAfterFinished; {
		case !s.status.Finished() && s.storeIn > 0:
			d.WakeIn(min(s.storeIn, lookAgain))
		case !s.status.Finished() && s.status.StartedAt != nil:
			if left := s.deadline().Sub(v.Now); left > 0 {
				d.WakeIn(left)
			}
			if left := s.untilLost(v); left > 0 {
				d.WakeIn(left)
			}
		case was.Finished() && ttl != nil && was.FinishedAt != nil:
			left := was.FinishedAt.Add(ttl.Duration).Sub(v.Now)
			if left > 0 {
				d.WakeIn(left)
				break
			}
			d.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(s.task), UID: s.task.UID,
				Why: "spec.ttlAfterFinished is over"})
		}
	}
	return plan.Nothing()
}

func event(d *plan.Draft, s *state, kind, reason string) {
	d.Write(plan.Write{Verb: plan.Event, Object: s.object(), EventType: kind, Reason: reason, Why: s.status.Message})
}

// object is the one of the user.
func (s *state) object() plan.Object {
	switch {
	case s.backup != nil:
		return s.backup
	case s.restore != nil:
		return s.restore
	}
	return s.task
}

// put writes the status that a task is to have: once in a plan.
func put(d *plan.Draft, s *state) {
	object := plan.Named(s.object())
	same := false
	switch o := object.(type) {
	case *v1alpha1.CassandraBackup:
		o.Status = s.ofBackup()
		same = equality.Semantic.DeepEqual(o.Status, s.backup.Status)
	case *v1alpha1.CassandraRestore:
		o.Status = v1alpha1.CassandraRestoreStatus{CassandraTaskStatus: s.status, Replaced: s.replaced,
			Source: s.restore.Status.Source}
		same = equality.Semantic.DeepEqual(o.Status, s.restore.Status)
	case *v1alpha1.CassandraTask:
		o.Status = s.status
		same = equality.Semantic.DeepEqual(o.Status, s.task.Status)
	}
	for i := range d.Writes {
		if w := &d.Writes[i]; w.Verb == plan.ApplyStatus && w.UID == s.task.UID {
			w.Object = object
			return
		}
	}
	if same {
		return
	}
	d.Write(plan.Write{Verb: plan.ApplyStatus, Object: object, UID: s.task.UID,
		ResourceVersion: s.task.ResourceVersion, Why: s.status.Progress})
}

// Explain says of the task and of the backup whose turn it is what keeps it from beginning, by what
// the pass has come to at the entry by which tasks begin, or roll-outs.
func Explain(v *assess.View, d *plan.Draft, entry, rollOut string) {
	if v.Ledger == nil || v.Cluster.DeletionTimestamp != nil {
		return
	}
	for _, backups := range []bool{false, true} {
		explain(atTurn(v, backups), d, entry, rollOut)
	}
}

func explain(s *state, d *plan.Draft, entry, rollOut string) {
	switch {
	case s == nil, s.restarts() && slices.ContainsFunc(s.status.Nodes, atWork):
		return
	case s.restarts():
		entry = rollOut
	}
	why := ""
	for i, r := range d.Steps {
		if r.Outcome != plan.Done && (r.Step == entry || i == len(d.Steps)-1) {
			why = r.Step + ": " + r.Message
			if r.Step == entry {
				why = r.Message
				break
			}
		}
	}
	if why == "" {
		return
	}
	s.wait("%s", words.Shorten(why, longestMessage))
	put(d, s)
}

func atWork(n v1alpha1.TaskNode) bool { return n.Phase == v1alpha1.TaskRunning }
