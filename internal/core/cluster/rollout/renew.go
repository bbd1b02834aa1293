package rollout

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/words"
)

// alone is the part of a wave that begins now, and says whether its node gets a new pod without its
// data: it has its data again before another one gives its own up.
func (p *pass) alone(wave []string) ([]string, bool) {
	i := slices.IndexFunc(wave, func(name string) bool { return p.renews(p.Nodes[name]) })
	if i < 0 {
		return wave, false
	}
	return wave[i : i+1], true
}

// RepairsFirst says that a roll-out waits until nodes are repaired.
func RepairsFirst(v *assess.View) bool {
	p := newPass(v)
	pending, _ := p.pending()
	return p.repairsFirst(pending) != nil
}

// repairsFirst are the nodes that must be repaired before others give their data up for new pods:
// they may lack writes that one of these has.
func (p *pass) repairsFirst(others []string) []guard.Refusal {
	if len(p.Ledger.RepairDue) == 0 ||
		!slices.ContainsFunc(others, func(name string) bool { return p.renews(p.Nodes[name]) }) {
		return nil
	}
	var due []string
	for _, d := range p.Ledger.RepairDue {
		due = append(due, d.Node)
	}
	return []guard.Refusal{{Reason: v1alpha1.BlockedRepairDue, Until: "it is repaired", Finding: guard.Finding{
		Nodes: due, Message: fmt.Sprintf("node %s must be repaired before another one loses its data with its "+
			"pod%s", words.List(due, 3), guard.RepairBy(due, p.RepairByHand))}}}
}

// NextRenewed is the member that an open roll-out is to bring into a new pod, and that loses its
// data by that; none if none is.
func NextRenewed(v *assess.View) (given ledger.Lost, id string) {
	s := v.Ledger.Step
	if s == nil || s.Kind != ledger.RollOut {
		return given, ""
	}
	state, err := ledger.StateOf[State](s)
	if err != nil || !state.Renews || len(state.Wave) == 0 {
		return given, ""
	}
	name, p := state.Wave[0], newPass(v)
	if n := v.Live(name); n == nil || !p.renews(n) || len(v.Ledger.RepairDue) > 0 {
		return given, ""
	}
	return ledger.Lost{Node: name, HostID: v.Ledger.Members[name]}, ""
}

// NotRenewed says why a member does not get a new pod now; empty while it does.
func NotRenewed(v *assess.View, _, node string) string {
	if len(v.Ledger.RepairDue) > 0 {
		return "node " + v.Ledger.RepairDue[0].Node + " must be repaired first"
	}
	if n := v.Live(node); n != nil && newPass(v).changeOf(n) != newPod {
		return "the spec describes its pod as it is"
	}
	return ""
}

// Renewed has the record of a node take over what the spec describes, together with its new pod.
// How clients log in a roll-out alone changes.
func Renewed(v *assess.View, n *facts.Node) func(*v1alpha1.CassandraNodeSpec) {
	w := newPass(v).wanted(n)
	w.Configuration.Authentication = n.Record.Spec.Configuration.Authentication
	return func(spec *v1alpha1.CassandraNodeSpec) { spec.Configuration, spec.Pod = w.Configuration, w.Pod }
}
