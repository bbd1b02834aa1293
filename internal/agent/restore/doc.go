// Package restore fills the empty disk of a node with what another one had in a backup. It imports
// the API, the format and the stores of backups, what writes to the disk, threads, and core
// packages.
package restore
