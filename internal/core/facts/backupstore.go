package facts

import (
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
)

// BackupStore is everything known about one store of backups at one moment.
type BackupStore struct {
	// Object is that of the user, never nil.
	Object *v1alpha1.CassandraBackupStore
	// Secret is the version of the Secrets that its spec names, of which SecretMissing is not
	// there; empty if it names none.
	Secret, SecretMissing string
	// Check is the result of one that was just made; nil if none was.
	Check *StoreCheck
}

// StoreCheck is the result of a check: a reason of ConditionReady, and what was found.
type StoreCheck struct {
	Reason, Message string
}

// Sweep is the result of a look at what a store has of the clusters of its namespace.
type Sweep struct {
	// Object is the store, never nil.
	Object *v1alpha1.CassandraBackupStore
	// Swept are the marks of each cluster that has any, and Problems why there are no newer ones.
	Swept    map[types.UID]*format.Marks
	Problems map[types.UID]string
	// Latest are the latest backups of all clusters that have any in the store; nil if that could
	// not be found out.
	Latest map[types.UID]*v1alpha1.StoredBackup
}

// BackupDeletion is everything known about one backup and its deletion at one moment.
type BackupDeletion struct {
	// Object is that of the user, never nil.
	Object *v1alpha1.CassandraBackup
	// Store is the spec of the one it is in; nil if there is none of the name. SecretMissing is one
	// of its Secrets that is not there; empty if all are.
	Store         *v1alpha1.BackupStoreSpec
	SecretMissing string
	// Writers are the nodes that may still write to it, and Readers what may still read a backup of
	// the same cluster: clusters that are made from one, and restores.
	Writers, Readers []string
	// Removed says that it was just deleted in the store, Problem why that has failed.
	Removed bool
	Problem string
}

// BackupVerification is everything known about one backup and its verification at one moment.
type BackupVerification struct {
	// Object is the backup, never nil, and Schedule the one that has made it; nil if there is none.
	Object   *v1alpha1.CassandraBackup
	Schedule *v1alpha1.CassandraBackupSchedule
	// Newest says that there is a schedule, and that it has no later backup that is complete.
	Newest bool
	// Store is the one it is in; nil if there is none of the name, or nobody wants the backup
	// verified. SecretMissing is one of its Secrets that is not there; empty if all are.
	Store         *v1alpha1.CassandraBackupStore
	SecretMissing string
	// Verified is what was just found; nil if nothing was. Problem is why that has failed.
	Verified *VerifiedBackup
	Problem  string
}

// VerifiedBackup is what a verification has found of a backup in its store.
type VerifiedBackup struct {
	Description *format.Backup
	// Files of its manifests, and their Bytes; those that were read whole.
	Files, Bytes, FilesRead, BytesRead int64
	// ReadTo is to which percentage of all contents, in the order of their hashes, all were read.
	ReadTo int
	// DamagedFiles is how many are missing or have another content, and Damaged some of each table
	// of a node that has any.
	DamagedFiles int64
	Damaged      []DamagedFile
}

// DamagedFile is a file of a node that is missing, or has another content. That of a manifest has
// no keyspace and no table.
type DamagedFile struct {
	HostID, Node, Keyspace, Table, File, Why string
}
