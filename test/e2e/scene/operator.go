package scene

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/internal/inspectapi"
)

// operator is where the manifest puts it.
var operator = client.ObjectKey{Namespace: "helenus-system", Name: "helenus"}

// operatorProcess is the name of the process 1 of its container.
const operatorProcess = "helenus"

// StopOperators waits until no operator runs any more. The function that it returns runs as many as
// before, and waits until they do; where they could not be stopped, that is done already.
func (s *Scene) StopOperators(ctx context.Context) (start func(context.Context) error, err error) {
	deployment := &appsv1.Deployment{}
	if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
		return nil, fmt.Errorf("stop the operators: %w", err)
	}
	were := int32(1)
	if deployment.Spec.Replicas != nil {
		were = *deployment.Spec.Replicas
	}
	start = func(ctx context.Context) error { return s.scaleOperator(ctx, were) }
	if err := s.scaleOperator(ctx, 0); err != nil {
		return nil, errors.Join(err, start(context.WithoutCancel(ctx)))
	}
	return start, nil
}

// scaleOperator runs so many operators, and waits until just these run.
func (s *Scene) scaleOperator(ctx context.Context, replicas int32) error {
	deployment := &appsv1.Deployment{}
	if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
		return fmt.Errorf("scale the operator: %w", err)
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = &replicas
	if err := s.Kubernetes.Client.Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("scale the operator: %w", err)
	}
	return s.poll(ctx, comeback, fmt.Sprintf("%d operators run", replicas), func(ctx context.Context) error {
		pods, err := s.operators(ctx)
		if err != nil {
			return err
		}
		if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
			return err
		}
		if len(pods) != int(replicas) || deployment.Status.ReadyReplicas != replicas {
			return fmt.Errorf("%d pods, %d ready", len(pods), deployment.Status.ReadyReplicas)
		}
		return nil
	})
}

// Installed are the images that operators are installed with.
func (s *Scene) Installed(ctx context.Context) (install.Images, error) {
	deployment := &appsv1.Deployment{}
	if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
		return install.Images{}, fmt.Errorf("find the images of the operator: %w", err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	for _, arg := range container.Args {
		if agent, found := strings.CutPrefix(arg, agentFlag); found {
			return install.Images{Operator: container.Image, Agent: agent}, nil
		}
	}
	return install.Images{}, fmt.Errorf("the operator is installed without %s", agentFlag)
}

const agentFlag = "--agent-image="

// Install installs the operator with other images, and waits until no other operator runs.
func (s *Scene) Install(ctx context.Context, images install.Images) error {
	deployment := &appsv1.Deployment{}
	if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
		return fmt.Errorf("install the operator: %w", err)
	}
	before := deployment.DeepCopy()
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Image = images.Operator
	for i, arg := range container.Args {
		if strings.HasPrefix(arg, agentFlag) {
			container.Args[i] = agentFlag + images.Agent
		}
	}
	if err := s.Kubernetes.Client.Patch(ctx, deployment, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("install the operator: %w", err)
	}
	return s.poll(ctx, comeback, "the operator that is installed runs", func(ctx context.Context) error {
		if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
			return err
		}
		is, want := deployment.Status, *deployment.Spec.Replicas
		if is.ObservedGeneration < deployment.Generation || is.UpdatedReplicas != want || is.ReadyReplicas != want ||
			is.Replicas != want {
			return fmt.Errorf("of %d replicas %d are updated, and of %d %d are ready", want, is.UpdatedReplicas,
				is.Replicas, is.ReadyReplicas)
		}
		return nil
	})
}

func (s *Scene) operators(ctx context.Context) ([]corev1.Pod, error) {
	deployment := &appsv1.Deployment{}
	if err := s.Kubernetes.Client.Get(ctx, operator, deployment); err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	err := s.Kubernetes.Client.List(ctx, pods, client.InNamespace(operator.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
	return pods.Items, err
}

// KillLeader waits until an operator leads that is another than the given one, lets it work for a
// while, and kills its process. It returns who led. Its pod and its lease go too: kubelet would
// start the process later with each time, and the next one to lead would wait for the lease to run
// out, so that not much would be killed while a ring forms.
func (s *Scene) KillLeader(ctx context.Context, not string, after time.Duration) (string, error) {
	if _, err := s.Local(); err != nil {
		return "", err
	}
	leader, pod, err := s.leader(ctx, not)
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = operator.Namespace, inspectapi.LeaseName
	return leader, errors.Join(
		s.signal(pod.UID, operatorProcess, syscall.SIGKILL),
		client.IgnoreNotFound(s.Kubernetes.Client.Delete(ctx, pod, client.GracePeriodSeconds(0))),
		client.IgnoreNotFound(s.Kubernetes.Client.Delete(ctx, lease)),
	)
}

// FreezeLeader stops the operator that leads where it is, and waits until another one does. The
// function that it returns lets the former one run on, which does not know of that, and waits until
// it has ended by itself and the other still leads.
func (s *Scene) FreezeLeader(ctx context.Context) (thaw func(context.Context) error, err error) {
	if _, err := s.Local(); err != nil {
		return nil, err
	}
	leader, pod, err := s.leader(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := s.signal(pod.UID, operatorProcess, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	goOn := func() error { return s.signal(pod.UID, operatorProcess, syscall.SIGCONT) }
	next, _, err := s.leader(ctx, leader)
	if err != nil {
		return nil, errors.Join(err, goOn())
	}
	return func(ctx context.Context) error {
		if err := goOn(); err != nil {
			return err
		}
		if err := s.operatorEnds(ctx, pod); err != nil {
			return err
		}
		now, _, err := s.leader(ctx, "")
		if err == nil && now != next {
			err = fmt.Errorf("%s leads, want %s, which came to lead while the former one stood still", now, next)
		}
		return err
	}, nil
}

// AskToRestart asks a node to restart, as an operator does that does not know of others: by its
// account.
func (r *Ring) AskToRestart(ctx context.Context, node, id string) error {
	config := rest.CopyConfig(r.Kubernetes.Config)
	config.Impersonate.UserName = serviceAccounts + operator.Namespace + ":helenus"
	as, err := client.New(config, client.Options{Scheme: r.Kubernetes.Client.Scheme()})
	if err != nil {
		return fmt.Errorf("write as the operator: %w", err)
	}
	record := &v1alpha1.CassandraNode{}
	if err := as.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: node}, record); err != nil {
		return fmt.Errorf("ask node %s to restart: %w", node, err)
	}
	before, until := record.DeepCopy(), metav1.NewTime(time.Now().Add(comeback))
	record.Spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: id, NotAfter: &until}}
	if err := as.Patch(ctx, record, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("ask node %s to restart: %w", node, err)
	}
	return nil
}

// operatorEnds waits until the operator of a pod has ended by itself since the pod was seen, with
// an error: not by kubelet, which would have sent a signal.
func (s *Scene) operatorEnds(ctx context.Context, seen *corev1.Pod) error {
	restarts := seen.Status.ContainerStatuses[0].RestartCount
	return s.poll(ctx, reaction, "the operator of pod "+seen.Name+" has ended", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := s.Kubernetes.Client.Get(ctx, client.ObjectKeyFromObject(seen), pod); err != nil {
			return err
		}
		status := pod.Status.ContainerStatuses[0]
		ended := status.State.Terminated
		if ended == nil && status.RestartCount > restarts {
			ended = status.LastTerminationState.Terminated
		}
		switch {
		case ended == nil:
			return errors.New("it runs on")
		case ended.ExitCode != 1:
			return fmt.Errorf("it has ended with code %d, want 1: %s", ended.ExitCode, ended.Reason)
		default:
			return nil
		}
	})
}

// leader waits until an operator leads that is another than the given one, and says which and in
// which pod.
func (s *Scene) leader(ctx context.Context, not string) (identity string, pod *corev1.Pod, err error) {
	err = s.poll(ctx, comeback, "an operator leads", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Namespace: operator.Namespace,
			Name: inspectapi.LeaseName}, lease); err != nil {
			return err
		}
		if h := lease.Spec.HolderIdentity; h == nil || *h == "" || *h == not {
			return errors.New("nobody does yet")
		}
		identity = *lease.Spec.HolderIdentity
		pods, err := s.operators(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return strings.HasPrefix(identity, p.Name+"_") })
		if i < 0 {
			return fmt.Errorf("%s led, whose pod is gone", identity)
		}
		pod = &pods[i]
		return nil
	})
	return identity, pod, err
}
