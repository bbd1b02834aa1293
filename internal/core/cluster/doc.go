// Package cluster decides what the operator does next about one cluster: Next is a pure function from a snapshot of facts and a time to a plan. Its list
// of steps, in steps.go, is the operator's table of contents; each step has a file of its own. It imports only core packages and API types.
package cluster
