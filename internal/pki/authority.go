package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/netip"
	"net/url"
	"time"
)

// How long certificates live, and how far back they are dated for peers whose clock is behind.
const (
	AuthorityLifetime = 10 * 365 * 24 * time.Hour
	LeafLifetime      = 365 * 24 * time.Hour
	backdated         = time.Hour
)

// Keys of the Secrets that hold certificates. The names are those of kubernetes.io/tls.
const (
	KeyCertificate = "tls.crt"
	KeyPrivateKey  = "tls.key"
	KeyBundle      = "ca.crt"
	// Those of an authority that is trusted, and signs nothing yet.
	KeyNextCertificate = "next.crt"
	KeyNextKey         = "next.key"
)

// Pair is a certificate and its key, both PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Authority signs the leaves of one cluster.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes the authority of a cluster: ECDSA P-256, ten years, able to sign leaves and
// nothing else. Name is for people; with the time two of one name differ in what they are called.
func NewAuthority(name string, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make key of authority: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"Helenus"}, CommonName: commonName(name),
			SerialNumber: now.UTC().Format("20060102T150405.000Z")},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(AuthorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return sign(template, template, key, key)
}

// ParseAuthority reads what NewAuthority made.
func ParseAuthority(pair Pair) (*Authority, error) {
	certificates, err := ParseCertificates(pair.Certificate)
	if err != nil {
		return nil, fmt.Errorf("read certificate of authority: %w", err)
	}
	block, _ := pem.Decode(pair.Key)
	if block == nil {
		return nil, errors.New("read key of authority: no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read key of authority: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	switch {
	case !ok:
		return nil, fmt.Errorf("read key of authority: %T, want ECDSA", parsed)
	case !certificates[0].IsCA:
		return nil, errors.New("read certificate of authority: it may not sign others")
	case !key.PublicKey.Equal(certificates[0].PublicKey):
		return nil, errors.New("read authority: the key does not belong to the certificate")
	}
	return &Authority{certificate: certificates[0], key: key}, nil
}

// Issue signs a leaf of one year for an identity. It serves and calls: agents ask each other.
func (a *Authority) Issue(identity Identity, now time.Time) (Pair, error) {
	if err := identity.check(); err != nil {
		return Pair{}, fmt.Errorf("issue certificate: %w", err)
	}
	leaf := Leaf{Name: identity.Node, Lifetime: LeafLifetime, uri: identity.URI()}
	if identity.IsOperator() {
		leaf.Name = "operator"
	}
	if server := identity.ServerName(); server != "" {
		leaf.DNSNames = []string{server, anyNode(identity.ClusterUID)}
	}
	return a.IssueLeaf(leaf, now)
}

// Leaf is what a certificate of a node says.
type Leaf struct {
	// Name is for people.
	Name string
	// DNSNames and Addresses by which clients reach the node.
	DNSNames  []string
	Addresses []netip.Addr
	// Lifetime is cut to that of the authority.
	Lifetime time.Duration

	uri *url.URL
}

// IssueLeaf signs a leaf that serves and calls.
func (a *Authority) IssueLeaf(leaf Leaf, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make key for %s: %w", leaf.Name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"Helenus"}, CommonName: commonName(leaf.Name)},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(min(leaf.Lifetime, a.certificate.NotAfter.Sub(now))),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              leaf.DNSNames,
	}
	for _, address := range leaf.Addresses {
		template.IPAddresses = append(template.IPAddresses, address.AsSlice())
	}
	if leaf.uri != nil {
		template.URIs = append(template.URIs, leaf.uri)
	}
	return sign(template, a.certificate, key, a.key)
}

// IssuedAt is when a certificate of ours was signed.
func IssuedAt(certificate *x509.Certificate) time.Time { return certificate.NotBefore.Add(backdated) }

// Fingerprint of a certificate: SHA-256 in hexadecimal digits.
func Fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// RenewAt is when a certificate is to be replaced: after two thirds of its life.
func RenewAt(certificate *x509.Certificate) time.Time {
	issued := IssuedAt(certificate)
	return issued.Add(certificate.NotAfter.Sub(issued) / 3 * 2)
}

// Jittered is a time of renewal that differs between nodes, by up to an eighth of the life before
// it earlier, so that they do not renew at the same moment. It is the same for the same node.
func Jittered(renew, now time.Time, node string) time.Time {
	h := fnv.New32a()
	h.Write([]byte(node))
	return renew.Add(-time.Duration(float64(renew.Sub(now)) / 8 * float64(h.Sum32()) / math.MaxUint32))
}

// ParseCertificates reads one or more PEM certificates. Anything else in the text is an error: a
// bundle that is half read would lock somebody out.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block %d is a %q, want CERTIFICATE", len(out)+1, block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(out)+1, err)
		}
		out = append(out, certificate)
	}
	if len(out) == 0 {
		return nil, errors.New("no PEM certificate")
	}
	return out, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode key of %s: %w", template.Subject.CommonName, err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// commonName cuts a name to the 64 characters that X.520 allows. It is for people; nothing is
// decided by it.
func commonName(name string) string { return name[:min(len(name), 64)] }
