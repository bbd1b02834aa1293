package operation

import (
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A cleanup judges by the replicas what to remove, so it conflicts with a change of those, too.
var cleanup = Kind{
	Type: v1alpha1.OperationCleanup,
	ConflictsWith: []v1alpha1.OperationType{
		v1alpha1.OperationCleanup, v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
		v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAlterSystemKeyspaces,
	},
	FreshView: true,
	Check:     func(r Request) *Refusal { return CleanupRefused(r.View) },
}

// CleanupRefused says why a node may not remove what it does not own by a view; nil if it may.
// While ranges move one can come back: the node that was to take it gives up, and what was removed
// is missing. By a schema that is older than another's it may be about to get what it removes.
func CleanupRefused(view *facts.Ring) *Refusal {
	if changing := view.Changing(); len(changing) > 0 {
		return refuse(v1alpha1.BlockedPendingRanges, "the ring changes: %s", strings.Join(changing, ", "))
	}
	if view.Pending > 0 {
		return refuse(v1alpha1.BlockedPendingRanges, "%d ranges are on their way to new owners", view.Pending)
	}
	if other := view.OtherSchema(); other != "" {
		return refuse(v1alpha1.BlockedSchemaVersionsDiffer, "%s", other)
	}
	return nil
}
