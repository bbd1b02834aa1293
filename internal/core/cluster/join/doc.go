// Package join has nodes join a ring that serves clients, one at a time. It imports core packages,
// procedure and ticket.
package join
