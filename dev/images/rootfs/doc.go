// Package rootfs embeds the files of our own that go into the Cassandra images:
// common for all of them, then those of a release line (5.0), then those of one
// version (5.0.9), each over the one before. It imports nothing else.
package rootfs
