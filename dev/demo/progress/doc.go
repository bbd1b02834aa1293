// Package progress shows steps while they run: how long each has taken, and on a terminal what its
// parts are doing, in place. It imports no Kubernetes code.
package progress
