// Package conformance is one list of checks that a Cassandra node passes, real or simulated, when it is asked over Jolokia: the form of its answers and
// what they mean. It holds a model of Cassandra to Cassandra.
//
// It is for tests. It sees a node only through packages jolokia and cassandra.
package conformance
