package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CassandraRestore adds what tables had in a backup, or at a time, to tables of a ring that serves
// clients, or replaces their rows by it. Users create and delete it. Its deletion cancels what has
// not finished; rows that came back stay. The operator writes the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cassrestore,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Backup",type=string,JSONPath=`.spec.backup`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Point in time",type=string,priority=1,JSONPath=`.spec.pointInTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.pointInTime) || size(self.metadata.name) <= 44 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message=`the name of a CassandraRestore with pointInTime must begin with a letter, have letters, digits and hyphens alone, and at most 44 characters: the ring that is made for it is a cluster of that name with -then`
type CassandraRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is to come back. It cannot be changed, but for confirm, which can be set.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.cluster == oldSelf.cluster && self.store == oldSelf.store && has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source) && has(self.backup) == has(oldSelf.backup) && (!has(self.backup) || self.backup == oldSelf.backup) && has(self.pointInTime) == has(oldSelf.pointInTime) && (!has(self.pointInTime) || self.pointInTime == oldSelf.pointInTime) && has(self.temporary) == has(oldSelf.temporary) && (!has(self.temporary) || self.temporary == oldSelf.temporary) && has(self.tables) == has(oldSelf.tables) && (!has(self.tables) || self.tables == oldSelf.tables) && has(self.keyspaces) == has(oldSelf.keyspaces) && (!has(self.keyspaces) || self.keyspaces == oldSelf.keyspaces) && self.mode == oldSelf.mode && has(self.deadline) == has(oldSelf.deadline) && (!has(self.deadline) || duration(self.deadline) == duration(oldSelf.deadline))`,message=`the spec of a CassandraRestore cannot be changed, except for confirm: create another one`
	// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.confirm) || !oldSelf.confirm || has(self.confirm) && self.confirm`,message=`confirm cannot be taken back: delete the CassandraRestore to cancel it`
	Spec CassandraRestoreSpec `json:"spec"`
	// Status is how far it has come. Only the operator writes it.
	// +optional
	Status CassandraRestoreStatus `json:"status,omitzero"`
}

// CassandraRestoreList is a list of restores.
//
// +kubebuilder:object:root=true
type CassandraRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraRestore `json:"items"`
}

// RestoreMode is what becomes of the rows that tables have.
//
// +kubebuilder:validation:Enum=Merge;Replace
type RestoreMode string

// The modes.
const (
	// RestoreMerge leaves them: of two writes the later one wins.
	RestoreMerge RestoreMode = "Merge"
	// RestoreReplace keeps them in a snapshot on every node, and truncates the tables before rows
	// come back.
	RestoreReplace RestoreMode = "Replace"
)

// CassandraRestoreSpec is which tables of which backup, or of which time, come back in which
// cluster.
//
// +kubebuilder:validation:XValidation:rule=`has(self.tables) != has(self.keyspaces)`,message=`a CassandraRestore must have exactly one of tables and keyspaces`
// +kubebuilder:validation:XValidation:rule=`self.mode != 'Replace' || has(self.tables)`,message=`mode Replace needs tables: those of a keyspace that are not in the backup would not be replaced`
// +kubebuilder:validation:XValidation:rule=`has(self.backup) != has(self.pointInTime)`,message=`a CassandraRestore must have exactly one of backup and pointInTime`
// +kubebuilder:validation:XValidation:rule=`!has(self.temporary) || has(self.pointInTime)`,message=`temporary is for pointInTime alone: from a backup no ring is made`
// +kubebuilder:validation:XValidation:rule=`self.mode == 'Replace' || !has(self.confirm) || !self.confirm`,message=`confirm is for mode Replace alone: Merge takes nothing away`
// +kubebuilder:validation:XValidation:rule=`self.mode != 'Replace' || !has(self.tables) || self.tables.all(t, (has(t.to) ? t.to : t.from).split('.')[0] == (has(self.tables[0].to) ? self.tables[0].to : self.tables[0].from).split('.')[0])`,message=`mode Replace is for tables of one keyspace: create a CassandraRestore for each keyspace`
type CassandraRestoreSpec struct {
	// Cluster whose tables get the rows, in the namespace of the restore.
	// +required
	Cluster TaskCluster `json:"cluster"`

	// Store with the backup, in the same namespace.
	// +required
	Store BackupStoreReference `json:"store"`

	// Source is the cluster of which the backup was taken. Default: this one.
	// +optional
	Source *RestoreSource `json:"source,omitempty"`

	// Backup is its id.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')`,messageExpression=`'backup "' + self + '" must be the id of a backup: letters, digits, dots, underscores and hyphens'`
	Backup string `json:"backup,omitempty"`

	// PointInTime takes the rows that the tables had at a time, which backups and commit logs in
	// the store must cover. The operator makes a ring as the source was then, of the shape of this
	// cluster and called <restore>-then; backs the keyspaces of the tables up from it; and, when
	// the restore has finished, deletes that backup and that ring.
	// +optional
	PointInTime *metav1.Time `json:"pointInTime,omitempty"`

	// Temporary is what the nodes of that ring have.
	// +optional
	Temporary *TemporaryRing `json:"temporary,omitempty"`

	// Tables that come back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(a, self.exists_one(b, (has(a.to) ? a.to : a.from) == (has(b.to) ? b.to : b.from)))`,message=`tables: each table gets the rows of one`
	Tables []RestoredTable `json:"tables,omitempty"`

	// Keyspaces of which all tables come back that are in the backup, into those of the same names,
	// in place of tables. At most 64; with mode Merge.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k != 'system' && !k.startsWith('system_'))`,message=`keyspaces: those of Cassandra itself are not restored into a ring that serves clients: make a ring from the backup`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// Mode is what becomes of the rows that the tables have. Default: Merge.
	// +optional
	// +kubebuilder:default=Merge
	Mode RestoreMode `json:"mode,omitempty"`

	// Confirm has Replace go on when every node has what it loads, and nothing is touched yet: the
	// tables are truncated then. Until it is set the restore waits.
	// +optional
	Confirm bool `json:"confirm,omitempty"`

	// Deadline is how long the restore may take from when it is its turn, and Replace again from
	// when it is confirmed. A node that is not done by then has failed. With pointInTime the backup
	// of the ring of that time must be complete as long after the restore was created. At most
	// 168h. Default: 24h.
	// +optional
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1m') && duration(self) <= duration('168h')`,message=`deadline must be from 1m to 168h`
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// TemporaryRing is what the nodes of a ring have that is made for a restore alone. All else, such
// as the size of their volumes, is that of the cluster.
type TemporaryRing struct {
	// Resources of Cassandra, by whose memory limit the heap is sized. Default: those of the nodes
	// of the cluster, and their heap.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
}

// RestoredTable is a table whose rows come back, by its name in Cassandra.
//
// +kubebuilder:validation:XValidation:rule=`[self.from].all(t, !t.startsWith('system.') && !t.startsWith('system_')) && (!has(self.to) || !self.to.startsWith('system.') && !self.to.startsWith('system_'))`,message=`tables of Cassandra itself are not restored into a ring that serves clients: make a ring from the backup`
type RestoredTable struct {
	// From is the table in the backup, as keyspace.table.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=97
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+$`
	From string `json:"from"`

	// To is the table that gets its rows, as keyspace.table. It must be there, with the same
	// columns. Default: the one of the same name.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=97
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+\.[A-Za-z0-9_]+$`
	To string `json:"to,omitempty"`
}

// CassandraRestoreStatus is how far a restore has come.
type CassandraRestoreStatus struct {
	CassandraTaskStatus `json:",inline"`

	// Replaced is where the rows are that the tables had before, with mode Replace. It is there
	// before anything is truncated.
	// +optional
	Replaced *ReplacedRows `json:"replaced,omitempty"`

	// Source is the backup that the rows come from, with pointInTime. It is there once that backup
	// is complete.
	// +optional
	Source *RestoredFrom `json:"source,omitempty"`
}

// RestoredFrom is a backup of a ring that was made for a restore.
type RestoredFrom struct {
	// UID of the ring.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	UID types.UID `json:"uid"`

	// Backup is the id of its backup.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Backup string `json:"backup"`
}

// From is the backup that the rows come from, and the cluster that it is of: the one whose tables
// get them, unless another one is named. Both are empty while the backup is still to be taken.
func (r *CassandraRestore) From(cluster types.UID) (of types.UID, backup string) {
	if r.Spec.PointInTime != nil {
		if from := r.Status.Source; from != nil {
			return from.UID, from.Backup
		}
		return "", ""
	}
	return r.SourceOf(cluster), r.Spec.Backup
}

// SourceOf is the cluster that the spec names, and this one if it names none.
func (r *CassandraRestore) SourceOf(cluster types.UID) types.UID {
	if from := r.Spec.Source; from != nil {
		return from.UID
	}
	return cluster
}

// ReplacedRows are what tables had before a restore.
type ReplacedRows struct {
	// Snapshot is the tag of the snapshot that has them on every node. It stays until somebody
	// removes it, by a CassandraTask ClearSnapshot with this tag.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Snapshot string `json:"snapshot"`

	// KeptAt is when every node had the snapshot.
	// +required
	KeptAt metav1.Time `json:"keptAt"`

	// TruncatedAt is when the tables were empty on every node: no row has come back before, and
	// they are not truncated again.
	// +optional
	TruncatedAt *metav1.Time `json:"truncatedAt,omitempty"`
}

// Target is the table that gets the rows.
func (t RestoredTable) Target() string {
	if t.To != "" {
		return t.To
	}
	return t.From
}

// RestoreTagPrefix begins the tags under which ClearSnapshot finds what StageTables has downloaded.
const RestoreTagPrefix = "helenus-restore-"

// RestoreArguments are what StageTables and LoadTables are about.
type RestoreArguments struct {
	// Tag of what is downloaded: helenus-restore- and the uid of the CassandraRestore, or of the
	// CassandraCluster.
	// +required
	// +kubebuilder:validation:MinLength=17
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^helenus-restore-[0-9a-z-]+$`
	Tag string `json:"tag"`

	// Store with the backup.
	// +required
	Store BackupStoreSpec `json:"store"`

	// Cluster is the uid of the one that the backup was taken of.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	Cluster types.UID `json:"cluster"`

	// Backup is its id.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Backup string `json:"backup"`

	// Tables that come back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tables []RestoredTable `json:"tables,omitempty"`

	// Keyspaces of which all tables come back that are in the backup. Neither these nor tables: all
	// of users do.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// NewRing says that the ring was made with the schema of the backup, and serves nobody yet.
	// +optional
	NewRing bool `json:"newRing,omitempty"`

	// Replace has StageTables refuse tables that cannot be truncated later: those with views.
	// +optional
	Replace bool `json:"replace,omitempty"`

	// Members are the host ids of the nodes that share the work: each takes the files of some nodes
	// of the backup.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=36
	// +kubebuilder:validation:items:MaxLength=36
	Members []string `json:"members"`
}
