package scene

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/jolokia"
)

// Jolokia asks the JVM of a node in its present pod, past its agent, with the credential that the
// agent has rendered for it. It outlives the JVM.
func (r *Ring) Jolokia(ctx context.Context, node string) (*jolokia.Client, error) {
	pod, found := r.Now(ctx).Pod(node)
	if !found {
		return nil, fmt.Errorf("ask the JVM of %s: it has no pod", node)
	}
	pid, err := r.ProcessOf(pod.UID, initProcess)
	if err != nil {
		return nil, fmt.Errorf("ask the JVM of %s: %w", node, err)
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "root", layout.RenderedDir,
		config.JolokiaProperties))
	if err != nil {
		return nil, fmt.Errorf("ask the JVM of %s: read its credential: %w", node, err)
	}
	properties := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		properties[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return jolokia.New(jolokia.Config{
		URL:  "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(layout.JolokiaPort)) + "/jolokia/",
		User: properties["user"], Password: properties["password"],
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialInside(ctx, pid, network, address)
		}},
	})
}

// dialInside connects from the network namespace of a process.
func dialInside(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	results := make(chan result, 1)
	go func() {
		// The thread changes its namespace for good: it ends with the goroutine, because it is
		// never unlocked.
		runtime.LockOSThread()
		connection, err := func() (net.Conn, error) {
			namespace, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns", "net"))
			if err != nil {
				return nil, fmt.Errorf("enter the network of process %d: %w", pid, err)
			}
			defer namespace.Close() //nolint:errcheck // it was only entered
			if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
				return nil, fmt.Errorf("enter the network of process %d: %w", pid, err)
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}()
		results <- result{connection, err}
	}()
	r := <-results
	return r.connection, r.err
}
