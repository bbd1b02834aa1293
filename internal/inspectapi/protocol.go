package inspectapi

import (
	"net/url"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// PathPattern is the one path that is served, as net/http writes it.
const PathPattern = "GET /v1/namespaces/{namespace}/clusters/{name}"

// Path asks for one cluster.
func Path(namespace, name string) string {
	return "/v1/namespaces/" + url.PathEscape(namespace) + "/clusters/" + url.PathEscape(name)
}

// What the two sides must agree on to find each other.
const (
	// PortName is the name of the container port at which an operator listens, on the loopback
	// address of its pod.
	PortName = "inspect"
	// DefaultPort is the number of that port.
	DefaultPort = 8082
	// LeaseName is the Lease that the leader holds, in the namespace of the operator. Its holder is
	// <pod>_<random>.
	LeaseName = "helenus"
	// DefaultNamespace of the operator.
	DefaultNamespace = "helenus-system"
	// ServiceAccountName that the operator runs as.
	ServiceAccountName = "helenus"
	// ComponentOperator is the value of the label helenus.io/component on the operator's pods.
	ComponentOperator = "operator"
)

// Refusal is the answer to a request that is not fulfilled.
type Refusal struct {
	// Error says why, for people.
	Error string `json:"error"`
	// Leader is the name of the pod that leads, with status 421.
	Leader string `json:"leader,omitempty"`
}

// LeaderOf is the name of the pod that holds a lease; empty if none does. The leader's identity is
// its host name, an underscore and something random.
func LeaderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}
