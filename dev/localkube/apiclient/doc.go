// Package apiclient is a small client of the Kubernetes API over JSON: enough to
// wait for readiness, read nodes and apply the few objects a cluster starts
// with. localkube does without client-go, which would take longer to compile
// than everything else in it. It imports only the standard library.
package apiclient
