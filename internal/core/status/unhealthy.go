package status

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const (
	mostOpen        = 16
	keptJVMRestarts = 10
)

// openSteps are those of the ledger as it is after the writes of a pass. What was said before stays
// as it was read: a time is written in seconds, and one that differs otherwise is a write.
func openSteps(s *facts.Snapshot, done []plan.Write) []v1alpha1.OpenStep {
	l := s.Ledger
	for _, w := range done {
		if w.Verb == plan.PutLedger {
			l = w.Ledger
		}
	}
	var out []v1alpha1.OpenStep
	add := func(steps []*ledger.Step) {
		for _, step := range steps {
			open := v1alpha1.OpenStep{ID: step.ID, Step: string(step.Kind),
				Since: metav1.NewTime(step.OpenedAt).Rfc3339Copy()}
			for _, known := range s.Cluster.Status.OpenSteps {
				if known.ID == open.ID {
					open = known
				}
			}
			out = append(out, open)
		}
	}
	add(l.Open())
	if l != nil {
		add(l.Suspended)
	}
	slices.SortStableFunc(out, func(a, b v1alpha1.OpenStep) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.ID, b.ID))
	})
	return out[:min(len(out), mostOpen)]
}

// unhealthy are the nodes in trouble, by name. Of one that is only just being asked stands what was
// said before.
func unhealthy(s *facts.Snapshot) []v1alpha1.UnhealthyNode {
	records := s.Records()
	var view *facts.Ring
	if first := slices.IndexFunc(records, isNormal); first >= 0 {
		view = records[first].Agent.Ring
	}
	var out []v1alpha1.UnhealthyNode
	for _, n := range records {
		if trouble := troubleOf(s, n, view); trouble != "" && len(out) < mostNodes {
			out = append(out, v1alpha1.UnhealthyNode{Name: n.Name, Trouble: trouble})
		}
	}
	return out
}

func troubleOf(s *facts.Snapshot, n *facts.Node, view *facts.Ring) v1alpha1.NodeTrouble {
	hostID, member := s.Ledger.HostID(n.Name)
	switch phase := n.Record.Status.Phase; {
	case n.StatusIsCurrent() && assess.NeedsUser(phase) && !startsAgain(&n.Record.Status):
		return v1alpha1.NodeTrouble(phase)
	case !member:
		return ""
	case n.Asking:
		return troubleBefore(s.Cluster.Status.Unhealthy, n.Name)
	case isNormal(n):
		return ""
	case n.CurrentAgent() != nil || view != nil && !isUp(n, hostID, view):
		return v1alpha1.TroubleDown
	default:
		return v1alpha1.TroubleUnreachable
	}
}

// startsAgain says that a JVM has failed which the agent starts again by itself.
func startsAgain(s *v1alpha1.CassandraNodeStatus) bool {
	return s.Phase == v1alpha1.PhaseFailed && s.Restarts != nil && s.Restarts.BackOffUntil != nil
}

func troubleBefore(all []v1alpha1.UnhealthyNode, name string) v1alpha1.NodeTrouble {
	for _, u := range all {
		if u.Name == name {
			return u.Trouble
		}
	}
	return ""
}

// jvmRestarts are those that were known, with those that the agents report since.
func jvmRestarts(s *facts.Snapshot) []v1alpha1.JVMRestart {
	out := slices.Clone(s.Cluster.Status.JVMRestarts)
	for _, n := range s.Records() {
		r := n.Record.Status.Restarts
		if r == nil || r.LastAt == nil {
			continue
		}
		last := v1alpha1.JVMRestart{Node: n.Name, Reason: r.LastReason, At: r.LastAt.Rfc3339Copy()}
		if !slices.ContainsFunc(out, func(r v1alpha1.JVMRestart) bool { return sameRestart(r, last) }) {
			out = append(out, last)
		}
	}
	slices.SortStableFunc(out, func(a, b v1alpha1.JVMRestart) int {
		return cmp.Or(b.At.Compare(a.At.Time), cmp.Compare(a.Node, b.Node))
	})
	return out[:min(len(out), keptJVMRestarts)]
}

func sameRestart(a, b v1alpha1.JVMRestart) bool { return a.Node == b.Node && a.At.Equal(&b.At) }
