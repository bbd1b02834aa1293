package upgradesstables

import (
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// jobs is how many SSTables a node rewrites at a time, as nodetool has it.
const jobs = 2

// UpgradeSSTables runs nodetool upgradesstables on members whose SSTables may have another format
// than they write now: on the nodes of one rack at a time, so that the others serve at full speed.
func UpgradeSSTables() procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.UpgradeSSTables, Class: ledger.Maintenance,
		Runs: []v1alpha1.OperationType{v1alpha1.OperationUpgradeSSTables},
		Due:  due, Stages: []procedure.Stage{{Name: ledger.StageOperations, Run: run}},
	}
}

func due(v *assess.View) *procedure.Proposal {
	nodes := slices.DeleteFunc(slices.Clone(v.Ledger.UpgradeSSTables), func(name string) bool {
		return v.Ledger.Members[name] == "" || v.IsPostponed(ledger.UpgradeSSTables, name, name)
	})
	if len(nodes) == 0 {
		return nil
	}
	if v.Cluster.Spec.Automation.UpgradeSSTables == v1alpha1.AutomationRecommend {
		return &procedure.Proposal{Recommend: &v1alpha1.Recommendation{
			Operation: string(v1alpha1.OperationUpgradeSSTables), Nodes: nodes,
			Message: "the format of new SSTables has changed, and these nodes may hold others; run nodetool " +
				"upgradesstables on them, or set automation.upgradeSSTables to Automatic"}}
	}
	p := &procedure.Proposal{What: words.Plural(len(nodes), "node") + " to upgrade the SSTables of"}
	names := procedure.FirstRack(v, v.UpAmong(nodes))
	if len(names) == 0 {
		p.Wait = "until a node whose SSTables are to be upgraded is up"
		return p
	}
	p.Open = procedure.OpenOn(ledger.UpgradeSSTables, names, "upgrading the SSTables of")
	return p
}

func run(_ *assess.View, s *procedure.Step) plan.Result {
	r, over := s.RunInTurn(procedure.Operation{Purpose: "upgrade", Type: v1alpha1.OperationUpgradeSSTables,
		Arguments: &v1alpha1.OperationArguments{Jobs: jobs}}, [][]string{s.Wave()}, "SSTables are upgraded")
	if !over {
		return r
	}
	return s.EndMaintenance("they have no SSTables in another format", func(r *ledger.Ring, done func(string) bool) {
		r.UpgradeSSTables = slices.DeleteFunc(r.UpgradeSSTables, done)
	})
}
