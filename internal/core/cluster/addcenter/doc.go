// Package addcenter adds a datacenter to a ring that has data. It imports core packages, procedure
// and ticket.
package addcenter
