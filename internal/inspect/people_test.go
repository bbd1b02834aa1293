package inspect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// now is when all tests happen.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// signer is an authority, or one who pretends to be.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newAuthority makes an authority, signed by another one or by itself.
func newAuthority(t *testing.T, name string, by *signer) *signer {
	t.Helper()
	s := &signer{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	parent := &signer{certificate: template, key: s.key}
	if by != nil {
		parent = by
	}
	s.certificate = sign(t, template, parent, s.key)
	return s
}

func sign(t *testing.T, template *x509.Certificate, by *signer, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
}

// person is what a client certificate says; the zero value of the rest makes a good one.
type person struct {
	name   string
	groups []string
	from   time.Duration // after now; an hour ago if 0
	until  time.Duration // after now; in an hour if 0
	usage  x509.ExtKeyUsage
}

func (s *signer) issue(t *testing.T, p person, chain ...*signer) *tls.Certificate {
	t.Helper()
	if p.from == 0 {
		p.from = -time.Hour
	}
	if p.until == 0 {
		p.until = time.Hour
	}
	if p.usage == 0 {
		p.usage = x509.ExtKeyUsageClientAuth
	}
	key := newKey(t)
	certificate := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: p.name, Organization: p.groups},
		NotBefore: now.Add(p.from), NotAfter: now.Add(p.until), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{p.usage},
	}, s, key)
	out := &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
	for _, c := range chain {
		out.Certificate = append(out.Certificate, c.certificate.Raw)
	}
	return out
}
