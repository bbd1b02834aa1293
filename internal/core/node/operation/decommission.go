package operation

import (
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A decommission streams, so it conflicts with what decides by the ring, or changes who holds what.
// One that failed leaves the mode LEAVING (4.1) or DECOMMISSION_FAILED (5.0), and can be asked for
// again.
var decommission = Kind{
	Type: v1alpha1.OperationDecommission,
	ConflictsWith: []v1alpha1.OperationType{
		v1alpha1.OperationDecommission, v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAlterKeyspaces,
		v1alpha1.OperationCleanup, v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
	},
	Modes:     []facts.Mode{facts.ModeLeaving, facts.ModeDecommissionFailed},
	FreshView: true,
	Check:     func(r Request) *Refusal { return leaveRefused(r.View) },
}

// leaveRefused says why a node may not leave by its own view; nil if it may. A member that is down
// can take nothing over, and neither can one whose own place in the ring changes. What is streamed
// by a schema that others do not have yet is missing there.
func leaveRefused(view *facts.Ring) *Refusal {
	var others []string
	for _, e := range view.Endpoints {
		switch {
		case e.HostID == view.HostID:
		case e.InFlight():
			others = append(others, e.Address+" is "+string(e.Status))
		case e.Member() && (!e.Live || e.Status != facts.StatusNormal):
			others = append(others, e.Address+" is down")
		}
	}
	if len(others) > 0 {
		return refuse(v1alpha1.BlockedMemberNotNormal, "every other member takes a part of the data over: %s",
			strings.Join(others, ", "))
	}
	if view.Mode == facts.ModeNormal && view.Pending > 0 {
		return refuse(v1alpha1.BlockedPendingRanges, "%d ranges are on their way to new owners", view.Pending)
	}
	if other := view.OtherSchema(); other != "" {
		return refuse(v1alpha1.BlockedSchemaVersionsDiffer, "%s", other)
	}
	return nil
}
