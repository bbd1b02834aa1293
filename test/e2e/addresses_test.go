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
	"k8s.io/apimachinery/pkg/util/intstr"
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

// TestRollOutWithCrossedAddresses: three nodes of a rack get new pods in one wave, and the first
// new pod gets the address that another of them had. It waits alone for its address, gives way for
// another pod because that one is taken, and all three are the members that they were.
func TestRollOutWithCrossedAddresses(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-crossed-wave", func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[1].Nodes = ptr(int32(3))
		s.Disruption.MaxUnavailable = ptr(intstr.FromString("100%"))
	})
	onlyHere(t, ring.Scene)
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	var old []*corev1.Pod
	for _, name := range names {
		ring.Invariants.ExpectOtherPods(name)
		if strings.Contains(name, "-r2-") {
			old = append(old, podOf(t, ring, name))
		}
	}
	host := old[0].Spec.NodeName
	var first *corev1.Pod
	while(t, ring, servedThroughout, "three pods of a rack are recreated, at crossed addresses", func() error {
		if err := ring.Cordon(t.Context(), host, true); err != nil {
			return err
		}
		err := ring.Edit(t.Context(),
			func(s *v1alpha1.CassandraClusterSpec) { s.Node.TerminationGracePeriodSeconds = ptr(int64(200)) })
		if err == nil {
			err = ring.Until(t.Context(), 6*time.Minute, "three pods are gone, and one waits for the host",
				func(now follow.Sight) (err error) { first, err = aloneInPlaceOf(now, old); return err })
		}
		if err == nil {
			i := slices.IndexFunc(old, func(p *corev1.Pod) bool { return p.Name != first.Name })
			err = startAt(t.Context(), ring, host, first, old[i].Status.PodIP)
		}
		if err := errors.Join(err, ring.Cordon(context.WithoutCancel(t.Context()), host, false)); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantEvent(t, ring, "AddressTaken", first.Name)
}

// aloneInPlaceOf is the one pod that there is in place of several that are gone.
func aloneInPlaceOf(now follow.Sight, old []*corev1.Pod) (*corev1.Pod, error) {
	var next *corev1.Pod
	for _, o := range old {
		switch pod, found := now.Pod(o.Name); {
		case found && pod.UID == o.UID:
			return nil, fmt.Errorf("pod %s is still there", o.Name)
		case found && next != nil:
			return nil, follow.Never(fmt.Errorf("pods %s and %s are made although neither has an address", next.Name,
				pod.Name))
		case found:
			next = pod
		}
	}
	if next == nil {
		return nil, errors.New("no other pod is there")
	}
	return next, nil
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
