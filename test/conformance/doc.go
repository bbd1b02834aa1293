// Package conformance holds a model of Cassandra to Cassandra. It is one list of checks that a node
// passes, real or simulated, when it is asked over Jolokia: the form of its answers and what they
// mean (Run); and one list of scenarios of what happens to a ring in its life, in each of which the
// answers of all nodes are checked all the while (Life).
//
// It is for tests. It sees nodes only through packages jolokia and cassandra; what a scenario does
// to a ring is the ring's own.
package conformance
