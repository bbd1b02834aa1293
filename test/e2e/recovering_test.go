//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// podOf is the pod of a node.
func podOf(t *testing.T, ring *scene.Ring, node string) *corev1.Pod {
	t.Helper()
	pod, found := ring.Now(t.Context()).Pod(node)
	if !found {
		t.Fatalf("pod %s is not there", node)
	}
	return pod
}

// TestChildrenRestored: what a cluster has beside its disks is recreated when somebody deletes it,
// and no client notices.
func TestChildrenRestored(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	while(t, ring, servedThroughout, "all objects beside pods and claims are deleted, one kind after the other",
		func() error {
			for _, kind := range []client.ObjectList{
				&corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleBindingList{},
				&rbacv1.RoleList{}, &corev1.ConfigMapList{},
			} {
				took(t, fmt.Sprintf("%T is recreated", kind), func() error {
					gone, err := ring.DeleteAll(t.Context(), kind)
					if err != nil {
						return err
					}
					if len(gone) == 0 {
						return errors.New("there was nothing to delete")
					}
					return ring.MadeAnew(t.Context(), kind, gone)
				})
			}
			return nil
		})
	if _, err := ring.DeleteAll(t.Context(), &v1alpha1.CassandraNodeList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user could delete a CassandraNode: %v", err)
	}
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestChildrenEdited: what a cluster has beside its disks is repaired when somebody edits it, and
// no client notices.
func TestChildrenEdited(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before := identities(t, ring)
	while(t, ring, servedThroughout, "all services, budgets, roles and their bindings are edited, one kind after the "+
		"other", func() error {
		for _, kind := range []client.ObjectList{&corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{},
			&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}} {
			took(t, fmt.Sprintf("%T is repaired", kind), func() error {
				were, err := ring.EditAll(t.Context(), kind, spoil)
				if err != nil {
					return err
				}
				if len(were) == 0 {
					return errors.New("there was nothing to edit")
				}
				return ring.PutRight(t.Context(), kind, were)
			})
		}
		return nil
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// spoil edits an object so that it does not do any more what it is for.
func spoil(o client.Object) {
	switch o := o.(type) {
	case *corev1.Service:
		o.Spec.Selector = map[string]string{"app": "another"}
	case *policyv1.PodDisruptionBudget:
		o.Spec.MinAvailable, o.Spec.MaxUnavailable = nil, ptr(intstr.FromString("100%"))
	case *rbacv1.RoleBinding:
		o.Subjects = nil
	case *rbacv1.Role:
		o.Rules = nil
	}
}

// TestAuthorityDeleted: somebody deletes the certificate authority. An operator says so and makes
// no other; everything serves on, and all is well when it is put back.
func TestAuthorityDeleted(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before := identities(t, ring)
	const guard = "CAMissing"
	authority := &corev1.Secret{}
	if err := kubernetes.Client.Get(t.Context(),
		client.ObjectKey{Namespace: ring.Namespace, Name: v1alpha1.AuthorityName(ring.Name, v1alpha1.UseAgent)}, authority); err != nil {
		t.Fatal(err)
	}
	backup := &corev1.Secret{Type: authority.Type, Data: authority.Data, Immutable: authority.Immutable}
	backup.Namespace, backup.Name, backup.Labels, backup.Annotations = authority.Namespace, authority.Name,
		authority.Labels, authority.Annotations
	while(t, ring, servedThroughout, "the certificate authority is deleted, and put back from a backup", func() error {
		if err := kubernetes.Client.Delete(t.Context(), authority,
			client.Preconditions{UID: &authority.UID}); err != nil {
			return err
		}
		// Secrets are not watched: one that leads already misses it after ten minutes.
		start, err := ring.StopOperators(t.Context())
		if err == nil {
			err = start(context.WithoutCancel(t.Context()))
		}
		if err == nil {
			err = ring.Until(t.Context(), 2*time.Minute, "the cluster says that it is gone", blockedBy(ring, guard, ""))
		}
		if err = errors.Join(err, kubernetes.Client.Create(context.WithoutCancel(t.Context()), backup)); err != nil {
			return err
		}
		return ring.Until(t.Context(), 2*time.Minute, "the cluster says so no more", func(now follow.Sight) error {
			if blockedBy(ring, guard, "")(now) == nil {
				return errors.New("it does")
			}
			return nil
		})
	})
	wantAsBefore(t, before, identities(t, ring))
}

// TestEvicted: of a ring that is whole one pod can be evicted, and no second one until it serves
// again.
func TestEvicted(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	names := ring.NodeNames(t.Context())
	pod, other := podOf(t, ring, names[2]), podOf(t, ring, names[0])
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a pod is evicted, and another made", func() error {
		if err := ring.TryEvict(t.Context(), pod); err != nil {
			return err
		}
		if err := ring.TryEvict(t.Context(), other); !apierrors.IsTooManyRequests(err) {
			ring.Invariants.ExpectDeletion(other)
			return fmt.Errorf("a second pod could be evicted meanwhile: %w", err)
		}
		return ring.Until(t.Context(), 4*time.Minute, "another pod reports",
			func(now follow.Sight) error { return reportsFromAnother(now, ring, pod.Name, pod.UID) })
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestFailedPod: a pod that kubelet has ended for good has kept its name; it is taken away and
// another is made.
func TestFailedPod(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before := identities(t, ring)
	pod := podOf(t, ring, ring.NodeNames(t.Context())[1])
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "kubelet ends a pod as Failed, and another is made", func() error {
		limited := pod.DeepCopy()
		limited.Spec.ActiveDeadlineSeconds = new(int64(1))
		if err := kubernetes.Client.Patch(t.Context(), limited, client.MergeFrom(pod)); err != nil {
			return fmt.Errorf("limit the time of pod %s: %w", pod.Name, err)
		}
		return ring.Until(t.Context(), 4*time.Minute, "another pod reports",
			func(now follow.Sight) error { return reportsFromAnother(now, ring, pod.Name, pod.UID) })
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantEvent(t, ring, "PodFailed", pod.Name, "DeadlineExceeded")
}

// wantEvent fails if no event has a reason and all of some words.
func wantEvent(t *testing.T, ring *scene.Ring, reason string, words ...string) {
	t.Helper()
	events := &corev1.EventList{}
	if err := kubernetes.Client.List(t.Context(), events, client.InNamespace(ring.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == reason && !slices.ContainsFunc(words,
			func(w string) bool { return !strings.Contains(e.Message, w) }) {
			return
		}
	}
	t.Errorf("no event %s has the words %q", reason, words)
}

// allReported is what the status of a cluster reports: its blocked steps and its notices.
func allReported(c *v1alpha1.CassandraCluster) []v1alpha1.Notice {
	out := slices.Clone(c.Status.Notices)
	for _, b := range c.Status.Blocked {
		out = append(out, v1alpha1.Notice{Reason: b.Reason, Nodes: b.Nodes, Message: b.Message})
	}
	return out
}

// blockedBy holds when the ring reports a reason, as blocked or as a notice, for a node; for any if
// none is named.
func blockedBy(ring *scene.Ring, reason v1alpha1.Reason, node string) follow.Condition {
	return func(now follow.Sight) error {
		c, _ := now.Cluster(ring.Name)
		if !slices.ContainsFunc(allReported(c), func(b v1alpha1.Notice) bool {
			return b.Reason == reason && (node == "" || slices.Contains(b.Nodes, node))
		}) {
			return fmt.Errorf("it is not said: %v", allReported(c))
		}
		return nil
	}
}

// reportsFromAnother holds when a node has reported from another pod than one.
func reportsFromAnother(now follow.Sight, ring *scene.Ring, node string, not types.UID) error {
	for _, n := range now.Nodes(ring.Name) {
		if n.Name == node && n.Status.PodUID != not {
			return nil
		}
	}
	return errors.New("it reports from its old one")
}

// another is the pod of a node that took the place of one.
func another(now follow.Sight, old *corev1.Pod) (*corev1.Pod, error) {
	pod, found := now.Pod(old.Name)
	if !found || pod.UID == old.UID {
		return nil, fmt.Errorf("no other pod %s is there", old.Name)
	}
	return pod, nil
}

// notHealthy holds when the cluster says that a node is down.
func notHealthy(now follow.Sight, ring *scene.Ring, node string) error {
	c, _ := now.Cluster(ring.Name)
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1alpha1.ConditionHealthy && condition.Status != "True" &&
			strings.Contains(condition.Message, node) {
			return nil
		}
	}
	return errors.New("it says that all is well")
}
