package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"helenus.io/helenus/internal/core/layout"
)

const nodetoolLong = `Runs nodetool in the pod of a node, with your rights: kubectl exec.

What changes the ring or ends the JVM is for Helenus to do: see kubectl helenus task and
kubectl helenus restart.`

func newNodetool(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "nodetool NODE -- ARGUMENTS", Short: "Run nodetool in the pod of a node", Long: nodetoolLong,
		Example: "  kubectl helenus nodetool orders-dc1-r1-0 -- tablestats shop.carts",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || cmd.ArgsLenAtDash() != 1 {
				return errors.New("name one CassandraNode, and after -- what nodetool is to do: kubectl helenus " +
					"nodetool orders-dc1-r1-0 -- status")
			}
			return nil
		},
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			node, _, err := c.nodeAndCluster(ctx, args[0])
			if err != nil {
				return err
			}
			executor, err := c.executor(node.Name, append([]string{"nodetool"}, args[1:]...))
			if err != nil {
				return fmt.Errorf("prepare to run nodetool: %w", err)
			}
			if err := executor.StreamWithContext(ctx, streamOptions(s)); err != nil {
				return fmt.Errorf("run nodetool in pod %s: %w", node.Name, err)
			}
			return nil
		}),
	}
}

func streamOptions(s *settings) remotecommand.StreamOptions {
	return remotecommand.StreamOptions{Stdout: s.streams.Out, Stderr: s.streams.Err}
}

// executor runs a command beside Cassandra in the pod of a node, which has the node's name. It
// prefers WebSocket and falls back to SPDY, as dialer does.
func (c *connection) executor(pod string, command []string) (remotecommand.Executor, error) {
	clientset, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	target := clientset.CoreV1().RESTClient().Post().Namespace(c.namespace).Resource("pods").Name(pod).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{Container: layout.CassandraContainer,
		Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	websocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", target.String())
	if err != nil {
		return nil, err
	}
	plain, err := remotecommand.NewSPDYExecutor(c.config, "POST", target)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}
