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

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// onlyHere skips a test of what only the local cluster's machines can be made to do.
func onlyHere(t *testing.T, s *scene.Scene) {
	t.Helper()
	if _, err := s.Local(); errors.Is(err, scene.ErrNotHere) {
		t.Skipf("what a machine does cannot be tried: %v", err)
	}
}

// onMachines is a ring of three racks, each on a machine of its own, for tests that leave it other than they found it, and the pod whose machine is to suffer.
func onMachines(t *testing.T, namespace string) (*scene.Ring, *corev1.Pod) {
	t.Helper()
	withoutSharedRing(t)
	s := open(t, namespace)
	onlyHere(t, s)
	var ring *scene.Ring
	took(t, "a ring of three racks has formed", func() (err error) {
		ring, err = s.Form(t.Context(), sampleOf(t, "demo.yaml"))
		return err
	})
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	return ring, podOf(t, ring, ring.NodeNames(t.Context())[1])
}

// podOf is the pod of a node.
func podOf(t *testing.T, ring *scene.Ring, node string) *corev1.Pod {
	t.Helper()
	pod, found := ring.Now(t.Context()).Pod(node)
	if !found {
		t.Fatalf("pod %s is not there", node)
	}
	return pod
}

// TestChildrenRestored: what a cluster has beside its disks is made anew when somebody deletes it, and no client notices.
func TestChildrenRestored(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	while(t, ring, servedThroughout, "all objects beside pods and claims are deleted, one kind after the other", func() error {
		for _, kind := range []client.ObjectList{
			&corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ConfigMapList{},
		} {
			took(t, fmt.Sprintf("%T is made anew", kind), func() error {
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
		t.Errorf("a person could delete a CassandraNode: %v", err)
	}
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestMachineLost: a machine is lost with a node on it. Nobody takes the node's pod or disk away, and it serves again when the machine is back.
func TestMachineLost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onMachines(t, "e2e-machine")
	before, victim, machine := identities(t, ring), pod.Name, pod.Spec.NodeName
	ring.Invariants.ExpectRestart(victim)
	while(t, ring, gapsAreShort, "a machine is lost, and comes back after a minute", func() error {
		if err := ring.LoseMachine(t.Context(), machine, false); err != nil {
			return err
		}
		err := ring.Until(t.Context(), 2*time.Minute, "the cluster says that a node is away", func(now follow.Sight) error { return notHealthy(now, ring, victim) })
		rest(t, time.Minute)
		if now := podOf(t, ring, victim); err == nil && now.UID != pod.UID {
			err = errors.New("another pod was made while nobody knew what the machine does")
		}
		return errors.Join(err, ring.ReturnMachine(context.WithoutCancel(t.Context()), machine))
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestAllPodsDeletedAndAMachineLost: a machine is lost, and all pods are deleted. The two nodes that are left find each other at new addresses and serve; when the
// machine comes back, so does the third.
func TestAllPodsDeletedAndAMachineLost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onMachines(t, "e2e-all-but-one")
	before, victim, machine := identities(t, ring), pod.Name, pod.Spec.NodeName
	others := slices.DeleteFunc(ring.NodeNames(t.Context()), func(name string) bool { return name == victim })
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, nothingIsLost, "a machine is lost, all pods are deleted, two nodes serve, and the machine comes back", func() error {
		if err := ring.LoseMachine(t.Context(), machine, false); err != nil {
			return err
		}
		err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID})
		if err == nil {
			err = deletePods(t.Context(), ring, others...)
		}
		if err == nil {
			err = ring.Until(t.Context(), 4*time.Minute, "the two others serve", func(now follow.Sight) error { return serve(now, ring, others) })
		}
		return errors.Join(err, ring.ReturnMachine(context.WithoutCancel(t.Context()), machine))
	})
	now := identities(t, ring)
	wantSameMembers(t, before, now)
	for name, was := range before {
		if now[name].podUID == was.podUID {
			t.Errorf("node %s still has its pod", name)
		}
	}
	wantRingSeen(t, ring)
}

// serve holds when nodes serve clients.
func serve(now follow.Sight, ring *scene.Ring, names []string) error {
	for _, n := range now.Nodes(ring.Name) {
		if slices.Contains(names, n.Name) && !n.Status.Ready {
			return fmt.Errorf("node %s does not: %s", n.Name, follow.Phase(&n))
		}
	}
	return nil
}

// TestPartitionedMachine: a machine is cut off from the API server while its JVM serves, and its pod is told to stop. It is not taken away by force: the JVM
// serves on, and stops in order when the machine hears of it.
func TestPartitionedMachine(t *testing.T) {
	onlyInFull(t)
	ring, pod := onMachines(t, "e2e-partition")
	before, victim := identities(t, ring), pod.Name
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a machine is cut off for two minutes, and its pod deleted meanwhile", func() error {
		if err := ring.CutOff(t.Context(), pod.Spec.NodeName); err != nil {
			return err
		}
		reconnect := func(err error) error {
			return errors.Join(err, ring.Reconnect(context.WithoutCancel(t.Context()), pod.Spec.NodeName))
		}
		if err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID}); err != nil {
			return reconnect(err)
		}
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); rest(t, 5*time.Second) {
			if now := podOf(t, ring, victim); now.UID != pod.UID {
				return reconnect(errors.New("the pod was taken away by force while its JVM lives"))
			}
			if err := ring.AwaitProbe(t.Context(), pod, true); err != nil {
				return reconnect(fmt.Errorf("the JVM of the machine that is cut off: %w", err))
			}
		}
		if err := reconnect(nil); err != nil {
			return err
		}
		return ring.Until(t.Context(), 4*time.Minute, "another pod reports", func(now follow.Sight) error { return reportsFromAnother(now, ring, victim, pod.UID) })
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestStuckPodOfALostMachine: the pod of a lost machine that was told to stop is stuck until somebody says that the machine is gone. Then another is made,
// which waits for the disk; when the machine is back the node serves with it.
func TestStuckPodOfALostMachine(t *testing.T) {
	onlyInFull(t)
	ring, pod := onMachines(t, "e2e-stuck")
	before, victim, machine := identities(t, ring), pod.Name, pod.Spec.NodeName
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a machine is lost, its pod told to stop, the machine said to be gone, and back", func() error {
		if err := ring.LoseMachine(t.Context(), machine, false); err != nil {
			return err
		}
		back := func(err error) error {
			ctx := context.WithoutCancel(t.Context())
			return errors.Join(err, ring.OutOfService(ctx, machine, false), ring.ReturnMachine(ctx, machine))
		}
		if err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID}); err != nil {
			return back(err)
		}
		rest(t, 30*time.Second)
		if now := podOf(t, ring, victim); now.UID != pod.UID {
			return back(errors.New("the pod was taken away although nobody knew what the machine does"))
		}
		if err := ring.OutOfService(t.Context(), machine, true); err != nil {
			return back(err)
		}
		err := ring.Until(t.Context(), 3*time.Minute, "another pod waits for the disk", func(now follow.Sight) error {
			next, found := now.Pod(victim)
			if !found || next.UID == pod.UID {
				return errors.New("the old one is there")
			}
			c, _ := now.Cluster(ring.Name)
			if !slices.ContainsFunc(c.Status.Blocked, func(b v1alpha1.BlockedStep) bool {
				return b.Guard == "the_machine_of_a_disk_is_there" && slices.Contains(b.Nodes, victim)
			}) {
				return fmt.Errorf("nobody says so: %v", c.Status.Blocked)
			}
			return nil
		})
		return back(err)
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestEvicted: of a ring that is whole one pod can be evicted, and no second one until it serves again.
func TestEvicted(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	names := ring.NodeNames(t.Context())
	pod, other := podOf(t, ring, names[2]), podOf(t, ring, names[0])
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a pod is evicted, and another made", func() error {
		if err := evict(t.Context(), pod); err != nil {
			return err
		}
		if err := evict(t.Context(), other); !apierrors.IsTooManyRequests(err) {
			ring.Invariants.ExpectDeletion(other)
			return fmt.Errorf("a second pod could be evicted meanwhile: %w", err)
		}
		return ring.Until(t.Context(), 4*time.Minute, "another pod reports", func(now follow.Sight) error { return reportsFromAnother(now, ring, pod.Name, pod.UID) })
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestFailedPod: a pod that kubelet has ended for good has kept its name; it is taken away and another is made.
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
		return ring.Until(t.Context(), 4*time.Minute, "another pod reports", func(now follow.Sight) error { return reportsFromAnother(now, ring, pod.Name, pod.UID) })
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	events := &corev1.EventList{}
	if err := kubernetes.Client.List(t.Context(), events, client.InNamespace(ring.Namespace)); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return e.Reason == "PodFailed" && strings.Contains(e.Message, pod.Name) && strings.Contains(e.Message, "DeadlineExceeded")
	}) {
		t.Errorf("no event says that pod %s has failed, and why", pod.Name)
	}
}

func evict(ctx context.Context, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{}
	eviction.Name, eviction.Namespace = pod.Name, pod.Namespace
	return kubernetes.Client.SubResource("eviction").Create(ctx, pod, eviction)
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

// notHealthy holds when the cluster says that a node is away.
func notHealthy(now follow.Sight, ring *scene.Ring, node string) error {
	c, _ := now.Cluster(ring.Name)
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1alpha1.ConditionHealthy && condition.Status != "True" && strings.Contains(condition.Message, node) {
			return nil
		}
	}
	return errors.New("it says that all is well")
}
