// Package render makes objects out of specs: the nodes that a cluster describes, with everything
// inherited and defaulted, and from a node's record its pod, its claims, and the objects that the
// nodes of a cluster share. It is pure, deterministic, and imports only core packages and
// Kubernetes types.
package render
