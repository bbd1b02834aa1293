// Package initd is PID 1 of the Cassandra container. Together with cmd/helenus-init it has at most 600 lines, which a test
// holds. Imports: standard library, golang.org/x/sys and initapi only.
package initd
