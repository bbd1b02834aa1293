// Package cql administers one Cassandra node over CQL: what JMX cannot do, such as how the system
// keyspaces are replicated.
//
// It is apart from package cassandra so that only those who need CQL link its driver. It imports no
// Kubernetes code.
package cql
