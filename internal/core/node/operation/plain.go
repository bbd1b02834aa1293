package operation

import "helenus.io/helenus/api/v1alpha1"

// besideRewrites are what does not run beside an operation that rewrites or reads all SSTables of a
// table: each has them to itself.
var besideRewrites = []v1alpha1.OperationType{
	v1alpha1.OperationCleanup, v1alpha1.OperationUpgradeSSTables, v1alpha1.OperationCompact,
	v1alpha1.OperationGarbageCollect, v1alpha1.OperationScrub, v1alpha1.OperationVerify,
	v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
}

// plain are the operations that may begin always, on whatever keyspace. Two snapshots may have one
// tag.
var plain = []Kind{
	{Type: v1alpha1.OperationFlush, AnyStrategy: true},
	{Type: v1alpha1.OperationSnapshot, AnyStrategy: true, Local: true,
		ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationSnapshot, v1alpha1.OperationClearSnapshot}},
	{Type: v1alpha1.OperationClearSnapshot, AnyStrategy: true, Local: true,
		ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationClearSnapshot}},
	{Type: v1alpha1.OperationUpgradeSSTables, AnyStrategy: true, Local: true, ConflictsWith: besideRewrites},
	{Type: v1alpha1.OperationCompact, AnyStrategy: true, ConflictsWith: besideRewrites},
	{Type: v1alpha1.OperationGarbageCollect, AnyStrategy: true, ConflictsWith: besideRewrites},
	{Type: v1alpha1.OperationScrub, AnyStrategy: true, Local: true, ConflictsWith: besideRewrites,
		RepairDue: v1alpha1.RepairScrubbed},
	{Type: v1alpha1.OperationVerify, AnyStrategy: true, Local: true, ConflictsWith: besideRewrites},
	{Type: v1alpha1.OperationInvalidateCaches},
	{Type: v1alpha1.OperationRebuildIndex, AnyStrategy: true,
		ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationRebuildIndex, v1alpha1.OperationRebuild}},
	{Type: v1alpha1.OperationUpload, ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationUpload}},
	{Type: v1alpha1.OperationCompleteBackup},
	{Type: v1alpha1.OperationStageTables, ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationStageTables,
		v1alpha1.OperationLoadTables}},
	// it streams to those that own a range when it begins
	{Type: v1alpha1.OperationLoadTables, ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationLoadTables,
		v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationDecommission, v1alpha1.OperationRemoveNode}},
	{Type: v1alpha1.OperationTruncate, AnyStrategy: true,
		ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationTruncate, v1alpha1.OperationLoadTables}},
}
