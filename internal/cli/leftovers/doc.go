// Package leftovers finds what a cluster that is gone has left, and removes it with the rights of a
// user. It imports the API and controller-runtime's client.
package leftovers
