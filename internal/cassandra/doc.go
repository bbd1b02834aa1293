// Package cassandra gives JMX answers of one Cassandra node their meaning: how the node and the
// ring look from there, and the operations and settings that an administrator changes on a running
// node, for Cassandra 4.1 and 5.0.
//
// It speaks to the node through package jolokia, and says what it sees in the words of core/facts.
// What only CQL can do is in the package cql below it.
package cassandra
