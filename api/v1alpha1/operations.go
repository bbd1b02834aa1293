package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperationType is a one-shot operation that an agent can carry out.
//
// +kubebuilder:validation:Enum=AlterSystemKeyspaces;AlterKeyspaces;Cleanup;Rebuild;Repair;Assassinate;Flush;Snapshot;ClearSnapshot;UpgradeSSTables;Compact;GarbageCollect;Scrub;Verify;InvalidateCaches;RebuildIndex;Decommission;RemoveNode;ImportSuperuser;SetRoles;ProveLogin;SetPassword;KeepRoles;CheckRows;Upload;CompleteBackup;StageTables;LoadTables;Truncate
type OperationType string

const (
	// OperationAlterSystemKeyspaces gives the system keyspaces that hold data of the cluster
	// (system_auth, system_distributed, system_traces) at least arguments.replication, by
	// NetworkTopologyStrategy. What they have more, or elsewhere, stays; with arguments.exact, what
	// they have more in these datacenters goes.
	OperationAlterSystemKeyspaces OperationType = "AlterSystemKeyspaces"
	// OperationAlterKeyspaces gives keyspaces at least the replicas of
	// arguments.keyspaceReplication. What they have more, or elsewhere, stays. A keyspace that is
	// not on NetworkTopologyStrategy is refused: its replicas would move. With arguments.exact,
	// what they have more in these datacenters goes.
	OperationAlterKeyspaces OperationType = "AlterKeyspaces"
	// OperationCleanup removes the data that the node no longer owns from arguments.keyspaces, or
	// from all that are replicated.
	OperationCleanup OperationType = "Cleanup"
	// OperationRebuild streams the data of the node's ranges from arguments.sourceDatacenter: of
	// arguments.keyspaces, or of all that have replicas in both datacenters.
	OperationRebuild OperationType = "Rebuild"
	// OperationRepair makes the replicas of the node's ranges the same: of arguments.keyspaces, or
	// of all that are replicated.
	OperationRepair OperationType = "Repair"
	// OperationAssassinate has the members forget a node that began to join at arguments.endpoint,
	// and does not any more. The node that carries it out waits until it has forgotten that itself:
	// then it takes seconds.
	OperationAssassinate OperationType = "Assassinate"
	// OperationFlush writes what is in memory of arguments.keyspaces, or of all that are
	// replicated, to the disk.
	OperationFlush OperationType = "Flush"
	// OperationSnapshot takes a snapshot of arguments.keyspaces, or of all, under arguments.tag. It
	// replaces one that is there under that tag.
	OperationSnapshot OperationType = "Snapshot"
	// OperationClearSnapshot removes the snapshot that arguments.keyspaces, or all, have under
	// arguments.tag, or what StageTables has downloaded under it.
	OperationClearSnapshot OperationType = "ClearSnapshot"
	// OperationUpgradeSSTables rewrites the SSTables of arguments.keyspaces, or of all, that have
	// another format than new ones get.
	OperationUpgradeSSTables OperationType = "UpgradeSSTables"
	// OperationDecommission has the node stream its data to those that take its place, and leave
	// the ring for good.
	OperationDecommission OperationType = "Decommission"
	// OperationRemoveNode removes the member with arguments.hostID from the ring (nodetool
	// removenode). It is down and never starts again. The new owners of its ranges stream the data
	// from the other replicas.
	OperationRemoveNode OperationType = "RemoveNode"
	// OperationCompact merges the SSTables of each table, into one if arguments.split is not set.
	OperationCompact OperationType = "Compact"
	// OperationGarbageCollect rewrites SSTables without the rows that later ones delete or replace.
	OperationGarbageCollect OperationType = "GarbageCollect"
	// OperationScrub rewrites SSTables without the rows that cannot be read.
	OperationScrub OperationType = "Scrub"
	// OperationVerify compares SSTables with their checksums, and changes nothing.
	OperationVerify OperationType = "Verify"
	// OperationInvalidateCaches empties the caches of keys, rows and counters.
	OperationInvalidateCaches OperationType = "InvalidateCaches"
	// OperationRebuildIndex builds arguments.indexes of the one table again.
	OperationRebuildIndex OperationType = "RebuildIndex"
	// OperationImportSuperuser puts the role helenus_root, with the password of the Secret
	// <cluster>-roles, into the node's system_auth.roles: while CQL is closed, where there is none;
	// with arguments.writtenAt at any time, in place of the one that is there.
	OperationImportSuperuser OperationType = "ImportSuperuser"
	// OperationSetRoles gives the system keyspaces arguments.replication, makes the superuser of
	// arguments.superuserSecret and the operator's role, and locks helenus_root and cassandra.
	OperationSetRoles OperationType = "SetRoles"
	// OperationProveLogin logs in at the node as the superuser of arguments.superuserSecret and,
	// unless arguments.superuserAlone, as the operator's role.
	OperationProveLogin OperationType = "ProveLogin"
	// OperationSetPassword gives the superuser of arguments.superuserSecret the password that is
	// there: by the one before, password.old, unless it works already.
	OperationSetPassword OperationType = "SetPassword"
	// OperationKeepRoles gives arguments.roles the passwords of their Secrets and what they are
	// granted, as the superuser of arguments.superuserSecret, and revokes what they may no longer.
	OperationKeepRoles OperationType = "KeepRoles"
	// OperationCheckRows asks the queries of arguments.checks, where a password is asked for as the
	// superuser of arguments.superuserSecret. It fails at the first answer that is not as it must
	// be.
	OperationCheckRows OperationType = "CheckRows"
	// OperationUpload puts the snapshot of arguments.backup into its store: the files that are not
	// there, then the manifest of the node. A second attempt sends only what is missing.
	OperationUpload OperationType = "Upload"
	// OperationCompleteBackup writes the description of arguments.backup, once the manifest of each
	// of its members is there.
	OperationCompleteBackup OperationType = "CompleteBackup"
	// OperationStageTables downloads what arguments.restore names and this node is to load of it,
	// and checks before that the tables can hold it. Nobody reads it yet.
	OperationStageTables OperationType = "StageTables"
	// OperationLoadTables has Cassandra stream what StageTables has downloaded to the nodes that
	// own it now.
	OperationLoadTables OperationType = "LoadTables"
	// OperationTruncate removes all rows of arguments.tables on all members, each of which must be
	// up.
	OperationTruncate OperationType = "Truncate"
)

// OperationPhase is how far an operation has come.
//
// +kubebuilder:validation:MaxLength=64
type OperationPhase string

const (
	// OperationRunning – begun and journaled.
	OperationRunning OperationPhase = "Running"
	// OperationSucceeded – done.
	OperationSucceeded OperationPhase = "Succeeded"
	// OperationFailed – Cassandra refused it or it ended with an error; message says which.
	OperationFailed OperationPhase = "Failed"
	// OperationInterrupted – the JVM or the agent ended while it ran, and whether it took effect is
	// not known.
	OperationInterrupted OperationPhase = "Interrupted"
	// OperationWithdrawn – it never began and will not.
	OperationWithdrawn OperationPhase = "Withdrawn"
	// OperationCancelled – it had begun, and was ended before it was done: its withdrawal asked for
	// that.
	OperationCancelled OperationPhase = "Cancelled"
)

// OperationIntent runs one operation.
//
// +kubebuilder:validation:XValidation:rule=`self.type == oldSelf.type && has(self.arguments) == has(oldSelf.arguments) && (!has(self.arguments) || self.arguments == oldSelf.arguments) && has(self.notAfter) == has(oldSelf.notAfter) && (!has(self.notAfter) || self.notAfter == oldSelf.notAfter)`,message=`an operation cannot be changed under its id: an id means one thing`
// +kubebuilder:validation:XValidation:rule=`(self.type in ['AlterSystemKeyspaces', 'SetRoles']) == (has(self.arguments) && has(self.arguments.replication) && size(self.arguments.replication) > 0)`,message=`arguments.replication is required for AlterSystemKeyspaces and SetRoles, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type == 'CheckRows' || (self.type in ['SetRoles', 'ProveLogin', 'SetPassword', 'KeepRoles']) == (has(self.arguments) && has(self.arguments.superuserSecret))`,message=`arguments.superuserSecret is required for SetRoles, ProveLogin, SetPassword and KeepRoles, and otherwise allowed for CheckRows alone`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'CheckRows') == (has(self.arguments) && has(self.arguments.checks))`,message=`arguments.checks is required for CheckRows, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'KeepRoles') == (has(self.arguments) && has(self.arguments.roles))`,message=`arguments.roles is required for KeepRoles, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type in ['Rebuild', 'Repair'] || (self.type == 'AlterKeyspaces') == (has(self.arguments) && has(self.arguments.keyspaceReplication) && size(self.arguments.keyspaceReplication) > 0)`,message=`arguments.keyspaceReplication is required for AlterKeyspaces, and otherwise allowed for Rebuild and Repair alone`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'Rebuild') == (has(self.arguments) && has(self.arguments.sourceDatacenter))`,message=`arguments.sourceDatacenter is required for Rebuild, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type in ['Cleanup', 'Rebuild', 'Repair', 'Flush', 'Snapshot', 'ClearSnapshot', 'UpgradeSSTables', 'Compact', 'GarbageCollect', 'Scrub', 'Verify', 'RebuildIndex', 'Truncate'] || !has(self.arguments) || !has(self.arguments.keyspaces)`,message=`arguments.keyspaces is not for an operation of this type`
// +kubebuilder:validation:XValidation:rule=`self.type in ['Cleanup', 'UpgradeSSTables', 'GarbageCollect', 'Scrub'] || !has(self.arguments) || !has(self.arguments.jobs)`,message=`arguments.jobs is for Cleanup, UpgradeSSTables, GarbageCollect and Scrub alone`
// +kubebuilder:validation:XValidation:rule=`(self.type in ['Snapshot', 'ClearSnapshot']) == (has(self.arguments) && has(self.arguments.tag))`,message=`arguments.tag is required for Snapshot and ClearSnapshot, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Snapshot' || !has(self.arguments) || !has(self.arguments.ttl)`,message=`arguments.ttl is for Snapshot alone`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Compact' || !has(self.arguments) || !has(self.arguments.split)`,message=`arguments.split is for Compact alone`
// +kubebuilder:validation:XValidation:rule=`self.type in ['Cleanup', 'Repair', 'Flush', 'Snapshot', 'UpgradeSSTables', 'Compact', 'GarbageCollect', 'Scrub', 'Verify', 'RebuildIndex', 'Truncate'] || !has(self.arguments) || !has(self.arguments.tables)`,message=`arguments.tables is not for an operation of this type`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'RebuildIndex') == (has(self.arguments) && has(self.arguments.indexes) && has(self.arguments.tables) && size(self.arguments.tables) == 1)`,message=`arguments.indexes and one of arguments.tables are required for RebuildIndex, and indexes are not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Repair' || !has(self.arguments) || !has(self.arguments.full) && !has(self.arguments.primaryRange) && !has(self.arguments.datacenters) && !has(self.arguments.without) && !has(self.arguments.ranges)`,message=`arguments.full, arguments.primaryRange, arguments.datacenters, arguments.without and arguments.ranges are for Repair alone`
// +kubebuilder:validation:XValidation:rule=`self.type in ['AlterSystemKeyspaces', 'AlterKeyspaces'] || !has(self.arguments) || !has(self.arguments.exact)`,message=`arguments.exact is for AlterSystemKeyspaces and AlterKeyspaces alone`
// +kubebuilder:validation:XValidation:rule=`self.type == 'ImportSuperuser' || !has(self.arguments) || !has(self.arguments.writtenAt)`,message=`arguments.writtenAt is for ImportSuperuser alone`
// +kubebuilder:validation:XValidation:rule=`(self.type in ['Upload', 'CompleteBackup']) == (has(self.arguments) && has(self.arguments.backup))`,message=`arguments.backup is required for Upload and CompleteBackup, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`(self.type in ['StageTables', 'LoadTables']) == (has(self.arguments) && has(self.arguments.restore))`,message=`arguments.restore is required for StageTables and LoadTables, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.type != 'Truncate' || has(self.arguments) && has(self.arguments.tables)`,message=`arguments.tables is required for Truncate`
// +kubebuilder:validation:XValidation:rule=`self.type == 'Decommission' || !has(self.arguments) || !has(self.arguments.force)`,message=`arguments.force is for Decommission alone`
// +kubebuilder:validation:XValidation:rule=`self.type == 'ProveLogin' || !has(self.arguments) || !has(self.arguments.superuserAlone)`,message=`arguments.superuserAlone is for ProveLogin alone`
type OperationIntent struct {
	Intent `json:",inline"`

	// Type of the operation.
	// +required
	Type OperationType `json:"type"`

	// Arguments of the operation.
	// +optional
	Arguments *OperationArguments `json:"arguments,omitempty"`
}

// OperationArguments are the arguments of all operations; each type says which it uses.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.datacenters) || size(self.datacenters) == 0 || has(self.full) && self.full`,message=`datacenters needs full: an incremental repair of some datacenters marks nothing as repaired`
//
// +kubebuilder:validation:XValidation:rule=`!has(self.primaryRange) || !self.primaryRange || !has(self.datacenters) || size(self.datacenters) == 0`,message=`primaryRange is not allowed with datacenters: the first replica of a range may be in another one`
// +kubebuilder:validation:XValidation:rule=`!has(self.tables) || has(self.keyspaces) && size(self.keyspaces) == 1`,message=`tables needs one of keyspaces: the one that they are in`
//
// +kubebuilder:validation:XValidation:rule=`!has(self.without) || has(self.full) && self.full && (!has(self.primaryRange) || !self.primaryRange)`,message=`without needs full, and is not allowed with primaryRange: the replicas that are left out may be the first of their ranges`
// +kubebuilder:validation:XValidation:rule=`has(self.exact) && self.exact || (!has(self.replication) || self.replication.all(d, self.replication[d] >= 1)) && (!has(self.keyspaceReplication) || self.keyspaceReplication.all(k, k.replication.all(d, k.replication[d] >= 1)))`,message=`replication: each datacenter needs 1 to 9 replicas, or 0 with exact`
// +kubebuilder:validation:XValidation:rule=`!has(self.ranges) || has(self.full) && self.full && has(self.keyspaces) && size(self.keyspaces) == 1 && (!has(self.primaryRange) || !self.primaryRange) && !has(self.datacenters) && !has(self.without)`,message=`ranges needs full and one of keyspaces, and is not allowed with primaryRange, datacenters or without`
type OperationArguments struct {
	// Replication is the number of replicas by the datacenter's name inside Cassandra. Used by
	// AlterSystemKeyspaces and SetRoles.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule=`self.all(d, self[d] >= 0 && self[d] <= 9)`,message=`replication: each datacenter needs 0 to 9 replicas`
	Replication map[string]int32 `json:"replication,omitempty"`

	// Exact says that AlterSystemKeyspaces and AlterKeyspaces take away what the keyspaces have
	// more in the datacenters that are named. A datacenter with 0 gets no replicas any more.
	// +optional
	Exact bool `json:"exact,omitempty"`

	// KeyspaceReplication is what each keyspace is to have at least. AlterKeyspaces sees to it;
	// Rebuild and Repair do not begin before the node knows of it, whose schema may be older than
	// the ring's.
	// +optional
	// +listType=map
	// +listMapKey=keyspace
	// +kubebuilder:validation:MaxItems=67
	KeyspaceReplication []KeyspaceReplication `json:"keyspaceReplication,omitempty"`

	// Keyspaces that the operation is limited to. Empty: all that the ring replicates; those that
	// are local to a node, system and system_schema, are for Snapshot, ClearSnapshot,
	// UpgradeSSTables, Scrub and Verify alone. At most those that a datacenter can be extended by,
	// and the three system keyspaces that always are.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=67
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// Tables of the one keyspace that the operation is limited to. Empty: all.
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

	// Force has Decommission leave a keyspace with fewer nodes than replicas: system_auth, which
	// has to have one in every datacenter, when the last node of one leaves.
	// +optional
	Force bool `json:"force,omitempty"`

	// Split has Compact leave several SSTables, each half as large as the one before.
	// +optional
	Split bool `json:"split,omitempty"`

	// Jobs is the number of SSTables that an operation rewrites at a time. 0: as many as there are
	// compactors.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Jobs int32 `json:"jobs,omitempty"`

	// Tag of the snapshot: the name of its directories.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Tag string `json:"tag,omitempty"`

	// TTL is how long Cassandra keeps the Snapshot. Not set: until it is cleared.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1m') && duration(self) <= duration('8760h')`,message=`ttl must be from 1m to 8760h`
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// WrittenAt has ImportSuperuser replace the role that is there: by one that counts as written
	// at this time, and loses to all that was written later.
	// +optional
	WrittenAt *metav1.Time `json:"writtenAt,omitempty"`

	// SourceDatacenter is the name inside Cassandra of the datacenter that Rebuild streams from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SourceDatacenter string `json:"sourceDatacenter,omitempty"`

	// Full says that Repair compares all data, and not only what no repair has seen before
	// (incremental repair, which needs every replica to be up).
	// +optional
	Full bool `json:"full,omitempty"`

	// PrimaryRange says that Repair is limited to the ranges of which the node is the first
	// replica: run on every member of the ring it compares each range once.
	// +optional
	PrimaryRange bool `json:"primaryRange,omitempty"`

	// Datacenters are the names inside Cassandra of those whose replicas Repair is limited to; that
	// of the node must be among them. Empty: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Datacenters []string `json:"datacenters,omitempty"`

	// Without are the host ids of members that Repair leaves out, although they have replicas: they
	// are lost. All others take part.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=36
	// +kubebuilder:validation:items:MaxLength=36
	Without []string `json:"without,omitempty"`

	// Ranges of tokens that Repair is limited to, as "start:end": after start, up to and including
	// end. Each lies in one that the node holds. Empty: all that it holds.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=41
	// +kubebuilder:validation:items:Pattern=`^-?[0-9]{1,19}:-?[0-9]{1,19}$`
	Ranges []string `json:"ranges,omitempty"`

	// Endpoint is the address that Assassinate is about.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f:.]+$`
	Endpoint string `json:"endpoint,omitempty"`

	// SuperuserSecret is the name of the Secret with username and password of the superuser that
	// SetRoles makes, ProveLogin, KeepRoles and CheckRows log in as, and SetPassword gives the
	// password to.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SuperuserSecret string `json:"superuserSecret,omitempty"`

	// SuperuserAlone has ProveLogin ask nothing of other roles: their passwords have not changed.
	// +optional
	SuperuserAlone bool `json:"superuserAlone,omitempty"`

	// Roles are what KeepRoles is about.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Roles []RoleIntent `json:"roles,omitempty"`

	// Checks are what CheckRows asks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Checks []RowCheck `json:"checks,omitempty"`

	// HostID of the member that RemoveNode removes.
	// +optional
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	HostID string `json:"hostID,omitempty"`

	// Backup is what Upload and CompleteBackup are about.
	// +optional
	Backup *BackupArguments `json:"backup,omitempty"`

	// Restore is what StageTables and LoadTables are about.
	// +optional
	Restore *RestoreArguments `json:"restore,omitempty"`
}

// KeyspaceReplication is what a keyspace is to have at least.
type KeyspaceReplication struct {
	// Keyspace by its name in Cassandra.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+$`
	Keyspace string `json:"keyspace"`

	// Replication is the number of replicas by the datacenter's name inside Cassandra.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule=`self.all(d, self[d] >= 0 && self[d] <= 9)`,message=`replication: each datacenter needs 0 to 9 replicas`
	Replication map[string]int32 `json:"replication"`
}

// OperationStatus is how far an operation has come. All phases but Running are final.
//
// +kubebuilder:validation:XValidation:rule=`(self.phase == 'Running') == !has(self.finishedAt)`,message=`finishedAt is set with a final phase, and only then`
type OperationStatus struct {
	// ID of the intent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// Phase of the operation.
	// +required
	Phase OperationPhase `json:"phase"`

	// Progress from 0 to 100 percent, where it is known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress *int32 `json:"progress,omitempty"`

	// Message says what happens, or what went wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// Uploaded is what an Upload has put into its store.
	// +optional
	Uploaded *Uploaded `json:"uploaded,omitempty"`

	// StartedAt is when the agent had journaled that it begins.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the phase became final.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// What a CassandraNode can hold.
const (
	// MaxOperations in the spec.
	MaxOperations = 4
	// MaxOperationStatuses in the status.
	MaxOperationStatuses = 8
)

// Operation is the wanted operation with an id; nil if there is none.
func (s *CassandraNodeSpec) Operation(id string) *OperationIntent {
	for i := range s.Operations {
		if s.Operations[i].ID == id {
			return &s.Operations[i]
		}
	}
	return nil
}

// Operation is how far the operation with an id has come; nil if the agent has said nothing of it.
func (s *CassandraNodeStatus) Operation(id string) *OperationStatus {
	for i := range s.Operations {
		if s.Operations[i].ID == id {
			return &s.Operations[i]
		}
	}
	return nil
}

// Final says that an operation in this phase never goes on.
func (p OperationPhase) Final() bool { return p != OperationRunning }
