// Package cluster decides what the operator does next about one cluster: Next is a pure function
// from a snapshot of facts and a time to a plan. Its list, in next.go, is the operator's table of
// contents: upkeep, and one folder for each procedure. It imports core packages alone.
package cluster
