// Package kube is what Kubernetes does around an API server: it places pods by zone and volume,
// binds claims to volumes on hosts, runs the containers of pods as kubelet does, and keeps
// disruption budgets. Hosts can be lost, cut off and brought back. What a container does is the
// business of its Runtime.
//
// It reads and writes through a client like everybody else, and imports timeline, the names of
// apiserver, and Kubernetes' types.
package kube
