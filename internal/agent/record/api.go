package record

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config says where the API server is and how to prove who asks.
type Config struct {
	// URL of the API server, https://<host>:<port>.
	URL string
	// Directory with the files token and ca.crt, as the kubelet projects them. They are read again
	// whenever they are needed: both are exchanged in the life of a pod.
	Directory string
}

// InCluster is the configuration that the kubelet gives every container.
func InCluster(directory string) (Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Config{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: not in a pod?")
	}
	return Config{URL: "https://" + net.JoinHostPort(host, port), Directory: directory}, nil
}

// Limits of one exchange.
const (
	callTimeout    = 15 * time.Second
	maxObjectBytes = 4 << 20
	maxErrorBytes  = 4 << 10
)

// API is a connection to the API server. It is safe for use by several goroutines.
type API struct {
	base      *url.URL
	directory string
	http      *http.Client
}

// New checks the configuration. It does not connect.
func New(c Config) (*API, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("unusable URL of the API server %q: want https://<host>:<port>", c.URL)
	}
	a := &API{base: base, directory: c.Directory}
	a.http = &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: callTimeout, KeepAlive: 30 * time.Second}).DialContext,
			DialTLSContext:      a.dialTLS,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 2 * time.Minute,
			ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a, nil
}

// dialTLS trusts the authority that the file has now.
func (a *API) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	text, err := os.ReadFile(filepath.Join(a.directory, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read authority of the API server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authority of the API server: no certificate in %s",
			filepath.Join(a.directory, "ca.crt"))
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	dialer := &tls.Dialer{
		NetDialer: &net.Dialer{KeepAlive: 30 * time.Second},
		Config:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	return dialer.DialContext(ctx, network, address)
}

// StatusError is a refusal of the API server.
type StatusError struct {
	Code    int
	Reason  metav1.StatusReason
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("API server: %d %s: %s", e.Code, e.Reason, e.Message)
}

// Refused says whether err is a refusal with one of the codes.
func Refused(err error, codes ...int) bool {
	var e *StatusError
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code == code {
			return true
		}
	}
	return false
}

// do sends one request; the caller closes the body of the answer, which is that of a success.
func (a *API) do(ctx context.Context, method, path string, query url.Values, contentType string,
	body []byte) (*http.Response, error) {
	target := *a.base
	target.Path = path
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	token, err := os.ReadFile(filepath.Join(a.directory, "token"))
	if err != nil {
		return nil, fmt.Errorf("read service account token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "helenus-agent")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := a.http.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close() //nolint:errcheck // a body that is not needed further
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	refusal := &StatusError{Code: response.StatusCode, Message: string(text)}
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		refusal.Reason, refusal.Message = status.Reason, status.Message
	}
	return nil, fmt.Errorf("%s %s: %w", method, path, refusal)
}

// get reads one object or list.
func (a *API) get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := a.do(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	return decode(response, into)
}

func decode(response *http.Response, into any) error {
	defer response.Body.Close() //nolint:errcheck // a body that was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxObjectBytes+1))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if len(body) > maxObjectBytes {
		return fmt.Errorf("read answer: more than %d bytes", maxObjectBytes)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
