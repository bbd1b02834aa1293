// Package temporary decides about rings that the operator makes from backups for a while: what they
// are made of, whether they serve, and what is done about a CassandraRestore that needs one. It
// does no I/O, and imports core packages.
package temporary
