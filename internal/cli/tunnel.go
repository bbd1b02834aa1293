package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// lastWords is how long the kubelet's reason may come after the end of a connection.
const lastWords = time.Second

// tunnel forwards a port of this machine to one of a pod, through the API server and the kubelet,
// as kubectl port-forward does. Others on this machine may connect to it too: what goes through it
// is TLS between the plugin and the operator.
type tunnel struct {
	address string
	close   context.CancelFunc
	ended   chan error

	mutex sync.Mutex
	said  []string
}

// open forwards a port until the tunnel is closed.
func (c *connection) open(ctx context.Context, namespace string, to leader) (*tunnel, error) {
	dialer, err := c.dialer(namespace, to.pod)
	if err != nil {
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &tunnel{close: cancel, ended: make(chan error, 1)}
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(
		logr.NewContext(ctx, funcr.New(t.note, funcr.Options{})), dialer, []string{"127.0.0.1"},
		[]string{fmt.Sprintf("0:%d", to.port)}, ready, nil, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	go func() { t.ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
		ports, err := forwarder.GetPorts()
		if err == nil {
			t.address = fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
			return t, nil
		}
	case err = <-t.ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	return nil, fmt.Errorf("forward port %d of pod %s: %w", to.port, to.pod, err)
}

// note takes down why the kubelet could not carry a connection.
func (t *tunnel) note(_, what string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.said = append(t.said, what)
}

// reason is what the kubelet said, in brackets, after a connection failed; empty if it said
// nothing.
func (t *tunnel) reason() string {
	select {
	case err := <-t.ended: // as it does after the kubelet said something
		if err != nil {
			t.note("", err.Error())
		}
	case <-time.After(lastWords):
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.said) == 0 {
		return ""
	}
	return " (" + oneLine(strings.Join(t.said, "; ")) + ")"
}

// dialer prefers WebSocket, which proxies let through, and falls back to SPDY for an API server
// that does not know it, as kubectl does.
func (c *connection) dialer(namespace, pod string) (httpstream.Dialer, error) {
	clientset, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	target := clientset.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).
		SubResource("portforward").URL()
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, c.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	return portforward.NewFallbackDialerForStreaming(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
