// Package build compiles Kubernetes, etcd, CoreDNS, the storage provisioner and
// containerd from the Go module proxy into a cache. A finished binary is renamed into its
// place, so what is there is whole: an interrupted build goes on where it was,
// and a second start builds nothing. It imports golang.org/x/mod for go.mod
// files, and the packages step and versions.
package build
