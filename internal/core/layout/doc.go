// Package layout holds the names that the two halves of a pod and the operator agree on: paths,
// ports, environment variables, container and volume names. The renderer writes them into pods, the
// agent finds its world by them. It imports nothing.
package layout
