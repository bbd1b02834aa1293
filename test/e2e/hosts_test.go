//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// onlyHere skips a test of what only the local cluster's hosts can be made to do.
func onlyHere(t *testing.T, s *scene.Scene) {
	t.Helper()
	if _, err := s.Local(); errors.Is(err, scene.ErrNotHere) {
		t.Skipf("what a host does cannot be tried: %v", err)
	}
}

// onHosts is a ring of three racks, each on a host of its own, for tests that leave it other than
// they found it, and the pod whose host is to suffer.
func onHosts(t *testing.T, namespace string) (*scene.Ring, *corev1.Pod) {
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

// TestHostLost: a host is lost with a node on it. Nobody takes the node's pod or disk away, and it
// serves again when the host is back.
func TestHostLost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-host")
	before, victim, host := identities(t, ring), pod.Name, pod.Spec.NodeName
	ring.Invariants.ExpectRestart(victim)
	while(t, ring, gapsAreShort, "a host is lost, and comes back after a minute", func() error {
		if err := ring.LoseHost(t.Context(), host, false); err != nil {
			return err
		}
		err := ring.Until(t.Context(), 2*time.Minute, "the cluster says that a node is down",
			func(now follow.Sight) error { return notHealthy(now, ring, victim) })
		rest(t, time.Minute)
		if now := podOf(t, ring, victim); err == nil && now.UID != pod.UID {
			err = errors.New("another pod was made while nobody knew what the host does")
		}
		return errors.Join(err, ring.ReturnHost(context.WithoutCancel(t.Context()), host))
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestAllPodsDeletedAndAHostLost: a host is lost, and all pods are deleted. The two nodes that are
// left find each other at new addresses and serve, and the ring is Available, although they know
// the third from their disks alone; when the host comes back, so does that one.
func TestAllPodsDeletedAndAHostLost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-all-but-one")
	before, victim, host := identities(t, ring), pod.Name, pod.Spec.NodeName
	others := slices.DeleteFunc(ring.NodeNames(t.Context()), func(name string) bool { return name == victim })
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, nothingIsLost, "a host is lost, all pods are deleted, two nodes serve, and the host comes back",
		func() error {
			if err := ring.LoseHost(t.Context(), host, false); err != nil {
				return err
			}
			err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID})
			if err == nil {
				err = deletePods(t.Context(), ring, others...)
			}
			if err == nil {
				err = ring.Until(t.Context(), 4*time.Minute, "the two others serve",
					func(now follow.Sight) error { return serve(now, ring, others) })
			}
			if err == nil {
				err = ring.Until(t.Context(), time.Minute, "the ring is Available",
					func(now follow.Sight) error { return available(now, ring) })
			}
			return errors.Join(err, ring.ReturnHost(context.WithoutCancel(t.Context()), host))
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

// available holds when every range is served at the consistency of the cluster.
func available(now follow.Sight, ring *scene.Ring) error {
	cluster, found := now.Cluster(ring.Name)
	if !found {
		return follow.Never(errors.New("the cluster is gone"))
	}
	c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("it is not: %+v", c)
	}
	return nil
}

// TestPartitionedHost: a host is cut off from the API server while its JVM serves, and its pod is
// told to stop. It is not taken away by force: the JVM serves on, and stops in order when the host
// hears of it.
func TestPartitionedHost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-partition")
	before, victim := identities(t, ring), pod.Name
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a host is cut off for two minutes, and its pod deleted meanwhile", func() error {
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
				return reconnect(fmt.Errorf("the JVM of the host that is cut off: %w", err))
			}
		}
		if err := reconnect(nil); err != nil {
			return err
		}
		return ring.Until(t.Context(), 4*time.Minute, "another pod reports",
			func(now follow.Sight) error { return reportsFromAnother(now, ring, victim, pod.UID) })
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestStuckPodOfALostHost: the pod of a lost host that was told to stop is stuck until somebody
// says that the host is gone. Then another is made, which waits for the disk; when the host is back
// the node serves with it.
func TestStuckPodOfALostHost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-stuck")
	before, victim, host := identities(t, ring), pod.Name, pod.Spec.NodeName
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a host is lost, its pod told to stop, the host said to be gone, and back",
		func() error {
			if err := ring.LoseHost(t.Context(), host, false); err != nil {
				return err
			}
			back := func(err error) error {
				ctx := context.WithoutCancel(t.Context())
				return errors.Join(err, ring.OutOfService(ctx, host, false), ring.ReturnHost(ctx, host))
			}
			if err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID}); err != nil {
				return back(err)
			}
			rest(t, 30*time.Second)
			if now := podOf(t, ring, victim); now.UID != pod.UID {
				return back(errors.New("the pod was taken away although nobody knew what the host does"))
			}
			if err := ring.OutOfService(t.Context(), host, true); err != nil {
				return back(err)
			}
			return back(ring.Until(t.Context(), 3*time.Minute, "another pod waits for the disk",
				waitsForDisk(ring, pod)))
		})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// waitsForDisk holds when another pod of a node is there, and the cluster says that it waits for
// the host of its disk.
func waitsForDisk(ring *scene.Ring, pod *corev1.Pod) follow.Condition {
	return func(now follow.Sight) error {
		if _, err := another(now, pod); err != nil {
			return err
		}
		return blockedBy(ring, "VolumeHostUnavailable", pod.Name)(now)
	}
}

// TestNodeObjectDeleted: somebody deletes the Node object of a host that works. Kubernetes takes
// its pods away; the node waits for its disk, and serves with it again when kubelet has registered
// the host again.
func TestNodeObjectDeleted(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-unregistered")
	before, host := identities(t, ring), pod.Spec.NodeName
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "the Node object of a host is deleted, and recreated by its kubelet", func() error {
		if err := kubernetes.Client.Delete(t.Context(),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}}); err != nil {
			return err
		}
		err := ring.Until(t.Context(), 4*time.Minute, "another pod waits for the disk", waitsForDisk(ring, pod))
		return errors.Join(err, ring.RestartKubelet(context.WithoutCancel(t.Context()), host))
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}
