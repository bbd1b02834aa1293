// Package cmd is the command line: flags, help and output. What the commands do
// is in package cluster.
package cmd
