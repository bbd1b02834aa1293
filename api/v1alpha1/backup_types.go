package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CassandraBackup is one backup of a cluster into a store. Users and schedules create it. Its
// deletion cancels a backup that has not finished, and deletes it in the store if deletionPolicy is
// Delete. The operator writes the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cassbackup,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.store.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Taken",type=date,JSONPath=`.status.takenAt`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`
// +kubebuilder:printcolumn:name="New",type=integer,JSONPath=`.status.newBytes`
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
type CassandraBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is to be kept, and where. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`the spec of a CassandraBackup cannot be changed: create another one`
	Spec CassandraBackupSpec `json:"spec"`
	// Status is how far it has come. Only the operator writes it.
	// +optional
	Status CassandraBackupStatus `json:"status,omitzero"`
}

// CassandraBackupList is a list of backups.
//
// +kubebuilder:object:root=true
type CassandraBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraBackup `json:"items"`
}

// CassandraBackupSpec is which cluster is kept, and where.
type CassandraBackupSpec struct {
	// Cluster whose data is kept, in the namespace of the backup.
	// +required
	Cluster TaskCluster `json:"cluster"`

	// Store that it is put into, in the same namespace.
	// +required
	Store BackupStoreReference `json:"store"`

	BackupTemplate `json:",inline"`

	// DeletionPolicy says what becomes of the backup in the store when the object is deleted: it
	// stays (Retain), or is deleted first (Delete). Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy BackupDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// BackupTemplate is what a backup has, and what it may take.
type BackupTemplate struct {
	// Keyspaces by name. Empty: all. Those of schema and roles are part of each backup.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=60
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// ExcludeTables are left out, each as keyspace.table.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=97
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+$`
	ExcludeTables []string `json:"excludeTables,omitempty"`

	// Limits of what it takes from the nodes.
	// +optional
	Limits *BackupLimits `json:"limits,omitempty"`

	// Deadline is how long the backup may take from when it is its turn. A node that is not done by
	// then has failed. At most 168h. Default: 24h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1m') && duration(self) <= duration('168h')`,message=`deadline must be from 1m to 168h`
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// BackupDeletionPolicy says what becomes of a backup in its store when the object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type BackupDeletionPolicy string

// The policies.
const (
	// BackupRetain leaves it there.
	BackupRetain BackupDeletionPolicy = "Retain"
	// BackupDelete deletes it there first.
	BackupDelete BackupDeletionPolicy = "Delete"
)

// BackupStoreReference names a store.
type BackupStoreReference struct {
	// Name of the CassandraBackupStore.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// BackupLimits are limits of what a backup takes from each node.
type BackupLimits struct {
	// BandwidthPerNode is how many bytes a node reads of its files in a second, and so sends at
	// most, such as 50Mi. Not set: as many as it can. It is less while clients wait longer for
	// their reads.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`(type(self) == int ? self >= 1048576 : isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi')))`,messageExpression=`'bandwidthPerNode "' + string(self) + '" must be at least 1Mi; give it a unit, such as 50Mi'`
	BandwidthPerNode *resource.Quantity `json:"bandwidthPerNode,omitempty"`

	// NodesAtOnce is how many nodes upload at the same time, as a number or a percentage. All take
	// their snapshots at the same time in any case. Default: 100%.
	// +optional
	// +kubebuilder:default="100%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 1 : self.matches('^([1-9]|[1-9][0-9]|100)%$')`,message=`nodesAtOnce must be a number of nodes from 1, or a percentage of the nodes from 1% to 100%`
	NodesAtOnce *intstr.IntOrString `json:"nodesAtOnce,omitempty"`
}

// BackupPhase is how far a backup has come.
//
// +kubebuilder:validation:MaxLength=64
type BackupPhase string

// The phases. Complete, Incomplete and Failed are final.
const (
	// BackupPending – it has not begun.
	BackupPending BackupPhase = "Pending"
	// BackupSnapshotting – every node that is not left out keeps what it has now.
	BackupSnapshotting BackupPhase = "Snapshotting"
	// BackupUploading – every node puts that into the store.
	BackupUploading BackupPhase = "Uploading"
	// BackupVerifying – a node looks for what the others have put there, and describes it.
	BackupVerifying BackupPhase = "Verifying"
	// BackupComplete – the store has what every node kept that was not left out, and its
	// description.
	BackupComplete BackupPhase = "Complete"
	// BackupIncomplete – some nodes have failed: there is no description, and nothing to restore.
	BackupIncomplete BackupPhase = "Incomplete"
	// BackupFailed – every node has failed, or what they have put there could not be described.
	BackupFailed BackupPhase = "Failed"
)

// Final says that it does not change any more.
func (p BackupPhase) Final() bool {
	return p == BackupComplete || p == BackupIncomplete || p == BackupFailed
}

// CassandraBackupStatus is how far a backup has come.
type CassandraBackupStatus struct {
	// ObservedGeneration is the generation of the spec that it is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the backup.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`

	// Message says what happens, what is waited for, or what went wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// Progress is how many nodes are done, such as 2/3.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// ID of the backup in the store.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`

	// ClusterUID is the metadata.uid of the cluster, under which the backup lies in the store.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// TakenAt is when the first node took its snapshot, and Skew how much later the last one did.
	// +optional
	TakenAt *metav1.MicroTime `json:"takenAt,omitempty"`
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	Skew *metav1.Duration `json:"skew,omitempty"`

	// Bytes of all files, and NewBytes of those that the store did not have before.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// +optional
	NewBytes int64 `json:"newBytes,omitempty"`

	// StartedAt is when it was its turn. The deadline counts from then.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the phase became final.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Conditions: Reconciling until it has finished, then Complete or Failed, and Stalled with
	// Failed. Each is there only while it is True. Verified is there once it was verified, and
	// False if a file is missing or damaged.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Restorable is what can be made from it. It is there once the backup is Complete.
	// +optional
	Restorable *Restorable `json:"restorable,omitempty"`

	// Verified is what the last verification has found in the store.
	// +optional
	Verified *BackupVerified `json:"verified,omitempty"`

	// Nodes of the backup, by name.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=1000
	Nodes []BackupNode `json:"nodes,omitempty"`
}

// Restorable is what can be made from a backup.
type Restorable struct {
	// SameShape says that a ring of the shape of the source can be made from it: each node has its
	// own part of the backup. It is false if nodes were left out; a ring of another shape, and
	// tables of a ring that serves clients, can be made from such a backup, too.
	// +required
	SameShape bool `json:"sameShape"`

	// Ranges of all keyspaces of the backup of which it has a quorum of the copies at least, or all
	// where a quorum is all: always 100%, since what has less is not Complete.
	// +required
	// +kubebuilder:validation:MaxLength=4
	Ranges string `json:"ranges"`
}

// AnnotationVerify of a CassandraBackup has it verified: the percentage of files that are read
// whole, @ and when that was asked for, such as 100%@2026-03-01T12:00:00Z.
const AnnotationVerify = Group + "/verify"

// ConditionVerified of a CassandraBackup is True if its last verification has found all files.
const ConditionVerified = "Verified"

// Reasons of ConditionVerified.
const (
	// ReasonFilesFound – all files are there, and those that were read are what was written.
	ReasonFilesFound = "FilesFound"
	// ReasonFilesDamaged – files are missing or damaged.
	ReasonFilesDamaged = "FilesDamaged"
)

// MaxDamagedTables bounds BackupVerified.Damaged, MaxDamagedFiles the names in each.
const (
	MaxDamagedTables = 32
	MaxDamagedFiles  = 8
)

// BackupVerified is what a verification has found.
type BackupVerified struct {
	// At is when it has ended; not set before one has.
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Request is the annotation that had asked for it; empty if the schedule has.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Request string `json:"request,omitempty"`

	// Files of the backup, which were all looked for, and their Bytes.
	// +optional
	Files int64 `json:"files,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// FilesRead were read whole, and compared with their hash. Files of the same content are one.
	// +optional
	FilesRead int64 `json:"filesRead,omitempty"`
	// +optional
	BytesRead int64 `json:"bytesRead,omitempty"`

	// DamagedFiles is how many are missing, or have another content. A ring of the
	// same shape cannot be made from the backup while there are any.
	// +optional
	DamagedFiles int64 `json:"damagedFiles,omitempty"`

	// Damaged are the tables of nodes that have such files; the first 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Damaged []DamagedTable `json:"damaged,omitempty"`

	// Full is how far it is with this backup that all files are read; not set if it was not the
	// latest of a schedule with verify.
	// +optional
	Full *FullVerification `json:"full,omitempty"`

	// AttemptedAt is when it was attempted last, and Problem why that has failed.
	// +optional
	AttemptedAt *metav1.Time `json:"attemptedAt,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// FullVerification is how far it is that all files are read which the latest backups have: a part
// with each verification, all within 30 days.
type FullVerification struct {
	// Since is when it has begun, and Percent how much was read since.
	// +required
	Since metav1.Time `json:"since"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`

	// LastAt is when the one before has ended; not set if there was none.
	// +optional
	LastAt *metav1.Time `json:"lastAt,omitempty"`
}

// DamagedTable is a table of a node of which a backup has not all files any more.
type DamagedTable struct {
	// Node by its name in the backup.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// Table as keyspace.table; empty for all of the node, if its manifest is damaged.
	// +optional
	// +kubebuilder:validation:MaxLength=97
	Table string `json:"table,omitempty"`

	// Files that are missing or damaged, and what is wrong with them; the first 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	Files []string `json:"files,omitempty"`

	// Ranges that the node had a replica of. Of all but Uncovered ones another node has a replica
	// whose files were found.
	// +optional
	Ranges int32 `json:"ranges,omitempty"`
	// +optional
	Uncovered int32 `json:"uncovered,omitempty"`

	// CoveredBy are the nodes that have these replicas; the first 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	CoveredBy []string `json:"coveredBy,omitempty"`
}

// BackupNode is what became of one node.
type BackupNode struct {
	TaskNode `json:",inline"`
	Uploaded `json:",inline"`
}

// Uploaded is what a node has put into a store.
type Uploaded struct {
	// Member is the host id under which it lies there.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	Member string `json:"member,omitempty"`

	// TakenAt is when its snapshot was taken.
	// +optional
	TakenAt *metav1.MicroTime `json:"takenAt,omitempty"`

	// Files, and Bytes of all of them; NewBytes of those that the store did not have before.
	// +optional
	Files int64 `json:"files,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// +optional
	NewBytes int64 `json:"newBytes,omitempty"`
}

// BackupID is the id of a backup in its store, by when it was asked for. Ids sort by time.
func (b *CassandraBackup) BackupID() string {
	return b.CreationTimestamp.UTC().Format("20060102T150405Z") + "-" + strings.ReplaceAll(string(b.UID), "-", "")[:8]
}

// Temporary says that it was made for a CassandraRestore, of a ring that was, too: all that a store
// has of that ring goes with it.
func (b *CassandraBackup) Temporary() bool {
	owner, of := metav1.GetControllerOf(b), b.Labels[LabelRestoreUID]
	return owner != nil && owner.Kind == "CassandraRestore" && string(owner.UID) == of &&
		b.Status.ClusterUID != "" && string(b.Status.ClusterUID) == b.Labels[LabelClusterUID]
}

// BackupArguments are what Upload and CompleteBackup are about.
type BackupArguments struct {
	// ID of the backup. The tag of its snapshots is helenus-backup- and this.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	ID string `json:"id"`

	// Store that it is put into.
	// +required
	Store BackupStoreSpec `json:"store"`

	// ExcludeTables are left out by Upload, each as keyspace.table.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=97
	ExcludeTables []string `json:"excludeTables,omitempty"`

	// Bandwidth is how many bytes Upload reads in a second at most. 0: as many as it can.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Bandwidth int64 `json:"bandwidth,omitempty"`

	// Members are the host ids of all nodes of the backup: CompleteBackup looks for what each has
	// put there that is not of LeftOut.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=36
	// +kubebuilder:validation:items:MaxLength=36
	Members []string `json:"members,omitempty"`

	// LeftOut are the nodes of Members that the backup is taken without. CompleteBackup writes down
	// which ranges they have, and refuses it if these are not covered.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=1000
	LeftOut []LeftOutNode `json:"leftOut,omitempty"`

	// ClusterSpec is the spec of the CassandraCluster as JSON, which CompleteBackup writes down.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	ClusterSpec string `json:"clusterSpec,omitempty"`
}

// LeftOutNode is one that a backup is taken without.
type LeftOutNode struct {
	// Node is the name of the CassandraNode.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node"`

	// HostID of the member.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	HostID string `json:"hostID"`

	// Datacenter, Rack and Tokens are where in the ring it was when the snapshots were taken, if it
	// has left the ring since, or is about to. Else they are those of the ring.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Datacenter string `json:"datacenter,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Rack string `json:"rack,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=20
	// +kubebuilder:validation:items:Pattern=`^-?[0-9]{1,19}$`
	Tokens []string `json:"tokens,omitempty"`
}

// MaxClusterSpec bounds the JSON in BackupArguments.
const MaxClusterSpec = 131072
