// Package realtest runs the real agent, the real helenus-init and a real Cassandra from its image, without Kubernetes: a network namespace, a process
// namespace and a file system of its own for each pod, and an API server in memory. It needs root and the build tag cassandra; the tests say what they want
// in the environment.
package realtest
