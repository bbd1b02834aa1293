package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	// partSize is what is held in memory of an object that is written: larger ones are written in
	// parts. Those of more than mostParts parts have larger parts.
	partSize  = 8 << 20
	mostParts = 10_000
	// attempts of a request, with pauses of up to a second between them.
	attempts  = 5
	mostPause = time.Second
	// requestLimit is for a request with its attempts, and slowest the bytes a second at which its
	// content must pass at least. A read of an object may pause for as long as readLimit.
	requestLimit = 2 * time.Minute
	slowest      = 64 << 10
	readLimit    = time.Minute
)

// Secrets is what Open takes of the Secrets of a store, which a function reads by their names.
func Secrets(spec *v1alpha1.BackupStoreSpec, read func(name string) (map[string][]byte, error)) (map[string][]byte,
	error) {
	out := map[string][]byte{}
	for _, name := range spec.SecretNames() {
		content, err := read(name)
		if err != nil {
			return nil, err
		}
		for key, value := range content {
			identities := key == v1alpha1.KeyIdentities
			if identities && name == spec.EncryptionSecret() || !identities && name == spec.CredentialsSecret() {
				out[key] = value
			}
		}
	}
	return out, nil
}

// Open opens a store with the content of its Secrets. It does not ask the service for anything.
func Open(spec v1alpha1.BackupStoreSpec, secret map[string][]byte) (Store, error) {
	var opened Store
	switch {
	case spec.S3 != nil:
		s, err := OpenS3(*spec.S3, secret)
		if err != nil {
			return nil, err
		}
		s.lock = lockOf(spec.Lock)
		opened = s
	case spec.Azure != nil:
		s, err := OpenAzure(*spec.Azure, secret)
		if err != nil {
			return nil, err
		}
		opened = s
	case spec.GCS != nil:
		s, err := OpenGCS(*spec.GCS, secret)
		if err != nil {
			return nil, err
		}
		opened = s
	default:
		return nil, errors.New("open store of backups: the spec names none")
	}
	if spec.EncryptionSecret() == "" {
		return opened, nil
	}
	return Encrypt(opened, spec.EncryptionSecret(), secret[v1alpha1.KeyIdentities])
}

// wayTo is the address of a service, and a transport that trusts what a Secret says; or the reason
// why there is none.
func wayTo(endpoint, secretName string, secret map[string][]byte) (address *url.URL, transport *http.Transport,
	reason string, err error) {
	if address, err = endpointOf(endpoint); err != nil {
		return nil, nil, v1alpha1.ReasonEndpointInvalid, err
	}
	if transport, err = transportOf(secret[v1alpha1.KeyStoreAuthority]); err != nil {
		return nil, nil, v1alpha1.ReasonSecretInvalid, fmt.Errorf("%s of Secret %s %w", v1alpha1.KeyStoreAuthority,
			secretName, err)
	}
	return address, transport, "", nil
}

// endpointOf is the address of a service.
func endpointOf(endpoint string) (*url.URL, error) {
	address, err := url.Parse(endpoint)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q must be a URL such as https://minio.storage:9000", endpoint)
	}
	return address, nil
}

// transportOf trusts the authorities of the host, and those of a bundle.
func transportOf(bundle []byte) (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: readLimit,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   16,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:    true, // a file that is compressed must come as it was written
	}
	if len(bundle) == 0 {
		return t, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("has no certificate in PEM")
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// fill reads a part of the content of an object, and that it ends there if it is the last.
func fill(content io.Reader, part []byte, last bool) error {
	if _, err := io.ReadFull(content, part); err != nil {
		return fmt.Errorf("read its content: %w", err)
	}
	if !last {
		return nil
	}
	switch n, err := io.ReadFull(content, make([]byte, 1)); {
	case n > 0:
		return errors.New("read its content: it has more bytes than were announced")
	case err != io.EOF:
		return fmt.Errorf("read its content: %w", err)
	}
	return nil
}

func limited(ctx context.Context, bytes int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestLimit+time.Duration(bytes/slowest)*time.Second)
}
