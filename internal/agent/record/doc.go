// Package record is the agent's line to the API server: it watches the node's own CassandraNode and
// the seeds of its cluster, and writes the status of that one record. It speaks HTTP by the
// standard library alone: two watches and one apply are little, and the smallest program on
// client-go (a REST client and a reflector) is 14.2 MB against 9.7 MB. It imports the API types and
// core/layout.
package record
