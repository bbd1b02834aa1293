// Package keyspaces gives the system keyspaces more replicas where nodes have joined, and fewer
// where the spec says so. It imports core packages and procedure.
package keyspaces
