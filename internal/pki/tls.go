package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Material is what one side needs to prove itself and to check the other: its leaf with key, and
// the authorities it trusts.
type Material struct {
	certificate tls.Certificate
	roots       *x509.CertPool
	identity    Identity
}

// NewMaterial reads a leaf with its key, and a bundle of the authorities of its cluster: two while
// one takes over from the other.
func NewMaterial(leaf Pair, bundle []byte) (*Material, error) {
	certificate, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	if err != nil {
		return nil, fmt.Errorf("read own certificate and key: %w", err)
	}
	identity, err := IdentityOf(certificate.Leaf)
	if err != nil {
		return nil, fmt.Errorf("read own certificate: %w", err)
	}
	roots, err := rootsOf(bundle)
	if err != nil {
		return nil, fmt.Errorf("read bundle of authorities: %w", err)
	}
	return &Material{certificate: certificate, roots: roots, identity: identity}, nil
}

// rootsOf are the authorities of a bundle.
func rootsOf(bundle []byte) (*x509.CertPool, error) {
	authorities, err := ParseCertificates(bundle)
	return poolOf(authorities), err
}

func poolOf(certificates []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool
}

// Leaf is the own certificate.
func (m *Material) Leaf() *x509.Certificate { return m.certificate.Leaf }

// Source returns the present material: it changes while connections come and go, when certificates
// are renewed.
type Source func() (*Material, error)

// ErrStranger means that the other side proved to be somebody, but nobody who may talk to us.
var ErrStranger = errors.New("not one of this cluster")

// ServerConfig is the configuration of a server that talks only to the operator and the nodes of
// its own cluster. It looks at the source once per connection; sessions are not resumed, so that
// every connection is checked in full.
func ServerConfig(source Source, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			material, err := source()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion:             tls.VersionTLS13,
				Certificates:           []tls.Certificate{material.certificate},
				ClientAuth:             tls.RequireAndVerifyClientCert,
				ClientCAs:              material.roots,
				Time:                   now,
				SessionTicketsDisabled: true,
				NextProtos:             []string{"http/1.1"},
				VerifyConnection: func(state tls.ConnectionState) error {
					return checkCluster(state, material.identity.ClusterUID)
				},
			}, nil
		},
	}
}

// ClientConfig is the configuration of a client that wants to reach one node and nobody else.
func ClientConfig(material *Material, want Identity, now func() time.Time) *tls.Config {
	return clientConfig(material, want.ServerName(), now, func(got Identity) bool { return got == want })
}

// AnyNodeConfig is the configuration of a client that knows an address only: whichever node of its
// own cluster answers there is right.
func AnyNodeConfig(material *Material, now func() time.Time) *tls.Config {
	cluster := material.identity.ClusterUID
	return clientConfig(material, anyNode(cluster), now,
		func(got Identity) bool { return got.ClusterUID == cluster && !got.IsOperator() })
}

func clientConfig(material *Material, serverName string, now func() time.Time, wanted func(Identity) bool) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{material.certificate},
		RootCAs:      material.roots,
		ServerName:   serverName,
		Time:         now,
		NextProtos:   []string{"http/1.1"},
		VerifyConnection: func(state tls.ConnectionState) error {
			got, err := peer(state)
			if err == nil && !wanted(got) {
				err = fmt.Errorf("%w: asked for %s, %s answered", ErrStranger, serverName, got)
			}
			return err
		},
	}
}

func peer(state tls.ConnectionState) (Identity, error) {
	if len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return Identity{}, fmt.Errorf("%w: no verified certificate", ErrStranger)
	}
	return IdentityOf(state.PeerCertificates[0])
}

func checkCluster(state tls.ConnectionState, cluster types.UID) error {
	got, err := peer(state)
	if err == nil && got.ClusterUID != cluster {
		err = fmt.Errorf("%w: %s", ErrStranger, got)
	}
	return err
}
