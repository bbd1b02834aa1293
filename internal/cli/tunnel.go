package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel reaches one port of one pod through the API server and the kubelet, as kubectl
// port-forward does, but without a port on this machine that others on it could use.
type tunnel struct {
	config    *rest.Config
	namespace string
	to        candidate
}

// errMayNotForward means that the API server does not let this user forward a port to the pod.
var errMayNotForward = errors.New("forwarding a port is forbidden")

// dial makes a connection. The dialers below know no context: one that comes too late is closed.
func (t tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := t.open()
		if err == nil && ctx.Err() != nil {
			_ = conn.Close() // nobody waits for it any more
		}
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t tunnel) open() (net.Conn, error) {
	answer := 0
	dialer, err := t.dialer(&answer)
	if err != nil {
		return nil, err
	}
	connection, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		if answer == http.StatusForbidden {
			err = fmt.Errorf("%w: %w", errMayNotForward, err)
		}
		return nil, fmt.Errorf("forward port %d of pod %s: %w", t.to.port, t.to.pod, err)
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		_ = connection.Close() // of no use
		return nil, fmt.Errorf("forward port %d of pod %s: the API server speaks %q", t.to.port, t.to.pod, protocol)
	}
	conn, err := streams(connection, t.to)
	if err != nil {
		_ = connection.Close() // of no use
		return nil, fmt.Errorf("forward port %d of pod %s: %w", t.to.port, t.to.pod, err)
	}
	return conn, nil
}

// dialer prefers WebSocket, which proxies let through, and falls back to SPDY for an API server
// that does not know it, as kubectl does. The status of the last answer goes to answer: the error
// that follows from it is words only.
func (t tunnel) dialer(answer *int) (httpstream.Dialer, error) {
	target, err := t.url()
	if err != nil {
		return nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, t.config)
	if err != nil {
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(t.config)
	if err != nil {
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: noting{transport, answer}}, http.MethodPost,
		target)
	return portforward.NewFallbackDialerForStreaming(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// noting notes the status of the answers that come by.
type noting struct {
	http.RoundTripper
	status *int
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		*n.status = response.StatusCode
	}
	return response, err
}

func (t tunnel) url() (*url.URL, error) {
	config := rest.CopyConfig(t.config)
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.APIPath = "/api"
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	return c.Post().Namespace(t.namespace).Resource("pods").Name(t.to.pod).SubResource("portforward").URL(), nil
}

// streams opens the two streams that make one connection: the bytes, and what the kubelet says if
// it cannot carry them.
func streams(connection httpstream.Connection, to candidate) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(to.port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	said, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	if err := said.Close(); err != nil { // our half: we only listen
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	c := &forwarded{Stream: data, connection: connection, to: to, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		text, err := io.ReadAll(io.LimitReader(said, 4096))
		switch {
		case len(text) > 0:
			c.problem = errors.New(oneLine(string(text)))
		case err != nil:
			c.problem = err
		}
	}()
	return c, nil
}

// forwarded is a connection made of streams.
type forwarded struct {
	httpstream.Stream
	connection httpstream.Connection
	to         candidate

	// ended is closed when the kubelet has nothing more to say; then problem is what it said.
	ended   chan struct{}
	problem error
}

// lastWords is how long the kubelet's reason may come after the end of the bytes.
const lastWords = time.Second

// Read says why there is nothing more to read, if the kubelet knows.
func (c *forwarded) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil {
		return n, nil
	}
	select {
	case <-c.ended:
		if c.problem != nil {
			err = c.problem
		}
	case <-time.After(lastWords):
	}
	return n, err
}

func (c *forwarded) Close() error {
	return errors.Join(c.Reset(), c.connection.Close())
}

type podAddress string

func (podAddress) Network() string  { return "pod" }
func (a podAddress) String() string { return string(a) }

func (c *forwarded) LocalAddr() net.Addr { return podAddress("here") }
func (c *forwarded) RemoteAddr() net.Addr {
	return podAddress(strings.Join([]string{c.to.pod, strconv.Itoa(int(c.to.port))}, ":"))
}

// Streams have no deadlines; requests are bounded by their contexts, which close the connection.
func (*forwarded) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (*forwarded) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (*forwarded) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
