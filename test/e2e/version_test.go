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
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/test/e2e/scene"
)

func version(release string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Version = release }
}

// rollOutVersion brings every node to a release, in pods of their own on the same disks.
func rollOutVersion(t *testing.T, ring *scene.Ring, release string) {
	t.Helper()
	before := identities(t, ring)
	for name := range before {
		ring.Invariants.ExpectOtherPods(name)
	}
	rollOut(t, ring, "Cassandra "+release, version(release))
	wantSameMembers(t, before, identities(t, ring))
	for _, n := range ring.Nodes(t.Context()) {
		if n.Status.Version != release || n.Status.DiskRelease != release {
			t.Errorf("node %s runs Cassandra %s, on a disk of %s; want %s",
				n.Name, n.Status.Version, n.Status.DiskRelease, release)
		}
	}
	wantRingSeen(t, ring)
}

// TestPatchRelease: a patch release reaches every node, and is taken back.
func TestPatchRelease(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	from := sampleOf(t, "demo.yaml").Spec.Version
	rollOutVersion(t, ring, laterPatch)
	rollOutVersion(t, ring, from)
}

// TestDiskLostBetweenReleases: while one node of a ring has a later release, the disk of another is
// lost. The node beside it in its rack, which shares no range with it, gets the release all the
// same; those of other racks wait, by name, since without them a quorum would be lost.
func TestDiskLostBetweenReleases(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-disk-between",
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[2].Nodes = ptr(int32(2)) })
	onlyHere(t, ring.Scene)
	names := ring.NodeNames(t.Context())
	waits, lost, beside := names[1], names[2], names[3]
	for _, name := range names {
		ring.Invariants.ExpectOtherPods(name)
	}
	wantAPerson(t, ring, lost, v1alpha1.PhaseDataLost, "replaced", "a disk is lost while two releases are in the ring",
		func() error {
			if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
				s.Version, s.Disruption.HoldAfter = laterPatch, v1alpha1.HoldAfterFirstNode
			}); err != nil {
				return err
			}
			if err := ring.Until(t.Context(), 6*time.Minute, "the roll-out is held",
				blockedBy(ring, v1alpha1.BlockedRollOutHeld, "")); err != nil {
				return err
			}
			if err := loseDisk(t, ring, podOf(t, ring, lost)); err != nil {
				return err
			}
			if err := untilNode(t, ring, lost, "its disk is lost",
				func(n *v1alpha1.CassandraNode) bool { return n.Status.Phase == v1alpha1.PhaseDataLost }); err != nil {
				return err
			}
			c, _ := ring.Now(t.Context()).Cluster(ring.Name)
			if err := ring.Edit(t.Context(),
				func(s *v1alpha1.CassandraClusterSpec) { s.Disruption.Resume = c.Status.Step.Hold }); err != nil {
				return err
			}
			if err := untilNode(t, ring, beside, "it has the release", func(n *v1alpha1.CassandraNode) bool {
				return n.Status.Version == laterPatch && n.Status.Ready
			}); err != nil {
				return err
			}
			return ring.Until(t.Context(), 4*time.Minute, "the other rack waits",
				blockedBy(ring, v1alpha1.BlockedConsistencyWouldBeLost, waits))
		})
	for _, n := range ring.Nodes(t.Context()) {
		if is := n.Status.Version == laterPatch; is != (n.Name == names[0] || n.Name == beside) {
			t.Errorf("node %s has Cassandra %s", n.Name, n.Status.Version)
		}
	}
}

// loseDisk deletes a pod, and empties its volume before the next one has it.
func loseDisk(t *testing.T, ring *scene.Ring, pod *corev1.Pod) error {
	t.Helper()
	return changeDisk(t, ring, pod, ring.EmptyVolume)
}

// changeDisk deletes a pod, and does something to its volume before the next one has it.
func changeDisk(t *testing.T, ring *scene.Ring, pod *corev1.Pod,
	change func(ctx context.Context, host, claim string) error) error {
	t.Helper()
	if err := ring.Cordon(t.Context(), pod.Spec.NodeName, true); err != nil {
		return err
	}
	ring.Invariants.ExpectDeletion(pod)
	err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID})
	if err == nil {
		err = ring.Until(t.Context(), 4*time.Minute, "another pod waits for the host",
			func(now follow.Sight) error { _, err := another(now, pod); return err })
	}
	if err == nil {
		err = change(t.Context(), pod.Spec.NodeName, v1alpha1.ClaimName(v1alpha1.VolumeData, pod.Name))
	}
	return errors.Join(err, ring.Cordon(context.WithoutCancel(t.Context()), pod.Spec.NodeName, false))
}

// files on the data volume of a node whose paths are like a pattern.
func files(t *testing.T, ring *scene.Ring, node, pattern string) []string {
	t.Helper()
	out, err := ring.Run(t.Context(), node, "find", layout.DataDir, "-path", pattern)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out)
}

// wantSSTables fails if a node has none of a version and should have some, or the other way round.
func wantSSTables(t *testing.T, ring *scene.Ring, version string, some bool) {
	t.Helper()
	for _, node := range ring.NodeNames(t.Context()) {
		found := files(t, ring, node, "*/data/*/*/"+version+"-*-Data.db")
		found = slices.DeleteFunc(found, func(name string) bool { return strings.Contains(name, "/snapshots/") })
		if len(found) > 0 != some {
			t.Errorf("node %s has SSTables of version %s: %v, want some: %v", node, version, found, some)
		}
	}
}

// TestNextLine: a ring of 4.1 becomes one of 5.0, after snapshots of what is each node's own. Taken
// back it is refused by name, and nothing changes. Once it is to write the formats of 5.0 the
// SSTables are upgraded.
func TestNextLine(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-next-line", version(oldestLine))
	rollOutVersion(t, ring, laterPatch)
	for _, node := range ring.NodeNames(t.Context()) {
		for _, keyspace := range []string{"system", "system_schema"} {
			if len(files(t, ring, node, "*/"+keyspace+"/*/snapshots/helenus-before-"+laterPatch+"-*/manifest.json")) == 0 {
				t.Errorf("node %s has no snapshot of %s", node, keyspace)
			}
		}
	}
	wantSSTables(t, ring, "nb", true)
	before, started := identities(t, ring), jvms(t, ring)
	while(t, ring, servedThroughout, oldestLine+" after "+laterPatch, func() error {
		if err := ring.Edit(t.Context(), version(oldestLine)); err != nil {
			return err
		}
		if err := ring.Until(t.Context(), time.Minute, "the cluster refuses it", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			s := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
			if s == nil || s.Reason != v1alpha1.ReasonUnsupportedChange ||
				!strings.Contains(s.Message, laterPatch+" → "+oldestLine) {
				return fmt.Errorf("stalled: %+v", s)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := ring.Edit(t.Context(), version(laterPatch)); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), time.Minute)
	})
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if p != started[name] {
			t.Errorf("the JVM of node %s was restarted for a spec that was refused", name)
		}
	}
	rollOut(t, ring, "the formats of 5.0", setYAML("storage_compatibility_mode", `"UPGRADING"`))
	took(t, "the SSTables are upgraded", func() error {
		return ring.Until(t.Context(), 5*time.Minute, "each rack is", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			upgraded := 0
			for _, r := range c.Status.History {
				if r.Step == string(ledger.UpgradeSSTables) && r.Result == v1alpha1.StepSucceeded {
					upgraded++
				}
			}
			if upgraded < 3 {
				return fmt.Errorf("%d of 3 racks", upgraded)
			}
			return nil
		})
	})
	wantSSTables(t, ring, "nb", false)
	wantSSTables(t, ring, "oa", true)
}
