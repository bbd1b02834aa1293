package replace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
)

// defaultAfter is how long a member must have been lost where the spec does not say.
const defaultAfter = 15 * time.Minute

// due replaces the first member, by name, that has been lost for long enough.
func (r replacer) due(v *assess.View) *procedure.Proposal {
	if s := lostStep(v); s != nil {
		return &procedure.Proposal{What: "node " + s.Nodes[0] + " to be replaced", Lost: s}
	}
	if settled := notice(v); settled != nil {
		return &procedure.Proposal{Settled: settled}
	}
	after := defaultAfter
	if a := v.Cluster.Spec.Replacement.After; a != nil {
		after = a.Duration
	}
	var notices []v1alpha1.Notice
	var first *ledger.Lost
	var recommended []string
	wake := time.Duration(0)
	for i := range v.Ledger.Lost {
		l := &v.Ledger.Lost[i]
		switch left := l.Since.Add(after).Sub(v.Now); {
		case v.Cluster.Spec.Replacement.Mode == v1alpha1.AutomationRecommend && !v.ReplacementAsked(l.Node):
			recommended = append(recommended, l.Node)
		case left > 0:
			notices = append(notices, v1alpha1.Notice{Reason: v1alpha1.NoticeMemberLost, Nodes: []string{l.Node},
				Message: fmt.Sprintf("node %s %s; it is replaced at %s unless it comes back", l.Node,
					inWords(v, l.Node), l.Since.Add(after).UTC().Format(time.RFC3339))})
			if wake == 0 || left < wake {
				wake = left
			}
		case v.Lost(l.Node) == "":
			notices = append(notices, v1alpha1.Notice{Reason: v1alpha1.NoticeMemberLost, Nodes: []string{l.Node},
				Message: fmt.Sprintf("node %s %s; it is replaced once its agent says so again", l.Node,
					inWords(v, l.Node))})
		case first == nil:
			first = l
		}
	}
	switch {
	case first != nil:
		p := &procedure.Proposal{What: "node " + first.Node + " to be replaced", Notices: notices,
			Wait: unasked(v, first.Node)}
		if p.Wait != "" {
			return p
		}
		if p.Refusals = r.refusals(v, first.Node); len(p.Refusals) == 0 {
			lost := *first
			p.Open = func() (*procedure.Opening, []guard.Refusal) { return open(v, lost) }
		}
		return p
	case len(notices) > 0:
		return &procedure.Proposal{What: "a member to be replaced", Notices: notices, Wake: wake,
			Wait: fmt.Sprintf("until node %s has been lost for %s", notices[0].Nodes[0], after)}
	case len(recommended) > 0:
		return &procedure.Proposal{Recommend: &v1alpha1.Recommendation{Operation: Operation, Nodes: recommended,
			Message: fmt.Sprintf("node %s %s. To have it replaced: kubectl helenus replace %s --reason '...'",
				recommended[0], inWords(v, recommended[0]), recommended[0])}}
	}
	return nil
}

// inWords is what a member has lost, or had when that was last known.
func inWords(v *assess.View, node string) string {
	return cmp.Or(v.Lost(node), "has lost its disk or its host, by the last that was heard")
}

// Operation is the name by which a replacement is recommended.
const Operation = "Replace"

// notice has the ledger know which members are lost, and since when; nil if it does.
func notice(v *assess.View) *procedure.Settled {
	var lost []ledger.Lost
	for _, name := range v.Members() {
		l := ledger.Lost{Node: name, HostID: v.Ledger.Members[name], Since: v.Now.UTC()}
		i := slices.IndexFunc(v.Ledger.Lost,
			func(k ledger.Lost) bool { return k.Node == l.Node && k.HostID == l.HostID })
		switch {
		case i >= 0 && !v.Found(name): // its agent may be silent for a while
			lost = append(lost, v.Ledger.Lost[i])
		case i < 0 && v.Lost(name) != "":
			lost = append(lost, l)
		}
	}
	if slices.Equal(lost, v.Ledger.Lost) {
		return nil
	}
	return &procedure.Settled{Why: "which members are lost", Change: func(r *ledger.Ring) { r.Lost = lost }}
}

// refusals are what speaks against the replacement of a member.
func (r replacer) refusals(v *assess.View, node string) []guard.Refusal {
	about := guard.Replacing{Nodes: others(v, node), Node: node, HostID: v.Ledger.Members[node],
		Accepted: v.LossAccepted(node)}
	return guard.Check(about, r.rules.Replace...)
}

// unasked says until when it is not known which other members are down: this operator has asked
// one for the first time just now. Empty if it is known.
func unasked(v *assess.View, node string) string {
	for _, name := range others(v, node).Names {
		if v.Of(name).Contact == assess.FirstContact {
			return "until node " + name + " has answered, or has not"
		}
	}
	return ""
}

// others are the members beside one.
func others(v *assess.View, node string) guard.Nodes {
	return procedure.TheseNodes(v, slices.DeleteFunc(slices.Clone(v.Members()),
		func(name string) bool { return name == node })...)
}

// open works out who is replaced, with which tokens, and who repairs before.
func open(v *assess.View, lost ledger.Lost) (*procedure.Opening, []guard.Refusal) {
	view := v.AnyRing()
	e, known := view.ByHostID(lost.HostID)
	if !known { // all see the same ring (guard RingViewsDiffer): it is removed, and the ledger was lost
		return removed(v, lost), nil
	}
	if len(e.Tokens) == 0 {
		return nil, []guard.Refusal{{Reason: v1alpha1.BlockedRingViewsDiffer, Until: "a member knows its tokens",
			Finding: guard.Finding{Nodes: []string{lost.Node}, Message: fmt.Sprintf("no member knows the tokens of "+
				"node %s, which has the host id %s", lost.Node, lost.HostID)}}}
	}
	state := State{Repair: cmp.Or(v.Cluster.Spec.Replacement.Repair, v1alpha1.ReplacementRepairBefore)}
	state.Tokens = map[string][]string{lost.Node: ticket.Format(e.RingTokens())}
	state.Replaces = &v1alpha1.ReplaceTarget{HostID: lost.HostID, Address: e.Address}
	if len(others(v, lost.Node).Down()) > 0 {
		state.Repair = v1alpha1.ReplacementRepairAfter
	}
	nodes := []string{lost.Node}
	if state.Repair == v1alpha1.ReplacementRepairBefore {
		state.Repairers = repairers(v, lost)
		nodes = append(nodes, state.Repairers...)
	}
	what := fmt.Sprintf("replacing node %s (host id %s), which %s", lost.Node, lost.HostID, inWords(v, lost.Node))
	return &procedure.Opening{
		Stage: ledger.StageHints, Datacenters: []string{v.DatacenterOf(lost.Node)}, Nodes: nodes, State: state,
		Why: "node " + lost.Node + " is to be replaced", Event: "ReplacingNode", EventMessage: what,
		ResultMessage: what,
	}, nil
}

// removed is the rest of a replacement by which a member was removed from the ring.
func removed(v *assess.View, lost ledger.Lost) *procedure.Opening {
	state := State{Repair: v1alpha1.ReplacementRepairAfter} // whether it was repaired before is not known
	state.Replaces = &v1alpha1.ReplaceTarget{HostID: lost.HostID, Address: v.Nodes[lost.Node].Record.Status.Address}
	what := fmt.Sprintf("node %s (host id %s) is lost, and no member of the ring", lost.Node, lost.HostID)
	return &procedure.Opening{
		Stage: ledger.StageRemove, Datacenters: []string{v.DatacenterOf(lost.Node)}, Nodes: []string{lost.Node},
		State: state, Why: what, Event: "ReplacingNode", EventMessage: what, ResultMessage: what,
	}
}

// repairers are members that together have all that a lost one had, as far as anybody else has it.
func repairers(v *assess.View, lost ledger.Lost) []string {
	names, ids := map[string]string{}, []string{}
	for _, name := range others(v, lost.Node).Names {
		id := v.Ledger.Members[name]
		names[id], ids = name, append(ids, id)
	}
	p, err := v.AnyRing().Protection(v1alpha1.ConsistencyLocalQuorum)
	if err != nil {
		return slices.Sorted(maps.Values(names))
	}
	holders, err := p.Holders(lost.HostID, ids)
	if err != nil {
		return slices.Sorted(maps.Values(names))
	}
	out := make([]string, len(holders))
	for i, id := range holders {
		out[i] = names[id]
	}
	return slices.Sorted(slices.Values(out))
}

// lostStep is the step of a node that has a ticket to replace a member although no step is open:
// the ledger that had it was lost.
func lostStep(v *assess.View) *ledger.Step {
	for _, name := range v.Members() {
		n := v.Live(name)
		if n == nil || n.Record.Spec.Join == nil || n.Record.Spec.Join.Replace == nil {
			continue
		}
		t := n.Record.Spec.Join
		s := ticket.LostJoin(v, n)
		s.Kind, s.Class = ledger.ReplaceNode, ledger.Recovery
		state := State{Repair: v1alpha1.ReplacementRepairAfter} // nobody knows whether it was repaired
		state.Replaces = t.Replace
		s.State = ledger.Encoded(state)
		return s
	}
	return nil
}
