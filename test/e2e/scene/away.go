package scene

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/layout"
)

// LoseMachine loses a machine of the local cluster as one loses a machine: all that runs on it is gone at once. Its disk stays, or goes too.
func (s *Scene) LoseMachine(ctx context.Context, machine string, disk bool) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	return local.KillNode(ctx, machine, disk)
}

// ReturnMachine brings a lost machine back, with what is on its disk.
func (s *Scene) ReturnMachine(ctx context.Context, machine string) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	return local.StartNode(ctx, machine, false)
}

// CutOff keeps the API server away from a machine of the local cluster and from all that runs on it. Its containers run on and reach each other.
func (s *Scene) CutOff(ctx context.Context, machine string) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	return local.PartitionNode(ctx, machine)
}

// Reconnect takes CutOff back, and waits until the machine is ready.
func (s *Scene) Reconnect(ctx context.Context, machine string) error {
	local, err := s.Local()
	if err != nil {
		return err
	}
	if err := local.HealNode(ctx, machine); err != nil {
		return err
	}
	return s.machineReady(ctx, machine)
}

func (s *Scene) machineReady(ctx context.Context, machine string) error {
	return s.poll(ctx, comeback, "machine "+machine+" is ready", func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: machine}, node); err != nil {
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

// RestartKubelet ends the kubelet of a machine of the local cluster, which starts it again, and waits until the machine is ready. A kubelet registers its machine
// when it starts.
func (s *Scene) RestartKubelet(ctx context.Context, machine string) error {
	init, err := s.machineInit(machine)
	if err != nil {
		return err
	}
	kubelet, err := childOf(init, "kubelet")
	if err != nil {
		return err
	}
	if err := syscall.Kill(kubelet, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the kubelet of machine %s: %w", machine, err)
	}
	return s.machineReady(ctx, machine)
}

// AwaitProbe asks the readiness probe of a pod, past Kubernetes, until it answers as wanted. The pods of the local cluster are reached from this machine.
func (s *Scene) AwaitProbe(ctx context.Context, pod *corev1.Pod, ready bool) error {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(layout.HealthPort)) + layout.ReadyPath
	return s.poll(ctx, comeback, fmt.Sprintf("the probe of pod %s says ready=%v", pod.Name, ready), func(ctx context.Context) error {
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
