package keyspaces

import (
	"slices"

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

// Raise gives the system keyspaces as many replicas as keyspaces of the user are to have: a role
// that has one replica is lost with one node. Where they have as many already nothing is done.
func Raise() procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.RaiseSystemKeyspaces, Class: ledger.Maintenance,
		Runs: []v1alpha1.OperationType{v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationRepair},
		Due:  due,
		Stages: []procedure.Stage{{Name: ledger.StageKeyspaces, Run: raise},
			{Name: ledger.StageOperations, Run: repair}},
	}
}

func due(v *assess.View) *procedure.Proposal {
	if !isDue(v) {
		return nil
	}
	view := v.AnyRing()
	up := v.UpAmong(v.Members())
	later := v.Ledger.PostponedOn(ledger.RaiseSystemKeyspaces)
	names := slices.DeleteFunc(up, func(name string) bool {
		return v.Ledger.IsPostponed(ledger.RaiseSystemKeyspaces, name, v.Now)
	})
	p := &procedure.Proposal{What: "the system keyspaces are to get more replicas"}
	switch few := view != nil && (tooFew(view, v.SystemReplication()) || len(gone(v)) > 0); {
	case view == nil:
		p.Wait = "waiting for a member that answers"
	case !few && len(later) == 0:
		p.Settled = &procedure.Settled{Why: "the system keyspaces have enough replicas",
			Change: func(r *ledger.Ring) { note(v, r) }}
	case len(up) < len(v.Ledger.Members):
		p.Wait = "until all members are up: the system keyspaces get more replicas"
	case few:
		p.Open = opening(ledger.StageKeyspaces, names)
	default: // the repair of some nodes was postponed
		p.Open = opening(ledger.StageOperations,
			slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(later, name) }))
	}
	if p.Open == nil && p.Wait == "" && p.Settled == nil {
		return nil // all of it is postponed
	}
	return p
}

func opening(stage ledger.Stage, names []string) func() (*procedure.Opening, []guard.Refusal) {
	if len(names) == 0 {
		return nil
	}
	what := "the system keyspaces get more replicas on " + words.Plural(len(names), "node")
	return func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: stage, Nodes: names, Why: string(ledger.RaiseSystemKeyspaces),
			Event: string(ledger.RaiseSystemKeyspaces), EventMessage: what, ResultMessage: what,
		}, nil
	}
}

// isDue says that nodes have joined, or that the user wants more replicas, since the system
// keyspaces were set.
func isDue(v *assess.View) bool {
	if v.Ledger.SystemKeyspaces {
		return true
	}
	for dc, factor := range v.UsedReplication() {
		if was, known := v.Ledger.Replication[dc]; known && was < factor {
			return true
		}
	}
	return false
}

// note that the system keyspaces have their replicas.
func note(v *assess.View, r *ledger.Ring) {
	r.SystemKeyspaces, r.Replication = false, v.UsedReplication()
}

// tooFew says that a system keyspace has fewer replicas than wanted.
func tooFew(view *facts.Ring, wanted map[string]int32) bool {
	for _, name := range ring.SystemKeyspaces() {
		text, known := view.Keyspaces[name]
		if !known {
			continue
		}
		have, err := ring.ParseReplication(text)
		if err != nil {
			continue
		}
		for dc, n := range wanted {
			if have.Factor(dc) < int(n) {
				return true
			}
		}
	}
	return false
}

// gone are the datacenters, by their names in Cassandra, in which system keyspaces have replicas,
// and that nobody knows: no member sees a node there, no record is of one, and the spec lacks them.
func gone(v *assess.View) map[string]int32 {
	view, out := v.AnyRing(), map[string]int32{}
	if view == nil {
		return out
	}
	known := map[string]bool{}
	for _, e := range view.Endpoints {
		known[e.Datacenter] = known[e.Datacenter] || e.Status != facts.StatusLeft && e.Status != facts.StatusRemoved
	}
	for _, n := range v.Records() {
		if n.Record.Spec.State != v1alpha1.StateDecommissioned {
			known[n.Record.Spec.Configuration.DatacenterName] = true
		}
	}
	for i := range v.Cluster.Spec.Datacenters {
		known[render.DatacenterName(&v.Cluster.Spec.Datacenters[i])] = true
	}
	for _, name := range ring.SystemKeyspaces() {
		have, err := ring.ParseReplication(view.Keyspaces[name])
		if err != nil || have.Strategy() != ring.NetworkTopologyStrategy {
			continue
		}
		for _, dc := range have.Datacenters() {
			if !known[dc] {
				out[dc] = 0
			}
		}
	}
	return out
}

// raise has one member alter them: without datacenters that have left, and with as many replicas as
// they are to have.
func raise(v *assess.View, s *procedure.Step) plan.Result {
	if len(s.Wave()) == 0 {
		return abandon(s)
	}
	if gone := gone(v); len(gone) > 0 {
		r, over := s.RunOnOne(procedure.Operation{
			Purpose: "gone", Type: v1alpha1.OperationAlterSystemKeyspaces,
			Arguments: &v1alpha1.OperationArguments{Replication: gone, Exact: true},
		}, s.Wave(), "takes a datacenter that has left out of the system keyspaces")
		if over && s.ClearOperations(s.Wave()) {
			return plan.Acting("the operation is over")
		}
		return r
	}
	return s.Alter(procedure.Operation{
		Purpose: "keyspaces", Type: v1alpha1.OperationAlterSystemKeyspaces,
		Arguments: &v1alpha1.OperationArguments{Replication: v.SystemReplication()},
	}, s.Wave(), ledger.StageOperations, "gives the system keyspaces more replicas")
}

// repair each member in turn, so that the new replicas hold what the old ones do: of the ranges of
// which it is the first replica, so that each is compared once.
func repair(v *assess.View, s *procedure.Step) plan.Result {
	names := s.Wave()
	if len(names) == 0 {
		return abandon(s)
	}
	r, over := repairInTurn(s, names, "the system keyspaces are repaired")
	if !over {
		return r
	}
	if s.ClearOperations(names) {
		return plan.Acting("the operations are over")
	}
	s.Write(false, "the system keyspaces are repaired", func(r *ledger.Ring, _ *ledger.Step) {
		if r.Resume(ledger.RaiseSystemKeyspaces, names...); len(r.PostponedOn(ledger.RaiseSystemKeyspaces)) == 0 {
			note(v, r)
		}
	})
	s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(names), "node"))
	s.Event("SystemKeyspacesRaised", "the system keyspaces have as many replicas as there are nodes for")
	return plan.Nothing()
}

func repairInTurn(s *procedure.Step, names []string, what string) (plan.Result, bool) {
	return s.RunInTurn(procedure.Operation{
		Purpose: "repair", Type: v1alpha1.OperationRepair,
		Arguments: &v1alpha1.OperationArguments{Keyspaces: ring.SystemKeyspaces(), Full: true, PrimaryRange: true},
	}, procedure.OneAtATime(names), what)
}

// abandon a step whose operation failed too often on every node. It stays due.
func abandon(s *procedure.Step) plan.Result {
	s.Close(true, v1alpha1.StepWithdrawn, "it failed on every node")
	return plan.Acting("the system keyspaces are left for later")
}
