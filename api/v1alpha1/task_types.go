package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CassandraTask runs one operation on nodes of a cluster, once each. Users create and delete it.
// The operator writes the status, which has the result of each node, and deletes it when its time
// is over.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=casstask,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
type CassandraTask struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is to be done. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`the spec of a CassandraTask cannot be changed: create another one`
	Spec CassandraTaskSpec `json:"spec"`
	// Status is how far it has come. Only the operator writes it.
	// +optional
	Status CassandraTaskStatus `json:"status,omitzero"`
}

// CassandraTaskList is a list of tasks.
//
// +kubebuilder:object:root=true
type CassandraTaskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraTask `json:"items"`
}

// CassandraTaskSpec is what is to be done in which cluster.
type CassandraTaskSpec struct {
	// Cluster whose nodes are meant, in the namespace of the task.
	// +required
	Cluster TaskCluster `json:"cluster"`

	TaskTemplate `json:",inline"`
}

// TaskTemplate is what is to be done, and on which nodes: on all members of the ring if nothing
// selects some of them.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.nodes) || !has(self.datacenters) && !has(self.racks)`,message=`nodes is not allowed with datacenters or racks: name the nodes alone`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Repair' || !has(self.primaryRange)`,message=`primaryRange is for Repair alone`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Repair' || !has(self.incremental)`,message=`incremental is for Repair alone`
// +kubebuilder:validation:XValidation:rule=`self.type != 'Repair' || self.concurrency == 1`,message=`concurrency must be 1 for Repair: a repair of one node keeps its replicas busy, too`
// +kubebuilder:validation:XValidation:rule=`!has(self.tables) || has(self.keyspaces) && size(self.keyspaces) == 1`,message=`tables needs one of keyspaces: the one that they are in`
// +kubebuilder:validation:XValidation:rule=`!(self.type in ['ClearSnapshot', 'InvalidateCaches', 'Rebuild', 'Restart', 'Replace', 'Remove', 'ResetSuperuser']) || !has(self.tables)`,message=`tables is not for a task of this type`
// +kubebuilder:validation:XValidation:rule=`!(self.type in ['InvalidateCaches', 'Restart', 'Replace', 'Remove', 'ResetSuperuser']) || !has(self.keyspaces)`,message=`keyspaces is not for InvalidateCaches, Restart, Replace, Remove and ResetSuperuser: they are about the whole node`
// +kubebuilder:validation:XValidation:rule=`self.type != 'ResetSuperuser' || !has(self.nodes) && !has(self.datacenters) && !has(self.racks)`,message=`nodes, datacenters and racks are not for ResetSuperuser: it is about the whole ring`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Compact' || !has(self.split)`,message=`split is for Compact alone`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'ClearSnapshot') == has(self.tag)`,message=`tag is required for ClearSnapshot, and not allowed for the others: Helenus gives each Snapshot a tag of its own, and the results of its nodes name it`
// +kubebuilder:validation:XValidation:rule=`!has(self.tag) || !self.tag.startsWith('helenus-backup-') && !self.tag.startsWith('helenus-restore-')`,message=`tags that begin with helenus-backup- or helenus-restore- are those of backups and restores, which no ClearSnapshot removes`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Snapshot' || !has(self.snapshotTTL)`,message=`snapshotTTL is for Snapshot alone`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'Rebuild') == has(self.sourceDatacenter)`,message=`sourceDatacenter is required for Rebuild, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'RebuildIndex') == has(self.indexes)`,message=`indexes is required for RebuildIndex, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type != 'RebuildIndex' || has(self.tables) && size(self.tables) == 1`,message=`RebuildIndex needs one of keyspaces and one of tables: those of the indexes`
// +kubebuilder:validation:XValidation:rule=`self.type != 'Restart' || self.concurrency == 1 && self.maxAttempts == 3`,message=`concurrency and maxAttempts are not for Restart: spec.disruption of the cluster says how many nodes are down at once`
// +kubebuilder:validation:XValidation:rule=`!(self.type in ['Replace', 'Remove']) || has(self.nodes) && size(self.nodes) == 1 && self.concurrency == 1 && self.maxAttempts == 3`,message=`Replace and Remove need one of nodes, and neither concurrency nor maxAttempts: create a task for each node, they are done one after the other`
type TaskTemplate struct {
	// Type of what is to be done.
	// +required
	Type TaskType `json:"type"`

	// Datacenters by name. Empty: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=20
	Datacenters []string `json:"datacenters,omitempty"`

	// Racks by name, of those datacenters. Empty: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=20
	Racks []string `json:"racks,omitempty"`

	// Nodes by the names of their CassandraNodes. Empty: all of the datacenters and racks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Nodes []string `json:"nodes,omitempty"`

	// Keyspaces by name. Empty: all that the ring replicates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=67
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// Tables by name, of the one keyspace that is named. Empty: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Tables []string `json:"tables,omitempty"`

	// Indexes of the table that RebuildIndex builds again.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Indexes []string `json:"indexes,omitempty"`

	// Split has Compact leave several SSTables in place of one, each half as large as the one
	// before: one that is very large is not compacted again for long.
	// +optional
	Split *bool `json:"split,omitempty"`

	// Tag of the snapshot that ClearSnapshot removes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Tag string `json:"tag,omitempty"`

	// SnapshotTTL is how long Cassandra keeps a Snapshot. Not set: until a ClearSnapshot.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1m') && duration(self) <= duration('8760h')`,message=`snapshotTTL must be from 1m to 8760h`
	SnapshotTTL *metav1.Duration `json:"snapshotTTL,omitempty"`

	// SourceDatacenter is the datacenter that Rebuild streams from, by its name in the spec of the
	// cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	SourceDatacenter string `json:"sourceDatacenter,omitempty"`

	// PrimaryRange limits a Repair to the ranges of which each node is the first replica: on all
	// members of the ring it compares each range once.
	// +optional
	PrimaryRange *bool `json:"primaryRange,omitempty"`

	// Incremental has a Repair compare only what no incremental repair has compared before, and
	// mark it as repaired on all replicas. It does not count for spec.repair of the cluster: what a
	// replica has lost of what is marked is not found. Default: false.
	// +optional
	Incremental *bool `json:"incremental,omitempty"`

	// Concurrency is how many nodes work at once. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Concurrency int32 `json:"concurrency,omitempty"`

	// MaxAttempts is how often it is begun on a node before that node counts as failed; the others
	// go on. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	MaxAttempts int32 `json:"maxAttempts,omitempty"`

	// Deadline is how long the task may take from when it is its turn. On nodes that are not done
	// by then it fails: what has begun is cancelled where Cassandra can. At most 168h.
	// Default: 24h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1s') && duration(self) <= duration('168h')`,message=`deadline must be from 1s to 168h`
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// TTLAfterFinished is how long the task stays when it has finished; the operator deletes it
	// then. Not set: until somebody deletes it. At most 8760h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('0s') && duration(self) <= duration('8760h')`,message=`ttlAfterFinished must be from 0s to 8760h`
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
}

// TaskCluster names the cluster of a task.
type TaskCluster struct {
	// Name of the CassandraCluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// TaskType is what a task does on each node.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule=`self != 'Drain'`,message=`Drain is no task: a drained node serves nobody until its JVM is restarted. Use Restart, which drains each node before`
// +kubebuilder:validation:XValidation:rule=`self != 'Move'`,message=`Move is no task: nodes have several tokens each, and Cassandra moves none of these. To spread data otherwise, add nodes`
// +kubebuilder:validation:XValidation:rule=`self != 'Assassinate'`,message=`Assassinate is no task: Helenus assassinates the stale endpoints of failed joins by itself. To take a member that is lost out of the ring, use Remove`
// +kubebuilder:validation:XValidation:rule=`self in ['Drain', 'Move', 'Assassinate', 'Flush', 'Cleanup', 'UpgradeSSTables', 'Repair', 'Snapshot', 'ClearSnapshot', 'Compact', 'GarbageCollect', 'Scrub', 'Verify', 'InvalidateCaches', 'RebuildIndex', 'Rebuild', 'Restart', 'Replace', 'Remove', 'ResetSuperuser']`,message=`type must be one of Flush, Cleanup, UpgradeSSTables, Repair, Snapshot, ClearSnapshot, Compact, GarbageCollect, Scrub, Verify, InvalidateCaches, RebuildIndex, Rebuild, Restart, Replace, Remove, ResetSuperuser`
type TaskType string

// The types. Each but Restart, Replace, Remove and ResetSuperuser is the operation of the same
// name.
const (
	// TaskFlush writes what is in memory to the disk.
	TaskFlush TaskType = "Flush"
	// TaskCleanup removes the data that the node no longer owns.
	TaskCleanup TaskType = "Cleanup"
	// TaskUpgradeSSTables rewrites the SSTables that have another format than new ones get.
	TaskUpgradeSSTables TaskType = "UpgradeSSTables"
	// TaskRepair makes the replicas of the node's ranges the same: nodetool repair --full, or
	// without --full if it is incremental.
	TaskRepair TaskType = "Repair"
	// TaskSnapshot writes what is in memory to the disk, and keeps the SSTables under a tag.
	TaskSnapshot TaskType = "Snapshot"
	// TaskClearSnapshot removes what was kept under a tag.
	TaskClearSnapshot TaskType = "ClearSnapshot"
	// TaskCompact merges the SSTables of each table.
	TaskCompact TaskType = "Compact"
	// TaskGarbageCollect rewrites SSTables without what later ones delete or replace.
	TaskGarbageCollect TaskType = "GarbageCollect"
	// TaskScrub rewrites SSTables without what cannot be read: the node must be repaired then.
	TaskScrub TaskType = "Scrub"
	// TaskVerify compares SSTables with their checksums.
	TaskVerify TaskType = "Verify"
	// TaskInvalidateCaches empties the caches of keys, rows and counters.
	TaskInvalidateCaches TaskType = "InvalidateCaches"
	// TaskRebuildIndex builds indexes of a table again.
	TaskRebuildIndex TaskType = "RebuildIndex"
	// TaskRebuild streams the data of the node's ranges from another datacenter.
	TaskRebuild TaskType = "Rebuild"
	// TaskRestart restarts the JVM: by a roll-out, with all of its guards.
	TaskRestart TaskType = "Restart"
	// TaskReplace gives the disk of the node up: another member takes its place, on new volumes.
	TaskReplace TaskType = "Replace"
	// TaskRemove removes a member that is down for good from the ring: nodetool removenode.
	TaskRemove TaskType = "Remove"
	// TaskResetSuperuser gives the superuser the password of its Secret, whatever password it has:
	// by the role helenus_root, which each node imports again. It has succeeded on a node that has
	// proven the login.
	TaskResetSuperuser TaskType = "ResetSuperuser"
)

// TaskTypes are all that there are.
func TaskTypes() []TaskType {
	return []TaskType{TaskFlush, TaskCleanup, TaskUpgradeSSTables, TaskRepair, TaskSnapshot, TaskClearSnapshot,
		TaskCompact, TaskGarbageCollect, TaskScrub, TaskVerify, TaskInvalidateCaches, TaskRebuildIndex, TaskRebuild,
		TaskRestart, TaskReplace, TaskRemove, TaskResetSuperuser}
}

// BackupTagPrefix begins the tags of snapshots that belong to backups.
const BackupTagPrefix = "helenus-backup-"

// TaskPhase is how far a task has come, or a node of it.
//
// +kubebuilder:validation:MaxLength=64
type TaskPhase string

// The phases. Succeeded, Failed and LeftOut are final.
const (
	// TaskPending – it has not begun.
	TaskPending TaskPhase = "Pending"
	// TaskRunning – it has begun.
	TaskRunning TaskPhase = "Running"
	// TaskSucceeded – done: on every node.
	TaskSucceeded TaskPhase = "Succeeded"
	// TaskFailed – over, and not done: on some node at least.
	TaskFailed TaskPhase = "Failed"
	// TaskLeftOut – a backup is taken without the node, which is down or has lost its snapshot: the
	// others have a quorum of each of its ranges.
	TaskLeftOut TaskPhase = "LeftOut"
)

// Final says that it does not change any more.
func (p TaskPhase) Final() bool { return p == TaskSucceeded || p == TaskFailed || p == TaskLeftOut }

// CassandraTaskStatus is how far a task has come.
type CassandraTaskStatus struct {
	// ObservedGeneration is the generation of the spec that it is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the task.
	// +optional
	Phase TaskPhase `json:"phase,omitempty"`

	// Message says what happens, what is waited for, or what went wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// Progress is how many of its nodes are done, such as 2/3.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// Total, Succeeded and Failed count its nodes.
	// +optional
	Total int32 `json:"total,omitempty"`
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// StartedAt is when it was its turn. The deadline counts from then.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the phase became final.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Conditions: Reconciling until it has finished, then Complete or Failed, and Stalled with
	// Failed. Each is there only while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Nodes of the task, by name, each with its result.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=1000
	Nodes []TaskNode `json:"nodes,omitempty"`
}

// MaxTaskNodes is how many nodes a task can have.
const MaxTaskNodes = 1000

// TaskNode is the result of one node.
type TaskNode struct {
	// Node is the name of the CassandraNode.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node"`

	// Phase of it there.
	// +required
	Phase TaskPhase `json:"phase"`

	// Message says in the words of the node what was done, or what went wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Attempts is how often it was begun there.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// Operation is the id of the last attempt, in status.operations of the CassandraNode.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Operation string `json:"operation,omitempty"`

	// HostID is that of the member which Replace or Remove is about.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	HostID string `json:"hostID,omitempty"`

	// StartedAt is when it was begun first.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the phase became final.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// Finished says that the task has ended for good.
func (s *CassandraTaskStatus) Finished() bool { return s.Phase.Final() }
