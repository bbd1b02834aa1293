// Package stop stops all nodes of a ring, or of one of its datacenters, in order, and starts them
// again together. Like every procedure it is pure and imports no other one.
package stop
