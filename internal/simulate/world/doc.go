// Package world puts the simulated parts together: an API server, hosts, Cassandra, the real agents
// in their pods, and one or more real operators, with the user's hand in it. What goes wrong in it
// is decided by whoever makes it.
package world
