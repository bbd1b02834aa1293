package reach

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// Exec runs a program in a container, as kubectl exec does, and returns what it printed. An error
// has the program's own words in it.
func (c *Cluster) Exec(ctx context.Context, namespace, pod, container string, command ...string) (string, error) {
	request := c.Core.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true},
			clientgoscheme.ParameterCodec)
	fail := func(err error, said string) error {
		if said = strings.TrimSpace(said); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return fmt.Errorf("run %s in container %s of pod %s: %w", command[0], container, pod, err)
	}
	websocket, err := remotecommand.NewWebSocketExecutor(c.Config, http.MethodGet, request.URL().String())
	if err != nil {
		return "", fail(err, "")
	}
	plain, err := remotecommand.NewSPDYExecutor(c.Config, http.MethodPost, request.URL())
	if err != nil {
		return "", fail(err, "")
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return "", fail(err, "")
	}
	var out, problem bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &problem}); err != nil {
		return out.String(), fail(err, problem.String())
	}
	return out.String(), nil
}
