package operation

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
)

var rebuild = Kind{
	Type:          v1alpha1.OperationRebuild,
	ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationRebuild, v1alpha1.OperationRepair},
	Check:         replicationKnown,
	Unfit: func(r Request, replication ring.Replication) string {
		source, own := r.Arguments.SourceDatacenter, r.self().Datacenter
		switch {
		case replication.Strategy() != ring.NetworkTopologyStrategy:
			return ""
		case replication.Factor(source) == 0:
			return "has no replica in the datacenter " + source
		case replication.Factor(own) == 0:
			return "has no replica in the datacenter of this node, " + own
		default:
			return ""
		}
	},
}
