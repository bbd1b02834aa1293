// Package jolokia is a client of the Jolokia protocol: JMX over HTTP and JSON, as the Jolokia agent
// inside a Cassandra JVM speaks it.
//
// It knows the protocol and nothing of Cassandra; package cassandra gives the answers their
// meaning. It imports only the standard library.
package jolokia
