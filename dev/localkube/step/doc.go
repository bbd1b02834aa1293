// Package step prints what localkube is doing: each step with its progress and
// the time it took. It imports only the standard library and golang.org/x/sys.
package step
