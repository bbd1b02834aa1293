package task

import (
	"cmp"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// taskType is a type of task that is an operation of the same name, or of another one. What that
// conflicts with, what room it needs on the disk, whether the node must be repaired after it and
// how it is cancelled is the agent's to know.
type taskType struct {
	of v1alpha1.TaskType
	// refusals are why it cannot begin; a nil one never refuses.
	refusals func(*assess.View, guard.Rules) []guard.Refusal
	// arguments besides keyspaces and tables.
	arguments func(*assess.View, *v1alpha1.CassandraTask, *v1alpha1.OperationArguments)
	// results are of which operation; empty for the one of the same name. Runs are the operations
	// of the stages before.
	results v1alpha1.OperationType
	runs    []v1alpha1.OperationType
}

func (t *taskType) operation() v1alpha1.OperationType {
	return cmp.Or(t.results, v1alpha1.OperationType(t.of))
}

func (t *taskType) stages() []procedure.Stage {
	own := procedure.Stage{Name: ledger.StageOperations, Run: run}
	if t.of == backup {
		return []procedure.Stage{{Name: ledger.StageSnapshot, Run: takeSnapshots}, own,
			{Name: ledger.StageComplete, Run: complete}, {Name: ledger.StageClear, Run: clearSnapshots}}
	}
	if t.of == restoreTables {
		return []procedure.Stage{{Name: ledger.StageDownload, Run: download},
			{Name: ledger.StageConfirm, Run: download}, {Name: ledger.StageSnapshot, Run: keep},
			{Name: ledger.StageTruncate, Run: empty}, own, {Name: ledger.StageClear, Run: clearSnapshots}}
	}
	if t.of == v1alpha1.TaskResetSuperuser {
		return []procedure.Stage{{Name: ledger.StageSuperuser, Run: importAgain},
			{Name: ledger.StageKeyspaces, Run: resetRoles}, own}
	}
	return []procedure.Stage{own}
}

func (t *taskType) understands() func(*ledger.Step) error {
	if t.of == backup || t.of == restoreTables {
		return procedure.Understands[snapshotted]
	}
	return nil
}

// suspended is what a step of the type does although it is suspended.
func (t *taskType) suspended() func(*assess.View, *procedure.Step) {
	if t.of == backup {
		return meanwhile
	}
	return cancelOver
}

var types = []taskType{
	{of: v1alpha1.TaskFlush},
	{of: v1alpha1.TaskCleanup, refusals: cleanupRefused, arguments: withJobs},
	{of: v1alpha1.TaskUpgradeSSTables, arguments: withJobs},
	{of: v1alpha1.TaskRepair, refusals: repairRefused, arguments: func(_ *assess.View, t *v1alpha1.CassandraTask,
		a *v1alpha1.OperationArguments) {
		a.Full = t.Spec.Incremental == nil || !*t.Spec.Incremental
		a.PrimaryRange = t.Spec.PrimaryRange != nil && *t.Spec.PrimaryRange
	}},
	{of: v1alpha1.TaskSnapshot, arguments: func(_ *assess.View, t *v1alpha1.CassandraTask,
		a *v1alpha1.OperationArguments) {
		a.Tag, a.TTL = SnapshotTag(t), t.Spec.SnapshotTTL
	}},
	{of: v1alpha1.TaskClearSnapshot, arguments: func(_ *assess.View, t *v1alpha1.CassandraTask,
		a *v1alpha1.OperationArguments) {
		a.Tag = t.Spec.Tag
	}},
	{of: v1alpha1.TaskCompact, arguments: func(_ *assess.View, t *v1alpha1.CassandraTask,
		a *v1alpha1.OperationArguments) {
		a.Split = t.Spec.Split != nil && *t.Spec.Split
	}},
	{of: v1alpha1.TaskGarbageCollect, arguments: withJobs},
	{of: v1alpha1.TaskScrub, arguments: withJobs},
	{of: v1alpha1.TaskVerify},
	{of: v1alpha1.TaskInvalidateCaches},
	{of: v1alpha1.TaskRebuildIndex, arguments: func(_ *assess.View, t *v1alpha1.CassandraTask,
		a *v1alpha1.OperationArguments) {
		a.Indexes = t.Spec.Indexes
	}},
	// a rebuild streams from any of the members, and one that is down may be the only one
	{of: v1alpha1.TaskRebuild, refusals: repairRefused, arguments: func(v *assess.View, t *v1alpha1.CassandraTask,
		a *v1alpha1.OperationArguments) {
		a.SourceDatacenter = t.Spec.SourceDatacenter
		if dc := v.Datacenter(t.Spec.SourceDatacenter); dc != nil {
			a.SourceDatacenter = render.DatacenterName(dc)
		}
	}},
	{of: v1alpha1.TaskResetSuperuser, refusals: resetRefused, results: v1alpha1.OperationProveLogin,
		arguments: func(v *assess.View, _ *v1alpha1.CassandraTask, a *v1alpha1.OperationArguments) {
			a.SuperuserSecret = v.AppliedSuperuser()
		},
		runs: []v1alpha1.OperationType{v1alpha1.OperationImportSuperuser, v1alpha1.OperationSetRoles}},
	{of: backup, results: v1alpha1.OperationUpload,
		runs: []v1alpha1.OperationType{v1alpha1.OperationSnapshot, v1alpha1.OperationCompleteBackup,
			v1alpha1.OperationClearSnapshot}},
	// rows are streamed to all of their owners, as they are then
	{of: restoreTables, refusals: backupRefused, results: v1alpha1.OperationLoadTables,
		runs: []v1alpha1.OperationType{v1alpha1.OperationStageTables, v1alpha1.OperationSnapshot,
			v1alpha1.OperationTruncate, v1alpha1.OperationClearSnapshot}},
}

// typeOf is the row of a type; nil for one that is no operation.
func typeOf(t v1alpha1.TaskType) *taskType {
	if i := slices.IndexFunc(types, func(row taskType) bool { return row.of == t }); i >= 0 {
		return &types[i]
	}
	return nil
}

// withJobs has a node rewrite two SSTables at a time, as nodetool does.
func withJobs(_ *assess.View, _ *v1alpha1.CassandraTask, a *v1alpha1.OperationArguments) { a.Jobs = 2 }

func cleanupRefused(v *assess.View, rules guard.Rules) []guard.Refusal {
	return guard.Check(procedure.TheseNodes(v, v.UpAmong(v.Members())...), rules.Cleanup...)
}

func repairRefused(v *assess.View, rules guard.Rules) []guard.Refusal {
	return guard.Check(procedure.MemberNodes(v), rules.Repair...)
}

// longestName of a task that is part of a tag; the file system bounds what Cassandra makes of it.
const longestName = 100

// SnapshotTag is the tag of the snapshots of a task: that of no other, nor of a backup.
func SnapshotTag(t *v1alpha1.CassandraTask) string { return tagOf("task", t) }

func tagOf(kind string, t *v1alpha1.CassandraTask) string {
	name := t.Name[:min(len(t.Name), longestName)]
	return kind + "-" + name + "-" + string(t.UID)[:min(len(t.UID), 8)]
}
