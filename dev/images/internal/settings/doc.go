// Package settings reads from Cassandra's jar which settings cassandra.yaml may
// have, without running it, and compares a file with them. Cassandra does not
// start with a setting it does not know. It may import the standard library only.
package settings
