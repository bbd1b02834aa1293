// Package upkeep keeps the objects of a cluster as they are to be: ownership, validation, shared
// objects, records, claims, pods, seeds, and what is left of a deleted cluster. It never disrupts a
// node that serves and opens no step. It imports core packages, procedure and ticket.
package upkeep
