// Package restore finds out whether a ring can be made from a backup, and whose data each of its
// nodes gets. It does no I/O, and imports core packages and the format of backups.
package restore
