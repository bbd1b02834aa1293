// Package scene is a namespace with Cassandra rings in it, as the end-to-end tests and the
// measurements see it, from outside: it forms rings, speaks to them as clients do, hurts them, and
// watches all the while that what must never happen does not. It imports the API of Helenus, the
// clients of Kubernetes and Cassandra, dev/demo and dev/localkube; of the product's own code it
// takes names alone.
package scene
