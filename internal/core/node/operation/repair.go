package operation

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
)

var repair = Kind{
	Type:          v1alpha1.OperationRepair,
	ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationRepair},
	Check:         replicationKnown,
	Unfit: func(r Request, replication ring.Replication) string {
		if len(r.Arguments.Without) > 0 && replication.TotalFactor() < 3 {
			return "has one replica beside the one that is lost"
		}
		if replication.TotalFactor() < 2 {
			return "has one replica, which cannot be compared"
		}
		return ""
	},
}
