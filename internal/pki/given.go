package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// leastLife is how long a certificate of somebody else must be valid yet to be taken.
const leastLife = time.Hour

// Given is a certificate that somebody else has signed, as nodes can have it: with nothing around
// it, and the key as PKCS#8, the only form that Cassandra reads. The error says what is wrong with
// it.
func Given(leaf Pair, bundle []byte, calls bool, now time.Time) (Pair, []byte, error) {
	key, err := pkcs8(leaf.Key)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("%s: %w", KeyPrivateKey, err)
	}
	out := Pair{Certificate: plain(leaf.Certificate), Key: key}
	bundle = plain(bundle)
	own, err := Verify(out, bundle, calls, now)
	if err == nil && own.NotAfter.Before(now.Add(leastLife)) {
		err = fmt.Errorf("%s expires at %s: it must be valid for another hour at least", KeyCertificate,
			own.NotAfter.UTC().Format(time.RFC3339))
	}
	return out, bundle, err
}

// AuthorityOf is the authority of a bundle that has signed a certificate between nodes. It must
// sign more than that: all of them are known by one.
func AuthorityOf(certificate, bundle []byte) ([]byte, error) {
	chain, err := ParseCertificates(certificate)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyCertificate, err)
	}
	authorities, err := ParseCertificates(bundle)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyBundle, err)
	}
	switch by := SignedBy(chain, authorities); {
	case by == nil:
		return nil, fmt.Errorf("%s is signed by none of %s", KeyCertificate, KeyBundle)
	case !by.IsCA:
		return nil, fmt.Errorf("%s has no certificate authority, but a certificate that is known by itself", KeyBundle)
	default:
		return Text(by), nil
	}
}

// Text of certificates, as PEM.
func Text(certificates ...*x509.Certificate) (out []byte) {
	for _, c := range certificates {
		out = slices.Concat(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return out
}

// pkcs8 is a private key in that form. Parameters of its curve may stand before it.
func pkcs8(text []byte) ([]byte, error) {
	block, rest := pem.Decode(text)
	for block != nil && !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("no PEM block PRIVATE KEY")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}), nil
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("it is an %s: it must be PRIVATE KEY (PKCS#8), RSA or EC PRIVATE KEY, without a password",
			block.Type)
	}
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// plain are the PEM blocks of a text without what stands between them, each on lines of its own.
func plain(text []byte) (out []byte) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		out = slices.Concat(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	return out
}
