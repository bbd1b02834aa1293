package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
)

// Certificates are those of Cassandra as the kubelet mounts them.
type Certificates struct {
	directory string
	address   netip.Addr
	now       func() time.Time
}

// NewCertificates reads from a directory with one for each use. Cassandra listens on an address.
func NewCertificates(directory string, address netip.Addr, now func() time.Time) *Certificates {
	return &Certificates{directory, address, now}
}

// Given implements execute.Certificates.
func (c *Certificates) Given(use v1alpha1.CertificateUse) (leaf pki.Pair, bundle []byte, err error) {
	var errs [3]error
	for i, f := range []struct {
		name string
		into *[]byte
	}{{pki.KeyCertificate, &leaf.Certificate}, {pki.KeyPrivateKey, &leaf.Key}, {pki.KeyBundle, &bundle}} {
		*f.into, errs[i] = os.ReadFile(filepath.Join(c.directory, string(use), f.name))
	}
	if err := errors.Join(errs[:]...); err != nil {
		return leaf, nil, fmt.Errorf("read certificate: %w", err)
	}
	return leaf, bundle, nil
}

var portOf = map[v1alpha1.CertificateUse]uint16{v1alpha1.UseInternode: layout.StoragePort,
	v1alpha1.UseClients: layout.NativePort}

// Served implements execute.Certificates.
func (c *Certificates) Served(ctx context.Context, use v1alpha1.CertificateUse, leaf pki.Pair, bundle []byte) (
	*x509.Certificate, error) {
	config, err := pki.DialConfig(leaf, bundle, c.now)
	if err != nil {
		return nil, err
	}
	own, accepted := config.Certificates[0], [][]byte(nil)
	config.GetClientCertificate = func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		accepted = asked.AcceptableCAs
		return &own, nil
	}
	dialer := &tls.Dialer{Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(c.address, portOf[use]).String())
	if err != nil {
		return nil, fmt.Errorf("shake hands with Cassandra: %w", err)
	}
	defer connection.Close() //nolint:errcheck // nothing was sent
	trusted, err := pki.ParseCertificates(bundle)
	if err != nil {
		return nil, err
	}
	if !names(accepted, trusted) {
		return nil, errors.New("shake hands with Cassandra: it trusts other authorities than it was given")
	}
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// names says that authorities, by their names, are those that are trusted. One that asks for no
// certificate names none, and trusts none.
func names(authorities [][]byte, trusted []*x509.Certificate) bool {
	is := func(a *x509.Certificate) func([]byte) bool {
		return func(name []byte) bool { return bytes.Equal(name, a.RawSubject) }
	}
	missing := func(a *x509.Certificate) bool { return !slices.ContainsFunc(authorities, is(a)) }
	return len(authorities) == 0 || len(authorities) == len(trusted) && !slices.ContainsFunc(trusted, missing)
}

// Dial is the configuration of a connection of CQL to the own node.
func (c *Certificates) Dial() (*tls.Config, error) {
	leaf, bundle, err := c.Given(v1alpha1.UseClients)
	if err != nil {
		return nil, err
	}
	return pki.DialConfig(leaf, bundle, c.now)
}
