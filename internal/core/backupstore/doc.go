// Package backupstore decides when a CassandraBackupStore is checked, and what its status says. It
// is a function of what is known and of the time. It imports core packages.
package backupstore
