// Package keyspaces gives the system keyspaces more replicas where nodes have joined. It imports
// core packages and procedure.
package keyspaces
