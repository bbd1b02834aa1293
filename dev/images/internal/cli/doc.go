// Package cli is the command line: it reads flags, calls the builders and
// prints. It may import every package beside it.
package cli
