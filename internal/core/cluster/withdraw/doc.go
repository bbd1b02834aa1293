// Package withdraw takes the replicas of keyspaces out of a datacenter that is to leave the ring.
// It imports core packages, procedure and ticket.
package withdraw
