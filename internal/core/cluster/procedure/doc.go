// Package procedure is the engine of every change to a ring. A Procedure says when it is due, what
// guards it and which stages it has; the engine opens its step in the ledger, continues it, runs
// operations on nodes with retries, and closes it. It imports core packages, and no procedure.
package procedure
