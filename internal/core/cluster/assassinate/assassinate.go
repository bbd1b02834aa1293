package assassinate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// Members forget a joiner that is gone after some minutes, and ignore it for 60 s. One that was
// started meanwhile learned of it later, forgets it later, and tells the others of it when they
// listen again: it is never forgotten (ADR 16, measured), and nothing can join or change the ring
// any more. So once some have forgotten it and others have not, one of them assassinates it.

// Assassinate removes a stale endpoint while no other step is open.
func Assassinate() procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.Assassinate, Class: ledger.Maintenance,
		Runs: []v1alpha1.OperationType{v1alpha1.OperationAssassinate},
		Due: func(v *assess.View) *procedure.Proposal {
			if done := assassinating(v, true); len(done) > 0 {
				return &procedure.Proposal{Clear: done}
			}
			stale := staleJoin(v)
			if stale == nil {
				return nil
			}
			return &procedure.Proposal{
				What: "members are to forget a failed join of node " + stale.node + " at " + stale.address,
				Open: func() (*procedure.Opening, []guard.Refusal) {
					return &procedure.Opening{
						Stage: ledger.StageOperations, Why: "a failed join stays in gossip",
						ResultMessage: "removing the failed join of " + stale.node + " at " + stale.address +
							" from gossip",
					}, nil
				},
			}
		},
		Stages: []procedure.Stage{{Name: ledger.StageOperations,
			Run: func(v *assess.View, s *procedure.Step) plan.Result {
				if r, busy := Remove(v, s); busy {
					s.Describe(0, "%s", r.Message)
					return r
				}
				s.Close(false, v1alpha1.StepSucceeded, "")
				return plan.Nothing()
			}}},
	}
}

// endpoint is that of an earlier attempt of a node of this cluster to join, at an address that it
// no longer has.
type endpoint struct{ address, node string }

// staleJoin is the first that members still see although others have forgotten it; nil if there is
// none, or not all members are up.
func staleJoin(v *assess.View) *endpoint {
	members := v.Members()
	if len(members) < 2 || len(v.UpAmong(members)) < len(members) {
		return nil
	}
	views := make([]*facts.Ring, 0, len(members))
	for _, name := range members {
		views = append(views, v.Nodes[name].CurrentAgent().Ring)
	}
	var different []*facts.Ring
	for i, first := range facts.SameViews(views) {
		if first == i {
			different = append(different, views[i])
		}
	}
	if len(different) < 2 {
		return nil // all see the same
	}
	var candidates []facts.Endpoint
	for _, view := range different {
		for _, e := range view.Endpoints {
			if isFailedJoin(e) {
				candidates = append(candidates, e)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b facts.Endpoint) int { return strings.Compare(a.Address, b.Address) })
	for _, e := range candidates {
		if of := nodeOf(v, e.HostID); of != "" && !anyoneAt(v, e.Address) && forgottenBySome(different, e.Address) {
			return &endpoint{e.Address, of}
		}
	}
	return nil
}

// isFailedJoin says that a member sees a node joining that is down.
func isFailedJoin(e facts.Endpoint) bool { return e.Status == facts.StatusBootstrap && !e.Live }

// forgottenBySome says that some views lack an address, and none has anything else there than a
// failed join.
func forgottenBySome(views []*facts.Ring, address string) bool {
	some := false
	for _, view := range views {
		e, found := view.ByAddress(address)
		if found && !isFailedJoin(e) {
			return false
		}
		some = some || !found
	}
	return some
}

// nodeOf is the node of this cluster that has a host id, or had it when it last tried to join;
// empty if nobody knows of one.
func nodeOf(v *assess.View, hostID string) string {
	for _, name := range slices.Sorted(maps.Keys(v.Nodes)) {
		n := v.Nodes[name]
		agent := n.CurrentAgent()
		if hostID != "" && (v.Ledger.Members[name] == hostID || agent != nil && agent.HostID == hostID ||
			n.Record != nil && n.Record.Status.HostID == hostID) {
			return name
		}
	}
	return ""
}

// anyoneAt says that a pod of the cluster has an address, or may have.
func anyoneAt(v *assess.View, address string) bool {
	for _, n := range v.Nodes {
		agent := n.CurrentAgent()
		switch {
		case agent != nil && agent.Address == address:
			return true
		case n.Pod == nil:
		case n.Pod.Status.PodIP == address, n.Pod.Status.PodIP == "" && n.Record != nil &&
			n.Record.Status.Address == address:
			return true
		}
	}
	return false
}

// assassinating are the members that have the operation in their record, and are done with it or
// not.
func assassinating(v *assess.View, done bool) []string {
	return slices.DeleteFunc(slices.Clone(v.Members()), func(name string) bool {
		o := operation(v.Nodes[name])
		if o == nil {
			return true
		}
		status := v.Nodes[name].Record.Status.Operation(o.ID)
		return done != (status != nil && status.Phase.Final())
	})
}

// operation by which a member assassinates; nil if it has none.
func operation(n *facts.Node) *v1alpha1.OperationIntent {
	if n == nil || n.Record == nil {
		return nil
	}
	i := slices.IndexFunc(n.Record.Spec.Operations,
		func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationAssassinate })
	if i < 0 {
		return nil
	}
	return &n.Record.Spec.Operations[i]
}

// Remove has a member assassinate a stale endpoint, for an open step, and says whether there is
// anything to do. Each member has one attempt.
func Remove(v *assess.View, s *procedure.Step) (plan.Result, bool) {
	if done := assassinating(v, true); s.ClearOperations(done) {
		n := v.Nodes[done[0]]
		status := n.Record.Status.Operation(operation(n).ID)
		return plan.Acting("node %s: %s", done[0], cmp.Or(status.Message, string(status.Phase))), true
	}
	if at := assassinating(v, false); len(at) > 0 {
		n := v.Nodes[at[0]]
		if n.CurrentAgent() == nil {
			s.Notice(v1alpha1.NoticeNodeDown, at, "%s waits until node %s is up: %s", v1alpha1.OperationAssassinate,
				n.Name, assess.WhyNoAnswer(n))
		}
		return plan.Waiting("waiting for node %s to assassinate a failed join at %s", n.Name,
			operation(n).Arguments.Endpoint), true
	}
	stale := staleJoin(v)
	if stale == nil {
		return plan.Nothing(), false
	}
	o := procedure.Operation{
		Purpose: "forget-" + strings.ReplaceAll(stale.address, ":", "-"), Type: v1alpha1.OperationAssassinate,
		Arguments: &v1alpha1.OperationArguments{Endpoint: stale.address},
	}
	for _, name := range v.Members() {
		if n := v.Live(name); n != nil && len(n.Record.Spec.Operations) == 0 && s.RunOnce(o, n) {
			s.Event("Assassinating", "node %s assassinates a failed join of node %s at %s, which stays in gossip", name,
				stale.node, stale.address)
			return plan.Acting("node %s assassinates a failed join of %s at %s", name, stale.node, stale.address), true
		}
	}
	s.Block(v1alpha1.BlockedStaleEndpointRemains, []string{stale.node},
		"gossip still lists a failed join of node %s at %s, and no member could assassinate it: run nodetool "+
			"assassinate %s on a member whose nodetool gossipinfo does not list it just now",
		stale.node, stale.address, stale.address)
	return plan.Waiting("until members have forgotten a failed join of %s at %s", stale.node, stale.address), true
}
