package operation

import "helenus.io/helenus/api/v1alpha1"

//nolint:gochecknoglobals // an entry of the table
var upgradeSSTables = Kind{
	Type: v1alpha1.OperationUpgradeSSTables,
	ConflictsWith: []v1alpha1.OperationType{
		v1alpha1.OperationUpgradeSSTables, v1alpha1.OperationCleanup, v1alpha1.OperationRebuild,
		v1alpha1.OperationRepair,
	},
	AnyStrategy: true, Local: true,
}
