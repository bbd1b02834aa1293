// Package nodeview reads everything that a node of Cassandra tells of itself and of its ring, with
// what package cassandra does not ask for. Tests hold simulated nodes to real ones by it.
package nodeview
