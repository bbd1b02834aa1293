package execute

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/pki"
)

const (
	// certificatesEvery is how often the certificates are looked at that the pod is given.
	certificatesEvery = 10 * time.Second
	// handshakeTimeout bounds one handshake with Cassandra.
	handshakeTimeout = 5 * time.Second
)

func serialOf(certificate *x509.Certificate) string { return certificate.SerialNumber.Text(16) }

// idOf tells certificate, key and bundle from any others.
func idOf(use v1alpha1.CertificateUse, files config.Files) string {
	sum := sha256.Sum256(slices.Concat(files[config.KeyFile(use)], files[config.TrustFile(use)]))
	return hex.EncodeToString(sum[:])
}

// given is the certificate that Cassandra is to have, as the files of its configuration.
func (a *Agent) given(use v1alpha1.CertificateUse) (config.Files, *x509.Certificate, error) {
	leaf, bundle, err := a.host.Certificates.Given(use)
	if err != nil {
		return nil, nil, err
	}
	own, err := a.verify(use, leaf, bundle)
	if err != nil {
		return nil, nil, err
	}
	return config.Files{config.KeyFile(use): slices.Concat(leaf.Key, leaf.Certificate), config.TrustFile(use): bundle},
		own, nil
}

// verified is a certificate that was good.
type verified struct {
	leaf   pki.Pair
	bundle []byte
	own    *x509.Certificate
}

// verify remembers what was good: nothing but its end makes it bad.
func (a *Agent) verify(use v1alpha1.CertificateUse, leaf pki.Pair, bundle []byte) (*x509.Certificate, error) {
	now := a.host.Threads.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	known, found := a.verified[use]
	if found && now.Before(known.own.NotAfter) && reflect.DeepEqual(known.leaf, leaf) && bytes.Equal(known.bundle, bundle) {
		return known.own, nil
	}
	own, err := pki.Verify(leaf, bundle, use == v1alpha1.UseInternode, now)
	if err != nil {
		return nil, err
	}
	a.verified[use] = verified{leaf, bundle, own}
	return own, nil
}

// addCertificates adds to the files of a start the certificates that the node is given. In place of
// one that cannot be used the JVM has what it had.
func (a *Agent) addCertificates(e *v1alpha1.NodeEncryption, files config.Files) error {
	for _, use := range e.Uses() {
		given, _, err := a.given(use)
		if err != nil {
			a.host.Logf("certificate for %s: %v", use, err)
			given = config.Files{}
			for _, name := range []string{config.KeyFile(use), config.TrustFile(use)} {
				text, readErr := a.host.Files.Read(name)
				if readErr != nil {
					return fmt.Errorf("no certificate for %s: %w", use, err)
				}
				given[name] = text
			}
		}
		maps.Copy(files, given)
	}
	return nil
}

// LookAtCertificates reads the certificates that the running JVM is to have, if that is due.
func (a *Agent) LookAtCertificates() {
	a.mu.Lock()
	now, start := a.host.Threads.Now(), a.memory.Start
	due := start != nil && start.Configuration.Encryption != nil && a.init.Process != nil &&
		now.Sub(a.certificatesAt) >= certificatesEvery
	if due {
		a.certificatesAt = now
	}
	a.mu.Unlock()
	if !due {
		return
	}
	for _, use := range start.Configuration.Encryption.Uses() {
		files, _, err := a.given(use)
		a.change(use, func(c *node.Certificate) {
			switch {
			case err != nil:
				c.Given, c.Problem = "", err.Error()
			case c.Given != idOf(use, files) || c.Given == c.Served:
				c.Given, c.Problem = idOf(use, files), ""
			}
		})
	}
}

// change what is known of a certificate, and decide anew if that is something else.
func (a *Agent) change(use v1alpha1.CertificateUse, change func(*node.Certificate)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.certificates, func(c node.Certificate) bool { return c.Use == use })
	next := slices.Clone(a.certificates)
	if i < 0 {
		i, next = len(next), append(next, node.Certificate{Use: use})
	}
	if change(&next[i]); !reflect.DeepEqual(next, a.certificates) {
		a.certificates = next
		a.wake.Set()
	}
}

// proveCertificates has Cassandra take over the certificates that it does not show yet. Only what
// it shows then is believed: it logs what it cannot use, and says that all is well.
func (a *Agent) proveCertificates(_ *node.Facts, action node.ProveCertificates) effect {
	return func(ctx context.Context) result {
		written := false
		given, leaves := map[v1alpha1.CertificateUse]config.Files{}, map[v1alpha1.CertificateUse]*x509.Certificate{}
		for _, use := range action.Uses {
			files, own, err := a.given(use)
			if err != nil {
				return result{err: err}
			}
			given[use], leaves[use] = files, own
			has := config.Files{}
			for name := range files {
				has[name], _ = a.host.Files.Read(name)
			}
			if served, err := a.served(ctx, use); err == nil && served.Equal(own) &&
				idOf(use, has) == idOf(use, files) {
				continue
			}
			for _, name := range slices.Backward(slices.Sorted(maps.Keys(files))) { // the key is the last
				if err := a.host.Files.Replace(name, files[name]); err != nil {
					return result{err: err}
				}
			}
			written = true
		}
		if written {
			if err := a.host.JVM.ReloadCertificates(ctx); err != nil {
				return result{err: err}
			}
		}
		for _, use := range action.Uses {
			own := leaves[use]
			served, err := a.served(ctx, use)
			switch {
			case err != nil:
			case !served.Equal(own):
				err = fmt.Errorf("certificate %s for %s is shown after a reload, and Cassandra was given %s: its "+
					"log says why", serialOf(served), use, serialOf(own))
			}
			by, trusted := authoritiesOf(use, given[use])
			a.change(use, func(c *node.Certificate) {
				if err != nil {
					c.Problem = err.Error()
					return
				}
				c.Given, c.SerialNumber, c.Problem = idOf(use, given[use]), serialOf(own), ""
				c.NotBefore, c.NotAfter = own.NotBefore, own.NotAfter
				c.Served, c.Authority, c.Trusted = c.Given, by, trusted
			})
			if err != nil {
				return result{err: err}
			}
		}
		return result{}
	}
}

// authoritiesOf are the fingerprints of the authority that has signed a certificate, and of those
// that are trusted with it. The files are verified.
func authoritiesOf(use v1alpha1.CertificateUse, files config.Files) (by string, trusted []string) {
	bundle, err := pki.ParseCertificates(files[config.TrustFile(use)])
	_, chain := pem.Decode(files[config.KeyFile(use)])
	own, ownErr := pki.ParseCertificates(chain)
	if err != nil || ownErr != nil {
		return "", nil
	}
	for _, authority := range bundle {
		trusted = append(trusted, pki.Fingerprint(authority))
	}
	if signer := pki.SignedBy(own, bundle); signer != nil {
		by = pki.Fingerprint(signer)
	}
	return by, trusted
}

func (a *Agent) served(ctx context.Context, use v1alpha1.CertificateUse) (*x509.Certificate, error) {
	leaf, bundle, err := a.host.Certificates.Given(use)
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.host.Threads.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	return a.host.Certificates.Served(ctx, use, leaf, bundle)
}
