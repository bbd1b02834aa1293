//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// TestCrossedAddresses: two pods of one host are deleted, and the new ones get each other's
// addresses. Neither node starts at the address of another member: both get other pods, and are the
// members that they were.
func TestCrossedAddresses(t *testing.T) {
	onlyInFull(t)
	s := open(t, "e2e-crossed")
	onlyHere(t, s)
	sample := sampleOf(t, "one-node.yaml")
	sample.Spec.Node.Placement = &v1alpha1.Placement{Zone: "a", HostAntiAffinity: v1alpha1.HostAntiAffinityNone}
	sample.Spec.Datacenters[0].NodesPerRack, sample.Spec.Datacenters[0].PlannedReplicationFactor = 3, 3
	var ring *scene.Ring
	took(t, "a ring of three nodes on one host has formed", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	while(t, ring, nothingIsLost, "two pods get each other's addresses",
		func() error { return cross(t.Context(), ring, podOf(t, ring, names[0]), podOf(t, ring, names[1])) })
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	for _, name := range names[:2] {
		wantEvent(t, ring, "AddressTaken", name)
	}
}

// cross deletes two pods of one host, and gives each of the new ones the address that the other one
// had.
func cross(ctx context.Context, ring *scene.Ring, one, other *corev1.Pod) error {
	host := one.Spec.NodeName
	if err := ring.Cordon(ctx, host, true); err != nil {
		return err
	}
	err := crossOn(ctx, ring, host, [2]*corev1.Pod{one, other})
	return errors.Join(err, ring.Cordon(context.WithoutCancel(ctx), host, false))
}

func crossOn(ctx context.Context, ring *scene.Ring, host string, old [2]*corev1.Pod) error {
	for _, pod := range old {
		ring.Invariants.ExpectDeletion(pod)
		if err := kubernetes.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); err != nil {
			return err
		}
	}
	var next [2]*corev1.Pod
	err := ring.Until(ctx, 4*time.Minute, "both have other pods, which wait for a host",
		func(now follow.Sight) (err error) {
			for i := range old {
				if next[i], err = another(now, old[i]); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return err
	}
	for i, pod := range next {
		// What a third pod gets may be the other member's address again: until both run elsewhere,
		// the others know them at the addresses that they had.
		ring.Invariants.ExpectOtherPods(pod.Name)
		if err := startAt(ctx, ring, host, pod, old[1-i].Status.PodIP); err != nil {
			return err
		}
	}
	return nil
}

// startAt binds a pod to a host, where it gets one address and no other.
func startAt(ctx context.Context, ring *scene.Ring, host string, pod *corev1.Pod, address string) error {
	giveBack, err := ring.LeaveFree(host, address)
	if err != nil {
		return err
	}
	if err = ring.Bind(ctx, pod, host); err == nil {
		err = ring.Until(ctx, time.Minute, "pod "+pod.Name+" runs at "+address, func(now follow.Sight) error {
			is, found := now.Pod(pod.Name)
			switch {
			case !found || is.UID != pod.UID:
				return follow.Never(errors.New("it is another one"))
			case is.Status.PodIP != address:
				return fmt.Errorf("it has the address %q", is.Status.PodIP)
			}
			return nil
		})
	}
	return errors.Join(err, giveBack())
}
