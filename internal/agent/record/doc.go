// Package record is the agent's line to the API server: it watches the node's own CassandraNode and the seeds of its cluster, and writes the status of that one
// record. It speaks HTTP by the standard library alone (ADR: client-go would double the agent); it imports the API types and nothing else of Helenus.
package record
