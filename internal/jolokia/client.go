package jolokia

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Defaults of Config.
const (
	// DefaultTimeout is long against a warm bulk read of a ten-node ring (5 ms) and a first one in
	// a starting JVM (20 ms), and short enough for a caller to notice a frozen JVM.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxResponseBytes holds the view of a ring of a thousand nodes with 16 tokens each
	// (about 1.3 MB) several times.
	DefaultMaxResponseBytes = 8 << 20
)

// idleTimeout is below the 30 s after which the JDK's HTTP server closes an idle connection, so
// that a request is not sent into a connection that is just being closed.
const idleTimeout = 10 * time.Second

// Config says where the server is and what this client allows it.
type Config struct {
	// URL of the agent, such as http://127.0.0.1:8778/jolokia/. The host is a loopback address: the
	// credential and the power to stop the JVM travel in the clear.
	URL string
	// User and Password are sent with each request (basic authentication); empty User: none.
	User, Password string
	// Timeout bounds each request, except those of ExecBlocking. Zero: DefaultTimeout.
	Timeout time.Duration
	// MaxResponseBytes bounds an answer. Zero: DefaultMaxResponseBytes.
	MaxResponseBytes int64
	// Transport carries the requests; nil: a transport of its own over TCP. A simulated node gives
	// one without sockets.
	Transport http.RoundTripper
}

// Client talks to one Jolokia agent. It is safe for use by several goroutines.
type Client struct {
	endpoint       string
	user, password string
	timeout        time.Duration
	maxBytes       int64
	http           *http.Client
}

// New checks the configuration and makes a client. It does not connect.
func New(config Config) (*Client, error) {
	endpoint, err := endpointOf(config.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		endpoint: endpoint,
		user:     config.User,
		password: config.Password,
		timeout:  config.Timeout,
		maxBytes: config.MaxResponseBytes,
	}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if c.maxBytes == 0 {
		c.maxBytes = DefaultMaxResponseBytes
	}
	transport := config.Transport
	if transport == nil {
		// No proxy: the environment's proxy must never see this traffic.
		transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: c.timeout}).DialContext,
			IdleConnTimeout:     idleTimeout,
			MaxIdleConnsPerHost: 2,
			DisableCompression:  true,
		}
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// endpointOf checks the URL and adds the parameters that every request carries.
func endpointOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("parse Jolokia URL: %w", err)
	}
	if u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("unusable Jolokia URL %q: give http://<loopback address>:<port>/<path>", u.Redacted())
	}
	address, err := netip.ParseAddr(u.Hostname())
	if err != nil || !address.IsLoopback() {
		return "", fmt.Errorf("unusable Jolokia URL %q: the host is not a loopback address; the credential would "+
			"leave this machine", text)
	}
	if u.Path == "" || u.Path[len(u.Path)-1] != '/' {
		u.Path += "/"
	}
	u.RawQuery = "includeRequest=false&includeStackTrace=false"
	return u.String(), nil
}

// Do sends the requests as one bulk request and returns one answer for each, in order. The error is
// about the whole exchange; refusals of single requests are in the answers.
func (c *Client) Do(ctx context.Context, requests ...Request) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.do(ctx, requests)
}

// Call sends one request and returns its value, or its refusal as the error.
func (c *Client) Call(ctx context.Context, request Request) (Answer, error) {
	answers, err := c.Do(ctx, request)
	if err != nil {
		return Answer{}, err
	}
	return answers[0], answers[0].Err
}

// ExecBlocking calls an operation that may take hours, such as decommission or rebuild; only ctx
// bounds it. The operation continues in the JVM when the client gives up or is killed.
func (c *Client) ExecBlocking(ctx context.Context, request Request) (Answer, error) {
	if request.Type != typeExec {
		return Answer{}, fmt.Errorf("%s: not a call of an operation", request)
	}
	answers, err := c.do(ctx, []Request{request})
	if err != nil {
		return Answer{}, err
	}
	return answers[0], answers[0].Err
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do is one exchange, bounded by ctx alone.
func (c *Client) do(ctx context.Context, requests []Request) ([]Answer, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	repeatable := true
	for _, request := range requests {
		if request.invalid != nil {
			return nil, request.invalid
		}
		repeatable = repeatable && request.changesNothing()
	}
	body, err := json.Marshal(requests)
	if err != nil {
		return nil, fmt.Errorf("encode requests: %w", err)
	}
	response, err := c.post(ctx, body, repeatable)
	if err != nil {
		return nil, err
	}
	return decodeAnswers(response, requests)
}

// post sends the body and returns the body of the answer.
func (c *Client) post(ctx context.Context, body []byte, repeatable bool) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make HTTP request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.user != "" {
		request.SetBasicAuth(c.user, c.password)
	}
	if repeatable {
		// net/http may then try again over a new connection when a kept one turns out to be dead.
		// An empty list is not sent.
		request.Header["Idempotency-Key"] = []string{}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, withoutURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // a response body that was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, c.maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w: %w", ErrUnreachable, err)
	}
	if int64(len(answer)) > c.maxBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, c.maxBytes)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return answer, nil
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%w (HTTP 401)", ErrUnauthorized)
	default:
		return nil, fmt.Errorf("%w: HTTP %s: %.200q", ErrProtocol, response.Status, answer)
	}
}

// withoutURL takes the method and URL out of an error of net/http: there is one URL, and the caller
// knows it.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err
	}
	return err
}
