// Package settings holds the tables of what cassandra.yaml may contain in each line of Cassandra,
// and checks values against them.
//
// The tables (4.1.json, 5.0.json) are data, written by generate.sh from the classes of every
// release of a line, so that a new release of Cassandra needs a new table and no new code. The
// package imports the standard library alone and is pure.
//
// To regenerate after a release of Cassandra: add the release to generate.sh, run `go generate` in
// this folder with a JDK (17 or later) and Maven on the path, and read the difference: each setting
// is one line.
package settings

//go:generate ./generate.sh
