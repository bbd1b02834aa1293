package keyspaces

import (
	"maps"
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

// State of a step by which the system keyspaces get fewer replicas.
type State struct {
	// Planned are the factors that were lowered, by the datacenter's name in the spec.
	Planned map[string]int32 `json:"planned"`
}

// Lower gives the system keyspaces fewer replicas in datacenters of which the planned replication
// factor was lowered. They are repaired before, so that each replica that stays has all, and the
// nodes are cleaned up afterwards. More replicas than planned that somebody has given them by hand
// stay.
func Lower(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.LowerSystemKeyspaces, Class: ledger.Maintenance,
		Runs:        []v1alpha1.OperationType{v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationRepair},
		Understands: procedure.Understands[State],
		Due:         func(v *assess.View) *procedure.Proposal { return lowerDue(v, rules) },
		Stages: []procedure.Stage{{Name: ledger.StageOperations, Run: repairAll},
			{Name: ledger.StageKeyspaces, Run: lower}, {Name: ledger.StageClear, Run: endLowering}},
	}
}

func lowerDue(v *assess.View, rules guard.Rules) *procedure.Proposal {
	planned := lowered(v)
	if len(planned) == 0 || slices.ContainsFunc(v.Members(), func(name string) bool {
		return v.Ledger.IsPostponed(ledger.LowerSystemKeyspaces, name, v.Now)
	}) {
		return nil
	}
	view := v.AnyRing()
	p := &procedure.Proposal{What: "the system keyspaces are to get fewer replicas in datacenter " +
		words.List(slices.Sorted(maps.Keys(planned)), 3)}
	switch {
	case view == nil:
		p.Wait = "waiting for a member that answers"
	case !tooMany(view, fewer(v, planned)):
		p.Settled = &procedure.Settled{Why: "the system keyspaces have no more replicas than planned",
			Change: func(r *ledger.Ring) {
				maps.Copy(r.Replication, planned)
				r.Resume(ledger.LowerSystemKeyspaces, v.Members()...)
			}}
	default:
		p.Refusals = guard.Check(procedure.MemberNodes(v), rules.Repair...)
		p.Open = func() (*procedure.Opening, []guard.Refusal) {
			return &procedure.Opening{
				Stage: ledger.StageOperations, Nodes: v.Members(), State: State{planned}, Why: p.What,
				Event: string(ledger.LowerSystemKeyspaces), EventMessage: p.What, ResultMessage: p.What,
			}, nil
		}
	}
	return p
}

// lowered are the planned replication factors that were higher before.
func lowered(v *assess.View) map[string]int32 {
	out := v.PlannedReplication()
	maps.DeleteFunc(out, func(dc string, n int32) bool {
		return !v.Ledger.IsFormed(dc) || n >= v.Ledger.Replication[dc]
	})
	return out
}

// fewer is what the system keyspaces are to have in those datacenters, by their names in Cassandra:
// with fewer members than planned their number.
func fewer(v *assess.View, planned map[string]int32) map[string]int32 {
	out, wanted := map[string]int32{}, v.SystemReplication()
	for dc, n := range planned {
		if spec := v.Datacenter(dc); spec != nil && wanted[render.DatacenterName(spec)] > 0 {
			out[render.DatacenterName(spec)] = min(n, wanted[render.DatacenterName(spec)])
		}
	}
	return out
}

// tooMany says that a system keyspace has more replicas than it is to have.
func tooMany(view *facts.Ring, wanted map[string]int32) bool {
	return slices.ContainsFunc(ring.SystemKeyspaces(), func(name string) bool {
		have, err := ring.ParseReplication(view.Keyspaces[name])
		for dc, n := range wanted {
			if err == nil && have.Strategy() == ring.NetworkTopologyStrategy && have.Factor(dc) > int(n) {
				return true
			}
		}
		return false
	})
}

// repairAll members in turn. When all are repaired the ledger has the lower factor: a higher one is
// a raise from then on.
func repairAll(v *assess.View, s *procedure.Step) plan.Result {
	planned := procedure.State[State](s).Planned
	changed := !v.SpecRejected && !maps.Equal(lowered(v), planned)
	if changed || !slices.Equal(s.Wave(), v.Members()) {
		return abandonLowering(v, s)
	}
	r, over := repairInTurn(s, v.Members(), "the system keyspaces are repaired before they get fewer replicas")
	switch {
	case !over || len(s.Wave()) < len(v.Members()):
		return r
	case s.ClearOperations(v.Members()):
		return plan.Acting("the operations are over")
	}
	s.Write(false, "the system keyspaces are repaired", func(r *ledger.Ring, own *ledger.Step) {
		maps.Copy(r.Replication, planned)
		own.Advance(ledger.StageKeyspaces, v.Now)
	})
	return plan.Acting("the system keyspaces are repaired")
}

// abandonLowering before anything is altered: the spec or the members have changed, or a repair was
// postponed. It stays due as long as the spec says so.
func abandonLowering(v *assess.View, s *procedure.Step) plan.Result {
	const why = "the plan or the members have changed, or a repair was postponed"
	s.Describe(0, "%s", why)
	if waiting := s.CancelOn(v.Members(), why); len(waiting) > 0 {
		return plan.Waiting("%s: waiting for %s", why, words.List(waiting, 3))
	}
	if s.ClearOperations(v.Members()) {
		return plan.Acting("the operations are over")
	}
	s.Close(true, v1alpha1.StepWithdrawn, why)
	return plan.Acting("%s", why)
}

func lower(v *assess.View, s *procedure.Step) plan.Result {
	to := fewer(v, procedure.State[State](s).Planned)
	if len(to) == 0 {
		s.Advance(false, "those datacenters have left", ledger.StageClear)
		return plan.Acting("those datacenters have left")
	}
	return s.Alter(procedure.Operation{
		Purpose: "keyspaces", Type: v1alpha1.OperationAlterSystemKeyspaces, NeverPostponed: true,
		Arguments: &v1alpha1.OperationArguments{Replication: to, Exact: true},
	}, v.Members(), ledger.StageClear, "gives the system keyspaces fewer replicas")
}

// endLowering has the nodes cleaned up that have lost replicas: after a later raise what was
// deleted meanwhile would be back.
func endLowering(_ *assess.View, s *procedure.Step) plan.Result {
	s.Write(false, "the system keyspaces have fewer replicas", func(r *ledger.Ring, _ *ledger.Step) {
		r.Cleanup = slices.Sorted(maps.Keys(r.Members))
		r.Resume(ledger.LowerSystemKeyspaces, s.Nodes()...)
	})
	s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(s.Nodes()), "node"))
	s.Event("SystemKeyspacesLowered", "the system keyspaces have no more replicas than planned")
	return plan.Nothing()
}
