package scene

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/layout"
)

// LoseHost loses a host of the local cluster as one loses a host: all that runs on it is gone at
// once. Its disk stays, or goes too.
func (s *Scene) LoseHost(ctx context.Context, host string, disk bool) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	return local.KillNode(ctx, host, disk)
}

// ReturnHost brings a lost host back, with what is on its disk.
func (s *Scene) ReturnHost(ctx context.Context, host string) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	return local.StartNode(ctx, host, false)
}

// CutOff keeps the API server away from a host of the local cluster and from all that runs on it.
// Its containers run on and reach each other.
func (s *Scene) CutOff(ctx context.Context, host string) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	return local.PartitionNode(ctx, host)
}

// Reconnect takes CutOff back, and waits until the host is ready.
func (s *Scene) Reconnect(ctx context.Context, host string) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	if err := local.HealNode(ctx, host); err != nil {
		return err
	}
	return s.hostReady(ctx, host)
}

func (s *Scene) hostReady(ctx context.Context, host string) error {
	return s.poll(ctx, comeback, "host "+host+" is ready", func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: host}, node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is not")
	})
}

// RestartKubelet ends the kubelet of a host of the local cluster, which starts it again, and waits
// until the host is ready. A kubelet registers its host when it starts.
func (s *Scene) RestartKubelet(ctx context.Context, host string) error {
	init, err := s.hostInit(host)
	if err != nil {
		return err
	}
	kubelet, err := childOf(init, "kubelet")
	if err != nil {
		return err
	}
	if err := syscall.Kill(kubelet, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the kubelet of host %s: %w", host, err)
	}
	return s.hostReady(ctx, host)
}

// silence drops what a JVM sends to other members and what they send to it.
const silence = `table inet unheard {
	chain from_others {
		type filter hook input priority 0; policy accept;
		tcp dport %[1]d drop
		tcp sport %[1]d drop
	}
	chain to_others {
		type filter hook output priority 0; policy accept;
		tcp dport %[1]d drop
		tcp sport %[1]d drop
	}
}
`

// Unheard keeps the JVM of a node from hearing other members and from being heard, until the
// function that it returns is called. Its agent, and clients, reach it all the same.
func (r *Ring) Unheard(ctx context.Context, node string) (hear func(context.Context) error, err error) {
	pod, found := r.Now(ctx).Pod(node)
	if !found {
		return nil, fmt.Errorf("silence node %s: it has no pod", node)
	}
	pid, err := r.ProcessOf(pod.UID, initProcess)
	if err != nil {
		return nil, fmt.Errorf("silence node %s: %w", node, err)
	}
	rule := func(ctx context.Context, script string) error {
		command := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(pid), "--net", "nft", "-f", "-")
		command.Stdin = strings.NewReader(script)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("silence node %s: %w: %s", node, err, out)
		}
		return nil
	}
	return func(ctx context.Context) error { return rule(ctx, "delete table inet unheard\n") },
		rule(ctx, fmt.Sprintf(silence, layout.StoragePort))
}

// AwaitProbe asks the readiness probe of a pod, past Kubernetes, until it answers as wanted. The
// pods of the local cluster are reached from this machine.
func (s *Scene) AwaitProbe(ctx context.Context, pod *corev1.Pod, ready bool) error {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(layout.HealthPort)) + layout.ReadyPath
	return s.poll(ctx, comeback, fmt.Sprintf("the probe of pod %s says ready=%v", pod.Name, ready),
		func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				return err
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				if ready {
					return err
				}
				return nil
			}
			defer answer.Body.Close() //nolint:errcheck // it was only read
			if (answer.StatusCode == http.StatusOK) != ready {
				return fmt.Errorf("it answers %s", answer.Status)
			}
			return nil
		})
}
