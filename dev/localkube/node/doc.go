// Package node runs one Kubernetes node as the init process of namespaces of
// its own (processes, mounts, network, host name), with containerd, kubelet and
// kube-proxy below it. The files of both sides are here: what happens on the
// host, and, in init.go and mounts.go, what happens inside. A node dies like a
// machine: its link goes away, then its init is killed and the kernel kills all
// the rest. It imports control, network, process and state.
package node
