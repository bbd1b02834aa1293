// Package initd is PID 1 of the Cassandra container, the protocol it speaks on a unix socket, and the client for it.
//
// The server side (protocol.go, server.go, process.go, image.go) is at most 500 lines together with cmd/helenus-init,
// a limit that a test holds; client.go and install.go are for the agent. Imports: standard library and golang.org/x/sys only.
package initd
