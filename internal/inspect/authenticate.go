package inspect

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/util/cert"
)

// allAuthenticated is the group of everybody whom Kubernetes knows.
const allAuthenticated = "system:authenticated"

// errUnknown means that a request comes from nobody we know. What it wraps is said to the one who
// asks.
var errUnknown = errors.New("not authenticated")

// authenticate says who sent a request: by a valid client certificate, else by a bearer token. As
// in the API server, a certificate that does not verify is no obstacle to a token that does. An
// error that is not errUnknown is ours.
func (s *Server) authenticate(ctx context.Context, r *http.Request) (authenticationv1.UserInfo, error) {
	var refused error
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		bundle, err := s.Reviews.ClientAuthorities(ctx)
		if err != nil {
			return authenticationv1.UserInfo{}, err
		}
		user, err := userOf(r.TLS.PeerCertificates, bundle, s.Now())
		if err == nil {
			return user, nil
		}
		refused = err
	}
	if token, ok := bearer(r); ok {
		return s.byToken(ctx, token)
	}
	if refused != nil {
		return authenticationv1.UserInfo{}, refused
	}
	return authenticationv1.UserInfo{}, fmt.Errorf("%w: no client certificate and no bearer token was sent", errUnknown)
}

func (s *Server) byToken(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	status, err := s.Reviews.Token(ctx, token)
	switch {
	case err != nil:
		return authenticationv1.UserInfo{}, err
	case !status.Authenticated || status.User.Username == "":
		return authenticationv1.UserInfo{}, fmt.Errorf("%w: Kubernetes does not know the bearer token", errUnknown)
	}
	return status.User, nil
}

// bearer is the token of the Authorization header.
func bearer(r *http.Request) (string, bool) {
	scheme, token, found := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "bearer") && token != ""
}

// userOf is whom a certificate names: as in Kubernetes, the common name is the user and the
// organizations are the groups. The first certificate is the person's, the rest may lead from it to
// an authority of the bundle.
func userOf(chain []*x509.Certificate, bundle []byte, now time.Time) (authenticationv1.UserInfo, error) {
	roots, err := poolOf(bundle)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	leaf := chain[0]
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("%w: verify the client certificate: %w", errUnknown, err)
	}
	if leaf.Subject.CommonName == "" {
		return authenticationv1.UserInfo{}, fmt.Errorf("%w: the client certificate names no user", errUnknown)
	}
	groups := append([]string{}, leaf.Subject.Organization...)
	return authenticationv1.UserInfo{Username: leaf.Subject.CommonName, Groups: append(groups, allAuthenticated)}, nil
}

// poolOf reads the authorities as the API server does. An empty bundle makes an empty pool, which
// trusts nobody; a nil pool would stand for the authorities of the image.
func poolOf(bundle []byte) (*x509.CertPool, error) {
	if len(bytes.TrimSpace(bundle)) == 0 {
		return x509.NewCertPool(), nil
	}
	pool, err := cert.NewPoolFromBytes(bundle)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of client certificates: %w", err)
	}
	return pool, nil
}
