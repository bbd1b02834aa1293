// Package ticket is what the procedures share by which nodes join a ring: their tickets, how these
// are issued and withdrawn, and when every node sees every other. It imports core packages and
// procedure.
package ticket
