// Package form makes the ring of a new cluster: all nodes join at once, or start on the disks of an
// earlier cluster that is adopted. It imports core packages, procedure and ticket.
package form
