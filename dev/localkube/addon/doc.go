// Package addon is what a bare Kubernetes lacks: DNS for the pods and volumes for
// their claims. Both run on the host and not as pods, so the loss of a node
// takes neither away. It imports apiclient, build, network, process and state.
package addon
