package control

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"helenus.io/helenus/dev/localkube/state"
)

// validity of every certificate: a development cluster is made anew sooner.
const validity = 365 * 24 * time.Hour

// authority is a certificate authority whose key lies beside its certificate.
type authority struct {
	dir  state.Dir
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// openAuthority reads the authority of this name, or makes it.
func openAuthority(dir state.Dir, name string) (*authority, error) {
	a := &authority{dir: dir}
	certPEM, certErr := os.ReadFile(dir.PKI(name + ".crt"))
	keyPEM, keyErr := os.ReadFile(dir.PKI(name + ".key"))
	if certErr == nil && keyErr == nil {
		if err := a.parse(certPEM, keyPEM); err != nil {
			return nil, fmt.Errorf("read authority %s: %w", name, err)
		}
		return a, nil
	}
	if err := errors.Join(certErr, keyErr); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read authority %s: %w", name, err)
	}
	key, err := writeKey(dir.PKI(name + ".key"))
	if err != nil {
		return nil, err
	}
	template, err := certificate("localkube-" + name)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	a.key = key
	return a, writeCertificate(dir.PKI(name+".crt"), der)
}

func (a *authority) parse(certPEM, keyPEM []byte) error {
	cert, _ := pem.Decode(certPEM)
	key, _ := pem.Decode(keyPEM)
	if cert == nil || key == nil {
		return errors.New("not PEM")
	}
	var err error
	if a.cert, err = x509.ParseCertificate(cert.Bytes); err != nil {
		return err
	}
	a.key, err = x509.ParseECPrivateKey(key.Bytes)
	return err
}

// subject is who a certificate is for.
type subject struct {
	// File is the name of the files: FILE.crt and FILE.key.
	File string
	// User and Groups are how Kubernetes reads a client certificate.
	User   string
	Groups []string
	// Hosts are the names and addresses that a server certificate answers for.
	Hosts []string
}

// issue makes a key and a certificate unless both exist.
func (a *authority) issue(s subject) error {
	certFile, keyFile := a.dir.PKI(s.File+".crt"), a.dir.PKI(s.File+".key")
	if exists(certFile) && exists(keyFile) {
		return nil
	}
	key, err := writeKey(keyFile)
	if err != nil {
		return err
	}
	template, err := certificate(s.User)
	if err != nil {
		return err
	}
	template.Subject.Organization = s.Groups
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("issue certificate %s: %w", s.File, err)
	}
	return writeCertificate(certFile, der)
}

func certificate(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(validity),
	}, nil
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return key, state.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func writeCertificate(path string, der []byte) error {
	return state.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// writeServiceAccountKeys makes the pair that signs and checks service account
// tokens.
func writeServiceAccountKeys(dir state.Dir) error {
	if exists(dir.PKI("sa.key")) && exists(dir.PKI("sa.pub")) {
		return nil
	}
	key, err := writeKey(dir.PKI("sa.key"))
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return state.WriteFile(dir.PKI("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
