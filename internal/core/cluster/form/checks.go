package form

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// mostFailedChecks is how often a ring may fail to answer before a person is told that it will not:
// a read may time out while files are compacted.
const mostFailedChecks = 5

// checked is the stage that comes before client traffic opens.
func checked(v *assess.View) ledger.Stage {
	if r := v.Cluster.Spec.Restore(); r != nil && len(r.Checks) > 0 {
		return ledger.StageChecks
	}
	return ledger.StageOpen
}

// checkRows has one node ask what a restored ring must answer. It is asked again however often it
// fails.
func checkRows(v *assess.View, s *procedure.Step) plan.Result {
	o := procedure.Operation{
		Purpose: "checks", Type: v1alpha1.OperationCheckRows, Also: ticket.Administer,
		Arguments: &v1alpha1.OperationArguments{Checks: v.Cluster.Spec.Restore().Checks},
	}
	if v.AsksForPassword() {
		o.Arguments.SuperuserSecret = v.AppliedSuperuser()
	}
	r, over := s.RunOnOne(o, s.Wave(), "checks the rows")
	if over {
		s.Advance(false, "the rows are checked", ledger.StageOpen)
		return plan.Acting("the rows are checked")
	}
	for _, name := range s.Wave() {
		n, failed := v.Live(name), s.Attempts(name)
		if n == nil || failed < mostFailedChecks-1 {
			continue
		}
		if is := n.Record.Status.Operation(s.Attempt(o, name)); is != nil && is.Phase == v1alpha1.OperationFailed {
			return s.Refused([]guard.Refusal{{Finding: guard.Finding{Stalled: v1alpha1.ReasonCheckFailed,
				Message: "what was restored is not as bootstrap.restore.checks wants it: " + is.Message}}})
		}
	}
	return r
}
