package repair

import (
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// Repair runs nodetool repair --full of all replicated keyspaces on nodes for which that is due.
func Repair(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.Repair, Class: ledger.Maintenance, Runs: []v1alpha1.OperationType{v1alpha1.OperationRepair},
		Due:    func(v *assess.View) *procedure.Proposal { return due(v, rules) },
		Stages: []procedure.Stage{{Name: ledger.StageOperations, Run: run}},
	}
}

func due(v *assess.View, rules guard.Rules) *procedure.Proposal {
	var nodes []string
	for _, d := range v.Ledger.RepairDue {
		if v.RepairAsked(d.Node) && !v.IsPostponed(ledger.Repair, d.Node, v.Members()...) && v.Live(d.Node) != nil {
			nodes = append(nodes, d.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return &procedure.Proposal{
		What: words.Plural(len(nodes), "node") + " to repair", Refusals: guard.Check(procedure.MemberNodes(v),
			rules.Repair...),
		Open: procedure.OpenOn(ledger.Repair, nodes, "repairing"),
	}
}

func run(_ *assess.View, s *procedure.Step) plan.Result {
	r, over := s.RunInTurn(procedure.Operation{Purpose: "repair", Type: v1alpha1.OperationRepair,
		Arguments: &v1alpha1.OperationArguments{Full: true}}, procedure.OneAtATime(s.Wave()), "nodes are repaired")
	if !over {
		return r
	}
	return s.EndMaintenance("nodes are repaired", func(r *ledger.Ring, done func(string) bool) {
		r.RepairDue = slices.DeleteFunc(r.RepairDue, func(d ledger.RepairDue) bool { return done(d.Node) })
	})
}
