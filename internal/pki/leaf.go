package pki

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// leastRSABits of a key that is trusted.
const leastRSABits = 2048

// Verify is nil if a leaf can be used with Cassandra now: to serve and, if calls is set, to call
// others by. The error says what is wrong with it.
func Verify(leaf Pair, bundle []byte, calls bool, now time.Time) (*x509.Certificate, error) {
	chain, err := ParseCertificates(leaf.Certificate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyCertificate, err)
	}
	roots, err := rootsOf(bundle)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyBundle, err)
	}
	if !bytes.Contains(leaf.Key, []byte("-----BEGIN PRIVATE KEY-----")) {
		return nil, fmt.Errorf("%s: no PEM block PRIVATE KEY (PKCS#8), the only form that Cassandra reads",
			KeyPrivateKey)
	}
	if _, err := tls.X509KeyPair(leaf.Certificate, leaf.Key); err != nil {
		return nil, fmt.Errorf("%s does not belong to %s: %w", KeyPrivateKey, KeyCertificate, err)
	}
	own := chain[0]
	key, isRSA := own.PublicKey.(*rsa.PublicKey)
	switch has := func(usage x509.ExtKeyUsage) bool { return slices.Contains(own.ExtKeyUsage, usage) }; {
	case now.Before(own.NotBefore):
		return nil, fmt.Errorf("%s is valid from %s on", KeyCertificate, own.NotBefore.UTC().Format(time.RFC3339))
	case !now.Before(own.NotAfter):
		return nil, fmt.Errorf("%s has expired at %s", KeyCertificate, own.NotAfter.UTC().Format(time.RFC3339))
	case isRSA && key.N.BitLen() < leastRSABits:
		return nil, fmt.Errorf("%s has an RSA key of %d bits: it must have at least %d", KeyCertificate, key.N.BitLen(),
			leastRSABits)
	case !has(x509.ExtKeyUsageServerAuth):
		return nil, errors.New(KeyCertificate + " lacks the extended key usage serverAuth")
	case calls && !has(x509.ExtKeyUsageClientAuth):
		return nil, errors.New(KeyCertificate + " lacks the extended key usage clientAuth")
	}
	if _, err := own.Verify(x509.VerifyOptions{Roots: roots, Intermediates: poolOf(chain[1:]), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, fmt.Errorf("%s is signed by none of %s: %w", KeyCertificate, KeyBundle, err)
	}
	return own, nil
}

// SignedBy is the authority of a bundle that has signed a chain, or an authority itself; nil if
// none has. That it has ended does not matter.
func SignedBy(chain, bundle []*x509.Certificate) *x509.Certificate {
	for _, a := range bundle {
		if chain[0].Equal(a) {
			return a
		}
		if _, err := chain[0].Verify(x509.VerifyOptions{Roots: poolOf([]*x509.Certificate{a}),
			Intermediates: poolOf(chain[1:]), CurrentTime: chain[0].NotBefore,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
			return a
		}
	}
	return nil
}

// DialConfig is the configuration of a client that reaches Cassandra in the same pod: it shows its
// own leaf, and takes whichever the other side shows that one of the authorities has signed.
func DialConfig(leaf Pair, bundle []byte, now func() time.Time) (*tls.Config, error) {
	own, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	if err != nil {
		return nil, fmt.Errorf("read own certificate and key: %w", err)
	}
	roots, err := rootsOf(bundle)
	if err != nil {
		return nil, fmt.Errorf("read bundle of authorities: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, Time: now,
		InsecureSkipVerify: true, //nolint:gosec // the chain is verified below; the address is our own
		VerifyConnection: func(state tls.ConnectionState) error {
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots,
				Intermediates: poolOf(state.PeerCertificates[1:]), CurrentTime: now()})
			return err
		},
	}, nil
}
