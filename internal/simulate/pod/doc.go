// Package pod is the inside of a Cassandra pod in a simulated world: the container that
// helenus-init is in, the shared volume, the disks, and the real agent on all of it. It imports the
// agent's packages, cassandra, kube, process and timeline.
package pod
