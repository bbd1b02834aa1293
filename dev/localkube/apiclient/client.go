package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Client speaks to one API server as one user.
type Client struct {
	server string
	http   *http.Client
}

// New makes a client from the server's URL and PEM files. Without a certFile it is
// anonymous.
func New(server, caFile, certFile, keyFile string) (*Client, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read authority %s: no certificate in it", caFile)
	}
	var pairs []tls.Certificate
	if certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		pairs = append(pairs, pair)
	}
	return &Client{server: server, http: &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: pairs, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
	}}, nil
}

// StatusError is an answer other than success.
type StatusError struct {
	Method, Path string
	Code         int
	Message      string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: HTTP %d: %s", e.Method, e.Path, e.Code, e.Message)
}

// NotFound tells whether the error says that the object does not exist.
func NotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// Ready asks /readyz.
func (c *Client) Ready(ctx context.Context) error { return c.Get(ctx, "/readyz", nil) }

// Get reads a path into the value, which may be nil.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, into)
}

// Create posts the object (JSON or YAML) to the path and reads the answer into
// the value, which may be nil.
func (c *Client) Create(ctx context.Context, path, object string, into any) error {
	return c.do(ctx, http.MethodPost, path, "application/yaml", []byte(object), into)
}

// Delete deletes the object at the path. That there is none is no error.
func (c *Client) Delete(ctx context.Context, path string) error {
	err := c.do(ctx, http.MethodDelete, path, "", nil, nil)
	if NotFound(err) {
		return nil
	}
	return err
}

// Apply makes the object at the path what the manifest (YAML or JSON) says, by
// server-side apply.
func (c *Client) Apply(ctx context.Context, path, manifest string) error {
	return c.do(ctx, http.MethodPatch, path+"?fieldManager=localkube&force=true", "application/apply-patch+yaml",
		[]byte(manifest), nil)
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("User-Agent", "localkube")
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("%s %s: read answer: %w", method, path, err)
	}
	if res.StatusCode >= 300 {
		return &StatusError{Method: method, Path: path, Code: res.StatusCode, Message: message(content)}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s %s: decode answer: %w", method, path, err)
	}
	return nil
}

// message takes the text out of a Status object, or the answer as it is.
func message(content []byte) string {
	var status struct{ Message string }
	if err := json.Unmarshal(content, &status); err == nil && status.Message != "" {
		return status.Message
	}
	return string(bytes.TrimSpace(content))
}
