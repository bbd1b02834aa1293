// Package cassandra is a ring of Cassandra nodes in memory: JVMs that start, gossip, stream and end
// in virtual time, and disks that remember what real ones would. A node answers the JSON protocol
// of Jolokia, so that the agent's own client runs against it; the package conformance of
// internal/cassandra holds it to what real nodes answer.
//
// Everything runs in one timeline: no goroutine, no clock and no choice but the timeline's. It may
// import everything of the product.
package cassandra
