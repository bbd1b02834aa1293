// Package reach reaches a Kubernetes cluster from outside of it, with no more than a kubeconfig:
// its API server, the programs in its containers, and the ports of its pods. The demonstration and
// the end-to-end tests use it; it imports the API of Helenus and the clients of Kubernetes.
package reach
