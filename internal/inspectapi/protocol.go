package inspectapi

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// PathPattern is the one path that is served, as net/http writes it: GET asks for the plan of a
// cluster, POST for what the plan would be with the CassandraClusterSpec in its body.
const PathPattern = "/v1/namespaces/{namespace}/clusters/{name}"

// Path asks for one cluster.
func Path(namespace, name string) string {
	return "/v1/namespaces/" + url.PathEscape(namespace) + "/clusters/" + url.PathEscape(name)
}

// ReplicasPath asks who holds a keyspace, or with columns a key of it.
func ReplicasPath(namespace, name, keyspace string, columns []string) string {
	return Path(namespace, name) + "/replicas?" + url.Values{"keyspace": {keyspace}, "column": columns}.Encode()
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
	// FingerprintLabel of that Lease has the Fingerprint of the certificate that the leader serves
	// with.
	FingerprintLabel = "helenus.io/inspect-certificate"
	// AddressLabel of that Lease has the LabelOf the leader's address, if it serves browsers.
	AddressLabel = "helenus.io/console-address"
	// DefaultNamespace of the operator.
	DefaultNamespace = "helenus-system"
	// ComponentOperator is the value of the label helenus.io/component on the operator's pods.
	ComponentOperator = "operator"
)

// Refusal is the answer to a request that is not fulfilled.
type Refusal struct {
	// Error says why, for people.
	Error string `json:"error"`
}

// Fingerprint of a certificate (its SHA-224 in hexadecimal digits, which a label can hold).
func Fingerprint(certificate []byte) string { return fmt.Sprintf("%x", sha256.Sum224(certificate)) }

// LabelOf an address is what a label can hold of it, and AddressIn is the address of that.
func LabelOf(address netip.Addr) string {
	return strings.ReplaceAll(address.Unmap().StringExpanded(), ":", "-")
}

// AddressIn is the address of a label.
func AddressIn(label string) (netip.Addr, error) {
	return netip.ParseAddr(strings.ReplaceAll(label, "-", ":"))
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
