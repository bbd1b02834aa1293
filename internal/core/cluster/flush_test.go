package cluster

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// flushing is a procedure that is one operation on one node. Nothing of the product is due to
// flush.
func flushing(node string) procedure.Procedure {
	const kind = ledger.Kind("Flush")
	return procedure.Procedure{
		Kind: kind, Class: ledger.Maintenance, Runs: []v1alpha1.OperationType{v1alpha1.OperationFlush},
		Due: func(*assess.View) *procedure.Proposal {
			return &procedure.Proposal{What: "a node to flush", Open: func() (*procedure.Opening, []guard.Refusal) {
				return &procedure.Opening{Stage: ledger.StageOperations, Nodes: []string{node}, Why: "a flush"}, nil
			}}
		},
		Stages: []procedure.Stage{{Name: ledger.StageOperations,
			Run: func(_ *assess.View, s *procedure.Step) plan.Result {
				o := procedure.Operation{Purpose: "flush", Type: v1alpha1.OperationFlush}
				if p := s.Run(o, s.Wave()); len(p.Finished) < len(s.Wave()) {
					return p.Result("flushing %s", node)
				}
				s.ClearOperations(s.Wave())
				s.Close(false, v1alpha1.StepSucceeded, node)
				return plan.Nothing()
			}}},
	}
}

// Steps of maintenance whose operations do not conflict are open side by side, on one node.
func TestAFlushRunsBesideACleanup(t *testing.T) {
	phase := v1alpha1.OperationRunning
	w := cleaning(t, &phase)
	node := w.snapshot.Ledger.Maintenance[0].Nodes[0]
	pass := func() {
		v, draft := viewOf(w), &plan.Draft{Plan: plan.Plan{Wake: interval}}
		e := procedure.NewEngine(v, draft, append(procedures(guard.All()), flushing(node)), guard.Rules{}, nil)
		if e.Maintain(); len(w.snapshot.Ledger.Maintenance) < 2 && phase == v1alpha1.OperationRunning {
			e.Propose("Flush")
		}
		for _, write := range draft.Writes {
			w.do(write)
		}
		w.agents()
	}
	pass()
	if l, asked := w.snapshot.Ledger, w.snapshot.Nodes[node].Record.Spec.Operations; len(l.Maintenance) != 2 ||
		len(asked) != 2 {
		t.Fatalf("operations %+v of %s", asked, ledgerInWords(l))
	}
	phase = v1alpha1.OperationSucceeded
	w.snapshot.Nodes[node].Record.Status.Operations = nil
	for range 4 {
		w.agents()
		pass()
	}
	if l := w.snapshot.Ledger; len(l.Maintenance) != 0 || len(l.Cleanup) != 0 {
		t.Errorf("not over: %s", ledgerInWords(l))
	}
}
