package operation

import (
	"fmt"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A cleanup judges by the replicas what to remove, so it conflicts with a change of those, too.
//
//nolint:gochecknoglobals // an entry of the table
var cleanup = Kind{
	Type: v1alpha1.OperationCleanup,
	ConflictsWith: []v1alpha1.OperationType{
		v1alpha1.OperationCleanup, v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
		v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAlterSystemKeyspaces,
	},
	FreshView: true,
	Check: func(r Request) *Refusal {
		if why := RangesMove(r.View); why != "" {
			return refuse(v1alpha1.BlockedPendingRanges, "%s", why)
		}
		return nil
	},
}

// RangesMove says why a node may not remove what it does not own by a view; empty if it may. While
// ranges move one can come back: the node that was to take it gives up, and what was removed is
// missing.
func RangesMove(view *facts.Ring) string {
	if changing := view.Changing(); len(changing) > 0 {
		return "the ring changes: " + strings.Join(changing, ", ")
	}
	if view.Pending > 0 {
		return fmt.Sprintf("%d ranges are on their way to new owners", view.Pending)
	}
	return ""
}
