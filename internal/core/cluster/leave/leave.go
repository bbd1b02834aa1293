package leave

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// State of a step by which a node leaves.
type State struct {
	// Replication is what the system keyspaces are to have in the datacenter of the node before it
	// leaves, by the datacenter's name in Cassandra; empty if they have no more.
	Replication map[string]int32 `json:"replication,omitempty"`
}

// purpose of the operation by which a node leaves.
const purpose = "decommission"

// Leave has the members leave that the spec does not describe any more, one at a time: the last one
// of the rack with the most members. Every ring on the way to the spec is judged before each of
// them. Where the system keyspaces have more replicas than nodes will be left, they are repaired,
// so that each replica has all, and then get fewer.
func Leave(rules guard.Rules) procedure.Procedure {
	l := leaver{rules}
	return procedure.Procedure{
		Kind: ledger.LeaveNode, Class: ledger.Topology, MovesRanges: true,
		Understands: procedure.Understands[State],
		Due:         l.due,
		Stages: []procedure.Stage{{Name: ledger.StageOperations, Run: repair},
			{Name: ledger.StageKeyspaces, Run: lower}, {Name: ledger.StageLeave, Run: l.leave}},
	}
}

type leaver struct{ rules guard.Rules }

func (l leaver) due(v *assess.View) *procedure.Proposal {
	queue := v.Leaving()
	if len(queue) == 0 {
		return nil
	}
	p := &procedure.Proposal{What: words.Plural(len(queue), "node") + " to leave", Lost: lostStep(v, queue),
		Refusals: guard.Check(procedure.MemberNodes(v), l.rules.BeforeLeave...)}
	view := v.AnyRing()
	if view == nil {
		return p
	}
	now, err := ring.New(view.Nodes())
	if err != nil {
		p.Refusals = append(p.Refusals, guard.Refusal{Reason: v1alpha1.BlockedRingViewsDiffer,
			Until: "all members see the same ring", Finding: guard.Finding{Message: err.Error()}})
		return p
	}
	p.Refusals = append(p.Refusals, guard.Check(guard.Leaving{
		Snapshot: v.Snapshot, Leavers: namesOf(queue),
		Stay: slices.DeleteFunc(slices.Clone(v.Members()), v.Leaves), View: view, Ring: now,
		Keyspaces: assess.KeyspacesOf(view), RepairByHand: v.RepairByHand,
	}, l.rules.Leaving...)...)
	p.Open = func() (*procedure.Opening, []guard.Refusal) { return open(v, view, queue[0]), nil }
	return p
}

func namesOf(queue []render.Wanted) []string {
	out := make([]string, len(queue))
	for i, w := range queue {
		out[i] = w.Name
	}
	return out
}

func open(v *assess.View, view *facts.Ring, w render.Wanted) *procedure.Opening {
	state, stage := State{Replication: tooMany(v, view, w)}, ledger.StageLeave
	if len(state.Replication) > 0 {
		stage = ledger.StageOperations
	}
	return &procedure.Opening{
		Stage: stage, Datacenters: []string{w.Datacenter}, Nodes: []string{w.Name}, State: state,
		Why: "node " + w.Name + " is to leave", Event: "LeavingNode",
		EventMessage:  fmt.Sprintf("node %s leaves rack %s of datacenter %s", w.Name, w.Rack, w.Datacenter),
		ResultMessage: fmt.Sprintf("node %s is to leave", w.Name),
	}
}

// tooMany is what the system keyspaces are to have in the datacenter of a node once all have left,
// if any of them has more than nodes are left; nil otherwise. Where none is left they keep one
// replica until then: Cassandra wants system_auth in every datacenter that has nodes
// (NetworkTopologyStrategy#validateExpectedOptions, 4.1 and 5.0).
func tooMany(v *assess.View, view *facts.Ring, w render.Wanted) map[string]int32 {
	dc := w.Configuration.DatacenterName
	left := max(v.SystemReplication()[dc], 1)
	nodes := 0
	for _, name := range v.Members() {
		if v.DatacenterOf(name) == w.Datacenter && !v.Leaves(name) {
			nodes++
		}
	}
	for _, name := range ring.SystemKeyspaces() {
		have, err := ring.ParseReplication(view.Keyspaces[name])
		if err == nil && have.Strategy() == ring.NetworkTopologyStrategy && have.Factor(dc) > max(nodes, 1) {
			return map[string]int32{dc: left}
		}
	}
	return nil
}

// lostStep is the step of a node that is leaving, or has left, although none is open: the ledger
// that had it was lost, or somebody has decommissioned the node by hand.
func lostStep(v *assess.View, queue []render.Wanted) *ledger.Step {
	for _, w := range queue {
		n := v.Live(w.Name)
		if n == nil {
			continue
		}
		id := ""
		for _, o := range n.Record.Spec.Operations {
			if o.Type == v1alpha1.OperationDecommission && o.Withdraw == nil {
				id = ledger.OfIntent(o.ID)
			}
		}
		if id == "" && (hasLeft(n, "") || leaves(n)) {
			id = procedure.StepID(v, v.Now.Unix())
		}
		if id != "" {
			return &ledger.Step{
				ID: id, Kind: ledger.LeaveNode, Class: ledger.Topology, Stage: ledger.StageLeave,
				Generation: v.Cluster.Generation, OpenedAt: v.Now, StageSince: v.Now,
				Datacenters: []string{w.Datacenter}, Nodes: []string{w.Name}, State: ledger.Encoded(State{}),
			}
		}
	}
	return nil
}

// leaves says that the JVM of a node is leaving.
func leaves(n *facts.Node) bool {
	agent := n.CurrentAgent()
	return agent != nil && agent.Ring != nil && agent.Ring.Mode == facts.ModeLeaving
}

// hasLeft says that a node has given all it held to the others, by its disk, or by the operation of
// an id.
func hasLeft(n *facts.Node, operation string) bool {
	if agent := n.CurrentAgent(); agent != nil && agent.Disk != "" {
		return agent.Disk == v1alpha1.DiskLeft
	}
	status := n.Record.Status.Operation(operation)
	return n.Record.Status.Disk == v1alpha1.DiskLeft || status != nil && status.Phase == v1alpha1.OperationSucceeded
}

// repair the system keyspaces on every member, in turn, before some of them lose replicas: what
// only those hold would be lost.
func repair(v *assess.View, s *procedure.Step) plan.Result {
	if takenBack(v, s) {
		return giveUp(v, s)
	}
	what := "the system keyspaces are repaired before they get fewer replicas"
	r, over := s.RunInTurn(procedure.Operation{
		Purpose: "repair", Type: v1alpha1.OperationRepair,
		Arguments: &v1alpha1.OperationArguments{Keyspaces: ring.SystemKeyspaces(), Full: true, PrimaryRange: true},
	}, procedure.OneAtATime(v.Members()), what)
	if !over {
		return r
	}
	if s.ClearOperations(v.Members()) {
		return plan.Acting("the operations are over")
	}
	s.Advance(false, what, ledger.StageKeyspaces)
	return plan.Acting("%s", what)
}

// lower has a member that stays give them fewer replicas.
func lower(v *assess.View, s *procedure.Step) plan.Result {
	if takenBack(v, s) {
		return giveUp(v, s)
	}
	return s.Alter(procedure.Operation{
		Purpose: "keyspaces", Type: v1alpha1.OperationAlterSystemKeyspaces,
		Arguments: &v1alpha1.OperationArguments{Replication: procedure.State[State](s).Replication, Exact: true},
	}, slices.DeleteFunc(slices.Clone(v.Members()), v.Leaves), ledger.StageLeave,
		"gives the system keyspaces fewer replicas")
}

// leave waits until the node has left: by its disk, and in the view of every member that is up.
func (l leaver) leave(v *assess.View, s *procedure.Step) plan.Result {
	name := s.Nodes()[0]
	s.Describe(0, "node %s leaves", name)
	n := v.Live(name)
	switch {
	case n == nil:
		return plan.Waiting("waiting for the record of %s, which is recreated", name)
	case n.Record.Spec.State == v1alpha1.StateDecommissioned:
		return end(v, s)
	}
	operation := procedure.Operation{Purpose: purpose, Type: v1alpha1.OperationDecommission, NeverPostponed: true}
	if isLast(v, s) {
		operation.Arguments = &v1alpha1.OperationArguments{Force: true}
	}
	if hasLeft(n, s.Attempt(operation, name)) {
		return l.left(v, s, n)
	}
	asked := slices.ContainsFunc(n.Record.Spec.Operations,
		func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationDecommission })
	if takenBack(v, s) && (!asked || !s.Runs(n)) {
		return back(v, s, n)
	}
	if !asked && !leaves(n) {
		if why := guard.Check(procedure.MemberNodes(v), l.rules.BeforeLeave...); len(why) > 0 {
			return s.Refused(why)
		}
	}
	p := s.Run(operation, []string{name})
	s.Describe(0, "node %s leaves: %s", name, words.List(p.Waiting, 1))
	if len(p.Finished) > 0 {
		return plan.Waiting("waiting for the agent of %s to say that its disk is that of a node which has left", name)
	}
	return p.Result("node %s leaves", name)
}

// left records that a node has left, once no member that is up sees it as a member. Members that
// still do either missed its announcement, since its JVM ended first, or have a stale endpoint of
// an address that it had before. The new owners have its data, so one of these members removes it.
func (l leaver) left(v *assess.View, s *procedure.Step, n *facts.Node) plan.Result {
	if r, over := s.RemoveMember(n, v.Ledger.Members[n.Name], "has streamed its data"); !over {
		return r
	}
	s.UpdateRecord(n.Name, true, "it has left the ring", func(spec *v1alpha1.CassandraNodeSpec) {
		spec.State = v1alpha1.StateDecommissioned
	})
	return plan.Acting("node %s has left", n.Name)
}

// end closes the step once the record says that the node has left, and has the system keyspaces
// looked at again. With its last node a datacenter is forgotten.
func end(v *assess.View, s *procedure.Step) plan.Result {
	name, last := s.Nodes()[0], isLast(v, s)
	s.Forget(name)
	s.Write(true, "the system keyspaces are looked at", func(r *ledger.Ring, _ *ledger.Step) {
		r.SystemKeyspaces, r.JoinedAt = true, time.Time{}
		if last {
			r.ForgetDatacenter(s.Datacenters()[0])
		}
	})
	s.Close(true, v1alpha1.StepSucceeded, "node "+name)
	s.Event("NodeLeft", "node %s has left", name)
	return plan.Acting("node %s has left", name)
}

// isLast says that no other member is in the datacenter of the node.
func isLast(v *assess.View, s *procedure.Step) bool {
	return !slices.ContainsFunc(v.Members(), func(other string) bool {
		return !s.Has(other) && v.DatacenterOf(other) == s.Datacenters()[0]
	})
}
