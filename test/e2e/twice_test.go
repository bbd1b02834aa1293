//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// TestDeletedByForce: a pod is deleted, and by force while its JVM stops, again and again. The next
// pod of the node is there long before that JVM has ended. Seen from outside there are never two
// JVMs on its volume, and each has inherited the lock.
func TestDeletedByForce(t *testing.T) {
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	before, victim := identities(t, ring), ring.NodeNames(t.Context())[1]
	rounds := 2
	if *full {
		rounds = 20
	}
	ctx, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	var found error
	looks := 0
	watch.Go(func() {
		for ; ctx.Err() == nil && found == nil; looks++ {
			found = alone(ring.Scene)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // there is no event to wait for
			}
		}
	})
	while(t, ring, gapsAreShort, fmt.Sprintf("a pod is deleted by force while its JVM stops, %d times", rounds),
		func() error {
			for round := range rounds {
				if err := deleteByForce(t, ring, victim, round%2 == 0); err != nil {
					return fmt.Errorf("round %d: %w", round+1, err)
				}
			}
			return nil
		})
	stop()
	watch.Wait()
	if found != nil || looks < 10*rounds {
		t.Errorf("%d looks at the JVMs on this host: %v", looks, found)
	}
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// alone says whether there are two JVMs on a volume, or one without its lock.
func alone(s *scene.Scene) error {
	volumes, err := s.Volumes()
	if err != nil {
		return err
	}
	for _, jvms := range volumes {
		if len(jvms) > 1 {
			return fmt.Errorf("two JVMs are on one volume: %+v", jvms)
		}
		if !jvms[0].Locked {
			return fmt.Errorf("a JVM is without the lock of its volume: %+v", jvms)
		}
	}
	return nil
}

// deleteByForce deletes the pod of a node, and by force while its JVM stops. One that hangs then is
// still there when helenus-init runs in the next pod, and goes on after that. What would kill it
// meanwhile hangs with it: kubelet grants a pod that was deleted by force a second or two.
func deleteByForce(t *testing.T, ring *scene.Ring, node string, hangs bool) error {
	t.Helper()
	pod := podOf(t, ring, node)
	ring.Invariants.ExpectDeletion(pod)
	if err := kubernetes.Client.Delete(t.Context(), pod); err != nil {
		return err
	}
	goOn := func() error { return nil }
	if hangs {
		var err error
		if goOn, err = ring.HangPod(pod.UID); err != nil {
			return err
		}
		defer func() { _ = goOn() }() // it may have gone on already
	}
	if err := kubernetes.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	err := ring.Until(t.Context(), 2*time.Minute, "helenus-init runs in another pod", func(now follow.Sight) error {
		next, err := another(now, pod)
		if err == nil {
			_, err = ring.ProcessOf(next.UID, "helenus-init")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := goOn(); err != nil {
		return fmt.Errorf("the former JVM has ended too early, nothing was tried: %w", err)
	}
	return errors.Join(
		ring.Until(t.Context(), 4*time.Minute, "the next pod reports",
			func(now follow.Sight) error { return reportsFromAnother(now, ring, node, pod.UID) }),
		ring.Serving(t.Context()))
}
