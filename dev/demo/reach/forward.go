package reach

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward is a port of a pod at a port of this machine, on the loopback address, for as long as the
// pod lives and Close is not called.
type Forward struct {
	// Address to connect to.
	Address netip.AddrPort

	stop  context.CancelFunc
	ended chan struct{}
}

// Forward makes a port of a pod reachable, as kubectl port-forward does.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, port uint16) (*Forward, error) {
	fail := func(err error) (*Forward, error) {
		return nil, fmt.Errorf("forward port %d of pod %s: %w", port, pod, err)
	}
	dialer, err := c.forwarder(namespace, pod)
	if err != nil {
		return fail(err)
	}
	forwarding, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	var said bytes.Buffer
	f, err := portforward.NewOnAddressesForStreamingWithContext(forwarding, dialer, []string{"127.0.0.1"},
		[]string{fmt.Sprintf(":%d", port)}, ready, io.Discard, &said)
	if err != nil {
		stop()
		return fail(err)
	}
	out := &Forward{stop: stop, ended: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		defer close(out.ended)
		failed <- f.ForwardPorts()
	}()
	select {
	case <-ready:
	case err := <-failed:
		stop()
		if said.Len() > 0 {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
		}
		return fail(err)
	case <-ctx.Done():
		stop()
		return fail(ctx.Err())
	}
	ports, err := f.GetPorts()
	if err != nil {
		out.Close()
		return fail(err)
	}
	out.Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ports[0].Local)
	return out, nil
}

// Close ends it, and with it the connections that go through it.
func (f *Forward) Close() {
	f.stop()
	<-f.ended
}

// forwarder prefers WebSocket, which proxies let through, and falls back to SPDY for an API server
// that does not know it, as kubectl does.
func (c *Cluster) forwarder(namespace, pod string) (httpstream.Dialer, error) {
	target := c.Core.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource(
		"portforward",
	).URL()
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, c.Config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	return portforward.NewFallbackDialerForStreaming(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
