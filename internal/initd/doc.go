// Package initd is PID 1 of the Cassandra container. A test holds it, together with
// cmd/helenus-init, to 600 lines. Imports: standard library, golang.org/x/sys and initapi only.
package initd
