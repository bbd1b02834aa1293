// Package backupstore decides when a CassandraBackupStore is checked, what its status says, and
// when a CassandraBackup is verified and deleted in its store. It is a function of what is known
// and of the time. It imports core packages.
package backupstore
