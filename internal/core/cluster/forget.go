package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Members forget a joiner that is gone after some minutes, and ignore it for 60 s. One that was started meanwhile learned of it later, forgets it later, and tells
// the others of it when they listen again: it is never forgotten (ADR 16, measured), and nothing can join or change the ring any more. So once some have forgotten
// it and others have not, one of them says that it has left.

// overdue is such a joiner: an earlier try of a node of this cluster to join, at an address that it no longer has.
type overdue struct{ address, node string }

// overdueJoin is the first that members still see although others have forgotten it; nil if there is none, or not all members are up.
func (p *pass) overdueJoin() *overdue {
	members := p.members()
	if len(members) < 2 || len(p.upAmong(members)) < len(members) {
		return nil
	}
	views := make([]*facts.Ring, 0, len(members))
	for _, name := range members {
		views = append(views, p.Nodes[name].CurrentAgent().Ring)
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
			if joinIsOver(e) {
				candidates = append(candidates, e)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b facts.Endpoint) int { return strings.Compare(a.Address, b.Address) })
	for _, e := range candidates {
		if of := p.nodeOfHostID(e.HostID); of != "" && !p.anyoneAt(e.Address) && forgottenBySome(different, e.Address) {
			return &overdue{e.Address, of}
		}
	}
	return nil
}

// joinIsOver says that a member sees a node on its way into the ring that is down.
func joinIsOver(e facts.Endpoint) bool { return e.Status == facts.StatusBootstrap && !e.Live }

// forgottenBySome says that some views lack an address, and none has anything else there than a join that is down.
func forgottenBySome(views []*facts.Ring, address string) bool {
	some := false
	for _, view := range views {
		e, found := view.ByAddress(address)
		if found && !joinIsOver(e) {
			return false
		}
		some = some || !found
	}
	return some
}

// nodeOfHostID is the node of this cluster that has a host id, or had it when it last tried to join; empty if nobody knows of one.
func (p *pass) nodeOfHostID(id string) string {
	for _, name := range sortedKeys(p.Nodes) {
		n := p.Nodes[name]
		agent := n.CurrentAgent()
		if id != "" && (p.Ledger.Members[name] == id || agent != nil && agent.HostID == id || recordOf(n) != nil && n.Record.Status.HostID == id) {
			return name
		}
	}
	return ""
}

// anyoneAt says that a pod of the cluster has an address, or may have.
func (p *pass) anyoneAt(address string) bool {
	for _, n := range p.Nodes {
		agent := n.CurrentAgent()
		if agent != nil && agent.Address == address || n.Pod != nil && (n.Pod.Status.PodIP == address || n.Pod.Status.PodIP == "" && recordOf(n) != nil && n.Record.Status.Address == address) {
			return true
		}
	}
	return false
}

// forgetJoin has the members forget a join that is over while nothing else is done.
func forgetJoin(p *pass) result {
	if !p.canChange() {
		return done()
	}
	if p.clearOperations(p.assassins(true)) {
		return act("the operations of a step that was given up are over")
	}
	o := p.overdueJoin()
	if o == nil {
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true; members are to forget a join of node %s at %s", o.node, o.address)
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	s := p.open(ledger.ForgetJoin, ledger.StageOperations, "a join is over that is never forgotten", func(*ledger.Ledger) {})
	return p.forgetJoin(s)
}

// forgetJoin continues that.
func (p *pass) forgetJoin(s *ledger.Step) result {
	if r, forgets := p.forget(s); forgets {
		p.describe(s, 0, "%s", r.message)
		return r
	}
	p.closeStep(s, false, v1alpha1.StepSucceeded, "")
	return done()
}

// assassins are the members that are to have an earlier try forgotten, and are done with it or not.
func (p *pass) assassins(over bool) []string {
	return slices.DeleteFunc(slices.Clone(p.members()), func(name string) bool {
		n := p.Nodes[name]
		o := assassination(n)
		if o == nil {
			return true
		}
		status := n.Record.Status.Operation(o.ID)
		return over != (status != nil && status.Phase.Final())
	})
}

// assassination is the operation by which a member is to have an earlier try forgotten; nil if it has none.
func assassination(n *facts.Node) *v1alpha1.OperationIntent {
	if recordOf(n) == nil {
		return nil
	}
	i := slices.IndexFunc(n.Record.Spec.Operations, func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationAssassinate })
	if i < 0 {
		return nil
	}
	return &n.Record.Spec.Operations[i]
}

// forget has a member say that a join which is over has left, and says whether there is anything to do. Each member has one try.
func (p *pass) forget(s *ledger.Step) (result, bool) {
	if over := p.assassins(true); p.clearOperations(over) {
		n := p.Nodes[over[0]]
		status := n.Record.Status.Operation(assassination(n).ID)
		return act("node %s: %s", over[0], orElse(status.Message, string(status.Phase))), true
	}
	if at := p.assassins(false); len(at) > 0 {
		n := p.Nodes[at[0]]
		if n.CurrentAgent() == nil {
			p.notice(v1alpha1.NoticeNodeDown, at, "%s waits until node %s is up: %s", v1alpha1.OperationAssassinate, n.Name, guard.WhyNoAnswer(n))
		}
		return wait("waiting for node %s to have the members forget an earlier try at %s", n.Name, assassination(n).Arguments.Endpoint), true
	}
	o := p.overdueJoin()
	if o == nil {
		return done(), false
	}
	for _, name := range p.members() {
		n := p.Nodes[name]
		id := s.IntentID("forget-"+strings.ReplaceAll(o.address, ":", "-"), name)
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil || len(n.Record.Spec.Operations) > 0 || n.Record.Status.Operation(id) != nil {
			continue
		}
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.Operations = []v1alpha1.OperationIntent{{
			Intent: v1alpha1.Intent{ID: id}, Type: v1alpha1.OperationAssassinate, Arguments: &v1alpha1.OperationArguments{Endpoint: o.address},
		}}
		p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: true, Why: "operation " + string(v1alpha1.OperationAssassinate)})
		p.event(corev1.EventTypeNormal, "ForgettingJoin", "members are to forget an earlier try of node %s to join, at %s, of which they tell each other again and again", o.node, o.address)
		return act("node %s has the members forget an earlier try of %s at %s", name, o.node, o.address), true
	}
	p.block(string(s.Kind), v1alpha1.BlockedStaleEndpointRemains, []string{o.node},
		"gossip still lists a failed join of node %s at %s, and automatic assassinate did not remove it: run nodetool assassinate %s on a member whose nodetool gossipinfo does not list that address now",
		o.node, o.address, o.address)
	return wait("until members have forgotten an earlier try of %s at %s", o.node, o.address), true
}
