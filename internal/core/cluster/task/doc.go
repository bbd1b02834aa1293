// Package task does what the CassandraTasks of a cluster ask for: one after the other, as steps of
// Maintenance, and keeps the result of each node in the task's status. It imports core packages and
// procedure.
package task
