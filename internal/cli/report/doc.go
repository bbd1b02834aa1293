// Package report collects what somebody needs who is to find out why a cluster is as it is, with
// the rights of a user, and leaves out what looks like a secret. It imports the API, client-go and
// controller-runtime's client.
package report
