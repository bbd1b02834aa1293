// Package versions holds, in one place, the versions of everything localkube
// builds, and knows how a Kubernetes release maps to Go module versions. It
// imports only the standard library. etcd is not listed: its version is the one
// that the go.mod of the chosen Kubernetes release pins.
package versions
