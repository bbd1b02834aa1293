// Package control starts the control plane: it makes the certificates and
// kubeconfigs, renders the flags of etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, and waits until they are ready. It
// imports apiclient, build, process and state.
package control
