package task

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/ledger"
)

// NextGivenUp is the member that the task whose turn it is gives up, if it is of a type, as its
// status names it already, and the uid of that task; an empty one if there is none.
func NextGivenUp(kind v1alpha1.TaskType) func(*assess.View) (ledger.Lost, string) {
	return func(v *assess.View) (given ledger.Lost, id string) {
		t := atTurn(v, false)
		if t == nil || t.task.Spec.Type != kind || t.expired(v) || len(t.task.Status.Nodes) == 0 {
			return given, ""
		}
		n := t.task.Status.Nodes[0]
		if n.HostID == "" || v.Ledger.Members[n.Node] != n.HostID {
			return given, ""
		}
		return ledger.Lost{Node: n.Node, HostID: n.HostID}, string(t.task.UID)
	}
}

// NotGivenUp says why the task of a uid gives no member up any more; empty while it does.
func NotGivenUp(v *assess.View, id, _ string) string {
	switch t := stateOf(v, id); {
	case t == nil:
		return "its task is deleted"
	case t.expired(v):
		return "the deadline of its task is over"
	}
	return ""
}

// readReplace says how far a member is given up: it is done once no member has its host id. As long
// as a step is open that ends by itself.
func (s *state) readReplace(v *assess.View, out *v1alpha1.TaskNode) {
	now, member := metav1.NewTime(v.Now).Rfc3339Copy(), v.Ledger.Members[out.Node]
	out.HostID = cmp.Or(out.HostID, member)
	switch {
	case s.open:
		out.Phase = v1alpha1.TaskRunning
		if out.StartedAt == nil {
			out.StartedAt, out.Attempts = &now, 1
		}
		why := "it gives up its disk"
		if step := v.Cluster.Status.Step; step != nil && step.Name == string(s.step.Kind) {
			why = step.Message
		}
		s.pending(v, out, why, true)
	case member != out.HostID && slices.Contains(v.Ledger.Replaced, out.HostID):
		out.Phase, out.FinishedAt = v1alpha1.TaskSucceeded, &now
		out.Message = "host id " + out.HostID + " is no member of the ring any more"
		if member != "" {
			out.Message = "host id " + out.HostID + " is replaced by " + member
		}
	case member != out.HostID:
		out.Phase, out.FinishedAt = v1alpha1.TaskFailed, &now
		out.Message = "host id " + out.HostID + " has left the ring"
	default:
		out.Phase = v1alpha1.TaskPending
		s.pending(v, out, "", false)
	}
}
