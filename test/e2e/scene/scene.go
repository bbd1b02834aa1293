package scene

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/dev/demo/reach"
)

// How long things may take on a quiet host with two cores before they count as broken. What is
// waited for are events; these bound failures alone. Each is several times what was measured there.
const (
	// formation of a ring of up to four nodes.
	formation = 4 * time.Minute
	// comeback of nodes that were stopped or killed.
	comeback = 4 * time.Minute
	// removal of a ring: every node is stopped in order.
	removal = 4 * time.Minute
	// reaction of the operator or an agent to what was changed.
	reaction = time.Minute
)

// Scene is a namespace with rings.
type Scene struct {
	Kubernetes *reach.Cluster
	Namespace  string
	// Invariants are watched as long as the scene is open.
	Invariants *Invariants

	follow *follow.Namespace
	stop   context.CancelFunc
	// patience multiplies all bounds, for hosts that are busy or slow.
	patience float64
}

// Open makes the namespace. What an earlier run has left in it goes first. The scene is open until
// Close, or until ctx ends.
func Open(ctx context.Context, kubernetes *reach.Cluster, namespace string, patience float64) (*Scene, error) {
	s := &Scene{Kubernetes: kubernetes, Namespace: namespace, Invariants: NewInvariants(), patience: patience}
	if err := s.removeNamespace(ctx); err != nil {
		return nil, fmt.Errorf("clear namespace %s: %w", namespace, err)
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := kubernetes.Client.Create(ctx, object); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	following, stop := context.WithCancel(ctx)
	s.stop = stop
	var err error
	if s.follow, err = follow.Start(following, kubernetes.Config, namespace, follow.Kinds(),
		s.Invariants.Observe); err != nil {
		stop()
		return nil, err
	}
	return s, nil
}

// Close removes the namespace with everything in it, the data too.
func (s *Scene) Close(ctx context.Context) error {
	s.stop()
	return s.removeNamespace(ctx)
}

// Until waits until a condition holds.
func (s *Scene) Until(ctx context.Context, bound time.Duration, what string, condition follow.Condition) error {
	return s.follow.Until(ctx, s.bound(bound), what, condition)
}

// Now is what is known at this moment.
func (s *Scene) Now(ctx context.Context) follow.Sight { return s.follow.Now(ctx) }

func (s *Scene) bound(d time.Duration) time.Duration { return time.Duration(float64(d) * s.patience) }

// poll asks for what sends no events until it is as wanted.
func (s *Scene) poll(ctx context.Context, bound time.Duration, what string, ask func(context.Context) error) error {
	const pause = 500 * time.Millisecond
	bound = s.bound(bound)
	ctx, stop := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not within %s", bound))
	defer stop()
	for {
		missing := ask(ctx)
		if missing == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %w", what, context.Cause(ctx), missing)
		}
	}
}

// removeNamespace deletes the clusters of the namespace with their claims, waits for them, and then
// deletes the namespace: without its operator's work a cluster does not go, and a claim that is
// left would be found by the next one.
func (s *Scene) removeNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: s.Namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	clusters := &v1alpha1.CassandraClusterList{}
	if err := s.Kubernetes.Client.List(ctx, clusters, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if err := s.setClaimPolicy(ctx, c, v1alpha1.ClaimDelete); err != nil {
			return err
		}
		if err := s.Kubernetes.Client.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete cluster %s: %w", c.Name, err)
		}
	}
	err := s.poll(ctx, removal, "the clusters are gone", func(ctx context.Context) error {
		left := &v1alpha1.CassandraClusterList{}
		if err := s.Kubernetes.Client.List(ctx, left, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("cluster %s is left, %s", left.Items[0].Name, stepOf(&left.Items[0]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.Kubernetes.Client.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return s.poll(ctx, removal, "the namespace is gone", func(ctx context.Context) error {
		err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: s.Namespace}, &corev1.Namespace{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("namespace %s is still there", s.Namespace)
	})
}

func (s *Scene) setClaimPolicy(ctx context.Context, c *v1alpha1.CassandraCluster, policy v1alpha1.ClaimPolicy) error {
	before := c.DeepCopy()
	c.Spec.Volumes.OnClusterDeletion = policy
	if err := s.Kubernetes.Client.Patch(ctx, c, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set volumes.onClusterDeletion of cluster %s: %w", c.Name, err)
	}
	return nil
}

func stepOf(c *v1alpha1.CassandraCluster) string {
	if c.Status.Step == nil {
		return "without an open step"
	}
	return c.Status.Step.Name + ": " + c.Status.Step.Message
}
