// Package schedule decides what a CassandraTaskSchedule or a CassandraBackupSchedule does now: what
// it makes, what it deletes, and its status. It is a function of what is known and of the time. It
// imports core packages and a parser of cron expressions.
package schedule
