package operation

import "helenus.io/helenus/api/v1alpha1"

// Two snapshots may have one tag.
//
//nolint:gochecknoglobals // an entry of the table
var snapshot = Kind{
	Type:          v1alpha1.OperationSnapshot,
	ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationSnapshot},
	AnyStrategy:   true, Local: true,
}
