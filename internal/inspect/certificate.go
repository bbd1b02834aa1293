package inspect

import (
	"crypto/tls"
	"time"

	"helenus.io/helenus/internal/pki"
)

// NewCertificate makes a key and a certificate for it, in memory alone. Nobody vouches for it: it
// is known by its fingerprint.
func NewCertificate(now time.Time) (tls.Certificate, error) {
	pair, err := pki.NewAuthority("helenus", now)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.Certificate, pair.Key)
}
