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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// TestDeletedAndAdopted: disks that outlive their cluster are used by the next one if it is told
// so, all of them, and never otherwise.
func TestDeletedAndAdopted(t *testing.T) {
	s := open(t, "e2e-adopted")
	sample := sampleOf(t, "demo.yaml")
	var old *scene.Ring
	took(t, "a ring has formed", func() (err error) {
		old, err = s.Form(t.Context(), sample)
		return err
	})
	took(t, "rows are written", func() error { return old.Fill(t.Context(), gocql.Quorum) })
	before := identities(t, old)
	took(t, "it is deleted with Retain", func() error { return old.Delete(t.Context(), v1alpha1.ClaimRetain) })
	wantClaims(t, old, 3)

	forgetful, err := s.Create(t.Context(), sample)
	if err != nil {
		t.Fatal(err)
	}
	took(t, "a cluster of the same name leaves the disks alone", func() error {
		return wantHeld(t.Context(), forgetful, v1alpha1.ReasonForeignDisks, string(old.UID))
	})
	took(t, "and goes", func() error { return forgetful.Delete(t.Context(), v1alpha1.ClaimDelete) })
	wantClaims(t, old, 3)

	sample.Spec.Bootstrap = &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: old.UID}}
	var heir *scene.Ring
	took(t, "a cluster that adopts them serves", func() (err error) {
		heir, err = s.Form(t.Context(), sample)
		return err
	})
	wantSameMembers(t, before, identities(t, heir))
	took(t, "all rows are read at ALL through every node",
		func() error { return heir.ReadBack(t.Context(), gocql.All) })

	took(t, "it is deleted with Retain", func() error { return heir.Delete(t.Context(), v1alpha1.ClaimRetain) })
	took(t, "a claim is removed by hand", func() error {
		return removeClaim(t.Context(), s, v1alpha1.ClaimName(v1alpha1.VolumeData, "demo-dc1-r2-0"))
	})
	for _, adopt := range []*scene.Ring{heir, old} {
		sample.Spec.Bootstrap = &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: adopt.UID}}
		robbed, err := s.Create(t.Context(), sample)
		if err != nil {
			t.Fatal(err)
		}
		took(t, "with a disk missing nothing joins empty", func() error {
			reason, message := v1alpha1.ReasonAdoptionIncomplete, "data-demo-dc1-r2-0"
			if adopt == old {
				// Its disks are those of the heir now.
				reason, message = v1alpha1.ReasonForeignDisks, string(heir.UID)
			}
			return wantHeld(t.Context(), robbed, reason, message)
		})
		took(t, "and goes", func() error { return robbed.Delete(t.Context(), v1alpha1.ClaimRetain) })
	}
}

// wantHeld waits until a cluster is stalled for a reason, with a text in the message, and fails if
// it has started anything.
func wantHeld(ctx context.Context, r *scene.Ring, reason, text string) error {
	message, err := r.Stalled(ctx, reason)
	if err != nil {
		return err
	}
	if !strings.Contains(message, text) {
		return fmt.Errorf("the message is %q, and does not name %q", message, text)
	}
	for _, pod := range r.Now(ctx).Pods(r.Name) {
		return fmt.Errorf("pod %s was made all the same", pod.Name)
	}
	return nil
}

// wantClaims fails if there are not so many claims of a ring's name, all bound.
func wantClaims(t *testing.T, r *scene.Ring, want int) {
	t.Helper()
	claims := &corev1.PersistentVolumeClaimList{}
	if err := kubernetes.Client.List(t.Context(), claims, client.InNamespace(r.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: r.Name}); err != nil {
		t.Fatal(err)
	}
	bound := slices.DeleteFunc(claims.Items, func(c corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase != corev1.ClaimBound || c.DeletionTimestamp != nil
	})
	if len(bound) != want {
		t.Fatalf("%d claims are there and bound, want %d", len(bound), want)
	}
}

func removeClaim(ctx context.Context, s *scene.Scene, name string) error {
	claim := &corev1.PersistentVolumeClaim{}
	if err := kubernetes.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, claim); err != nil {
		return err
	}
	s.Invariants.ExpectDeletion(claim)
	return kubernetes.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
}

// TestCorrectedThenDeletedLeavesNothing: a spec under which no node can start is corrected in
// place; the ring, of the oldest line of Cassandra, serves. With the policy Delete no object of it
// is left afterwards, and no volume.
func TestCorrectedThenDeletedLeavesNothing(t *testing.T) {
	s := open(t, "e2e-nothing")
	sample := sampleOf(t, "one-node.yaml")
	sample.Spec.Version = oldestLine
	sample.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	right := sample.Spec.Node.JVM.Options
	sample.Spec.Node.JVM.Options = append(slices.Clone(right), "-XX:+ThereIsNoSuchOption")
	var ring *scene.Ring
	took(t, "the JVM refuses its options", func() (err error) {
		if ring, err = s.Create(t.Context(), sample); err != nil {
			return err
		}
		return refused(t.Context(), ring)
	})
	took(t, "one node serves when the options are corrected", func() error {
		c, found := ring.Now(t.Context()).Cluster(ring.Name)
		if !found {
			return errors.New("the cluster is not there")
		}
		before := c.DeepCopy()
		c.Spec.Node.JVM.Options = right
		if err := kubernetes.Client.Patch(t.Context(), c, client.MergeFrom(before)); err != nil {
			return err
		}
		return ring.Formed(t.Context())
	})
	for _, n := range ring.Nodes(t.Context()) {
		if n.Status.Version != oldestLine {
			t.Errorf("node %s runs Cassandra %s, want %s", n.Name, n.Status.Version, oldestLine)
		}
	}
	took(t, "rows are written and read", func() error {
		if err := ring.Fill(t.Context(), gocql.One); err != nil {
			return err
		}
		return ring.ReadBack(t.Context(), gocql.All)
	})
	wantRingSeen(t, ring)
	wantShell(t, ring)
	if jvmsAreReached(ring) {
		t.Run("it is as simulated", func(t *testing.T) {
			wantConformance(t, ring, ring.NodeNames(t.Context())[0], false)
		})
	}
	left, err := ring.Leftovers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) < 10 {
		t.Fatalf("the cluster has the objects %q: that is too few for the search to be right", left)
	}
	volumes := volumesOf(t, ring)
	if len(volumes) == 0 {
		t.Fatal("the cluster has no volume")
	}
	took(t, "it is deleted with Delete", func() error { return ring.Delete(t.Context(), v1alpha1.ClaimDelete) })
	took(t, "nothing is left of it", func() error {
		return ring.NoLeftovers(t.Context(), func(string) bool { return false })
	})
	took(t, "nor of its volumes", func() error { return awaitNoVolumes(t.Context(), volumes) })
}

// refused waits until the only node of a ring has said that its JVM cannot start, and that it
// retries.
func refused(ctx context.Context, ring *scene.Ring) error {
	return ring.Until(ctx, 2*time.Minute, "the node says that the JVM did not start", func(now follow.Sight) error {
		nodes := now.Nodes(ring.Name)
		if len(nodes) == 0 {
			return errors.New("it has no record yet")
		}
		n := nodes[0]
		ring.Invariants.ExpectRestart(n.Name)
		if r := n.Status.Restarts; r == nil || r.LastReason != v1alpha1.RestartStartFailed ||
			n.Status.Phase != v1alpha1.PhaseFailed || n.Status.Message == "" {
			return errors.New(follow.Phase(&n))
		}
		return nil
	})
}

func volumesOf(t *testing.T, r *scene.Ring) []string {
	t.Helper()
	var names []string
	for _, claim := range r.Now(t.Context()).Claims(r.Name) {
		names = append(names, claim.Spec.VolumeName)
	}
	return names
}

// awaitNoVolumes waits for the provisioner, which removes a volume some time after its claim.
func awaitNoVolumes(ctx context.Context, names []string) error {
	ctx, stop := context.WithTimeoutCause(ctx, time.Duration(float64(2*time.Minute)**patience),
		errors.New("the provisioner has not removed it"))
	defer stop()
	for _, name := range names {
		for {
			err := kubernetes.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.PersistentVolume{})
			if apierrors.IsNotFound(err) {
				break
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return fmt.Errorf("volume %s: %w", name, context.Cause(ctx))
			}
		}
	}
	return nil
}
