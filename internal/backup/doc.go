// Package backup holds what backups are made of: format describes what lies in an object store,
// store reaches it, sweep deletes what is not needed, by the rules of garbage, and verify finds
// what is damaged. None decides when a backup is taken; that is core. They import api and core,
// never the operator or the agent.
package backup
