package scene

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/layout"
)

// operator is where the manifest puts it.
var operator = client.ObjectKey{Namespace: "helenus-system", Name: "helenus"}

// ScaleOperator runs so many operators, and waits until just these run. It returns how many there were wanted.
func (s *Scene) ScaleOperator(ctx context.Context, replicas int32) (int32, error) {
	deployment := &appsv1.Deployment{}
	if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
		return 0, fmt.Errorf("scale the operator: %w", err)
	}
	was := int32(1)
	if deployment.Spec.Replicas != nil {
		was = *deployment.Spec.Replicas
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = &replicas
	if err := s.Kubernetes.Client.Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return was, fmt.Errorf("scale the operator: %w", err)
	}
	return was, s.poll(ctx, comeback, fmt.Sprintf("%d operators run", replicas), func(ctx context.Context) error {
		pods := &corev1.PodList{}
		err := s.Kubernetes.Client.List(ctx, pods, client.InNamespace(operator.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
		if err != nil {
			return err
		}
		if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
			return err
		}
		if len(pods.Items) != int(replicas) || deployment.Status.ReadyReplicas != replicas {
			return fmt.Errorf("%d pods, %d ready", len(pods.Items), deployment.Status.ReadyReplicas)
		}
		return nil
	})
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
