// Package state holds what is known of one cluster between two commands: where
// its files are, what it was started with, and a lock that keeps two commands
// from changing it at once. It imports only the standard library and
// golang.org/x/sys.
package state
