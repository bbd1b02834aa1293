package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// scheme of the URI that carries an identity.
const scheme = "helenus"

// Identity is who a certificate speaks for: the operator or one node, always of one cluster.
type Identity struct {
	// ClusterUID is the uid of the CassandraCluster.
	ClusterUID types.UID
	// Node is the name of the CassandraNode; empty for the operator.
	Node string
}

// OperatorOf is the identity of the operator towards the agents of one cluster.
func OperatorOf(cluster types.UID) Identity { return Identity{ClusterUID: cluster} }

// NodeOf is the identity of the agent of one node.
func NodeOf(cluster types.UID, node string) Identity {
	return Identity{ClusterUID: cluster, Node: node}
}

// IsOperator says whether it is the operator's.
func (i Identity) IsOperator() bool { return i.Node == "" }

// URI is the identity as it stands in the certificate: helenus://<cluster uid>/operator or
// helenus://<cluster uid>/node/<name>.
func (i Identity) URI() *url.URL {
	path := "/operator"
	if !i.IsOperator() {
		path = "/node/" + i.Node
	}
	return &url.URL{Scheme: scheme, Host: string(i.ClusterUID), Path: path}
}

func (i Identity) String() string { return i.URI().String() }

// ServerName is the DNS name in a node's certificate. Nothing resolves it: a client dials the pod's
// address and asks for this name, so that the handshake's own check of names proves which node of
// which cluster answers.
func (i Identity) ServerName() string {
	if i.IsOperator() {
		return ""
	}
	return i.Node + "." + string(i.ClusterUID) + ".helenus.internal"
}

// anyNode is the DNS name that the certificates of all nodes of a cluster have. No node is called
// so: their names have hyphens.
func anyNode(cluster types.UID) string { return NodeOf(cluster, "node").ServerName() }

// check refuses what would make an ambiguous URI or name.
func (i Identity) check() error {
	if i.ClusterUID == "" || strings.ContainsAny(string(i.ClusterUID), "/@:?#. ") {
		return fmt.Errorf("cluster uid %q: must be the uid of an object", i.ClusterUID)
	}
	if strings.ContainsAny(i.Node, "/@:?#. ") {
		return fmt.Errorf("node %q: must be the name of a CassandraNode", i.Node)
	}
	return nil
}

// ParseIdentity reads the URI of an identity.
func ParseIdentity(u *url.URL) (Identity, error) {
	if u.Scheme != scheme || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return Identity{}, fmt.Errorf("%q is no identity: want helenus://<cluster uid>/operator or "+
			"helenus://<cluster uid>/node/<name>", u.Redacted())
	}
	identity := Identity{ClusterUID: types.UID(u.Host)}
	if u.Path != "/operator" {
		name, found := strings.CutPrefix(u.Path, "/node/")
		if !found || name == "" {
			return Identity{}, fmt.Errorf("%q is no identity: the path must be /operator or /node/<name>", u.Redacted())
		}
		identity.Node = name
	}
	return identity, identity.check()
}

// errNoIdentity is about a certificate that does not carry exactly one URI.
var errNoIdentity = errors.New("the certificate must carry exactly one URI, that of its identity")

// IdentityOf reads the identity of a certificate. It says nothing about who signed it.
func IdentityOf(certificate *x509.Certificate) (Identity, error) {
	if len(certificate.URIs) != 1 {
		return Identity{}, errNoIdentity
	}
	return ParseIdentity(certificate.URIs[0])
}
