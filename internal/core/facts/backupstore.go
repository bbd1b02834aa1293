package facts

import "helenus.io/helenus/api/v1alpha1"

// BackupStore is everything known about one store of backups at one moment.
type BackupStore struct {
	// Object is that of the user, never nil.
	Object *v1alpha1.CassandraBackupStore
	// Secret is the version of the Secret that its spec names; empty if there is none.
	Secret string
	// Check is the result of one that was just made; nil if none was.
	Check *StoreCheck
}

// StoreCheck is the result of a check: a reason of ConditionReady, and what was found.
type StoreCheck struct {
	Reason, Message string
}
