//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// replacedAfter is the shortest time after which a lost member is replaced, and replacement how
// long that takes at most: its repair before, the waits of Cassandra, and one attempt in vain.
const (
	replacedAfter = 10 * time.Minute
	replacement   = 15 * time.Minute
)

// replacesSoon has lost members be replaced as soon as may be.
func replacesSoon(s *v1alpha1.CassandraClusterSpec) {
	s.Replacement = v1alpha1.ReplacementPolicy{Mode: v1alpha1.AutomationAutomatic,
		After: &metav1.Duration{Duration: replacedAfter}, Repair: v1alpha1.ReplacementRepairBefore}
}

// TestDiskLostIsReplaced: the disk of a member is emptied while clients write, and a repair runs.
// After a while it is replaced without hands: another member of the same name with the same tokens.
// No write is lost that was acknowledged. Plugged in again, the old disk lets no JVM start.
func TestDiskLostIsReplaced(t *testing.T) {
	onlyInFull(t)
	ring, victim := losesDisk(t, "e2e-replace")
	before, pod := identities(t, ring), podOf(t, ring, victim)
	host, claim := pod.Spec.NodeName, v1alpha1.ClaimName(v1alpha1.VolumeData, victim)
	t.Cleanup(func() {
		if err := ring.ForgetAside(context.WithoutCancel(t.Context()), host, claim); err != nil {
			t.Log(err)
		}
	})
	while(t, ring, gapsAreShort, "a disk is emptied in a repair, and its node is replaced", func() error {
		task, err := ring.Give(t.Context(), "repair", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair})
		if err == nil {
			err = ring.TaskRuns(t.Context(), task)
		}
		if err == nil {
			err = changeDisk(t, ring, pod, ring.SwapVolume)
		}
		if err != nil {
			return err
		}
		return untilReplaced(t, ring, victim, before[victim].hostID)
	})
	wantReplaced(t, ring, before, victim)
	after := identities(t, ring)
	while(t, ring, gapsAreShort, "the old disk is plugged in again, and the new one", func() error {
		if err := changeDisk(t, ring, podOf(t, ring, victim), ring.SwapVolume); err != nil {
			return err
		}
		if err := untilNode(t, ring, victim, "it does not start", func(n *v1alpha1.CassandraNode) bool {
			return n.Status.Phase == v1alpha1.PhaseDataLost && strings.Contains(n.Status.Message, before[victim].hostID)
		}); err != nil {
			return err
		}
		if err := changeDisk(t, ring, podOf(t, ring, victim), ring.SwapVolume); err != nil {
			return err
		}
		return ring.Serving(t.Context())
	})
	wantSameMembers(t, after, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestDiskLostWhileAnotherJoins: the disk of a member is emptied while a node is on its way into
// the ring. The member is replaced without hands, and the node joins.
func TestDiskLostWhileAnotherJoins(t *testing.T) {
	onlyInFull(t)
	withoutSharedRing(t)
	ring := forGrowth(t, "e2e-replace-join", replacesSoon)
	onlyHere(t, ring.Scene)
	joiner, victim, before := ring.Name+"-dc1-r1-1", ring.NodeNames(t.Context())[1], identities(t, ring)
	ring.Invariants.ExpectOtherPods(victim)
	ring.Invariants.ExpectOtherPods(joiner)
	ring.Invariants.ExpectRestart(joiner)
	while(t, ring, gapsAreShort, "a disk is emptied while a node joins, and its node is replaced", func() error {
		if err := beginJoin(t, ring, joiner); err != nil {
			return err
		}
		if err := loseDisk(t, ring, podOf(t, ring, victim)); err != nil {
			return err
		}
		if err := untilReplaced(t, ring, victim, before[victim].hostID); err != nil {
			return err
		}
		return grownWithin(t, ring, 4, 2*replacement)
	})
	wantReplaced(t, ring, before, victim)
}

// TestARackLosesItsDisks: the disks of both nodes of a rack are emptied. They are replaced without
// hands, one after the other.
func TestARackLosesItsDisks(t *testing.T) {
	onlyInFull(t)
	withoutSharedRing(t)
	ring := forLeaving(t, "e2e-replace-rack", replacesSoon)
	onlyHere(t, ring.Scene)
	victims, before := []string{ring.Name + "-dc1-r1-0", ring.Name + "-dc1-r1-1"}, identities(t, ring)
	while(t, ring, gapsAreShort, "the disks of a rack are emptied, and its nodes are replaced", func() error {
		for _, victim := range victims {
			ring.Invariants.ExpectOtherPods(victim)
			if err := loseDisk(t, ring, podOf(t, ring, victim)); err != nil {
				return err
			}
		}
		for _, victim := range victims {
			if err := untilReplaced(t, ring, victim, before[victim].hostID); err != nil {
				return err
			}
		}
		return ring.Serving(t.Context())
	})
	wantReplaced(t, ring, before, victims...)
}

// TestDiskLostInACleanupAndARebuild: the disk of a member is emptied while another one cleans up
// after growth, and that of a node while it is rebuilt. Both are replaced without hands, and what
// was to be done is done.
func TestDiskLostInACleanupAndARebuild(t *testing.T) {
	onlyInFull(t)
	withoutSharedRing(t)
	ring := forGrowth(t, "e2e-replace-cleanup", replacesSoon)
	onlyHere(t, ring.Scene)
	names := ring.NodeNames(t.Context())
	took(t, "so much is written that cleaning up and rebuilding take a while", func() error {
		return errors.Join(ring.FillMuch(t.Context(), scene.Much), ring.Slow(t.Context(), names, true))
	})
	for _, name := range names {
		ring.Invariants.ExpectOtherPods(name)
	}
	cleaned, victim, before := names[0], names[1], identities(t, ring)
	while(t, ring, gapsAreShort, "a disk is emptied while another node cleans up, and its node is replaced",
		func() error {
			if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
			}); err != nil {
				return err
			}
			return losesDiskWhile(t, ring, cleaned, v1alpha1.OperationCleanup, victim, before)
		})
	took(t, "the new node has joined, and nothing is left to do", func() error { return grown(t, ring, 4) })
	wantReplaced(t, ring, before, victim)
	wantHistory(t, ring, "Cleanup")

	victim, before = names[2], identities(t, ring)
	while(t, ring, gapsAreShort, "a disk is emptied while its node is rebuilt, and the node is replaced", func() error {
		spec := taskSpec(v1alpha1.TaskRebuild, victim)
		spec.Nodes = []string{victim}
		task, err := ring.Give(t.Context(), "rebuild", spec)
		if err == nil {
			err = losesDiskWhile(t, ring, victim, v1alpha1.OperationRebuild, victim, before)
		}
		if err == nil {
			err = ring.Finished(t.Context(), task)
		}
		return err
	})
	wantOthersInPlace(t, ring, before, victim)
	wantHistory(t, ring, "ReplaceNode", "ReplaceNode")
	wantRingSeen(t, ring)
}

// losesDiskWhile waits until a node does something, empties the disk of one, which may be another,
// before that is over, and waits until it is replaced.
func losesDiskWhile(t *testing.T, ring *scene.Ring, busy string, kind v1alpha1.OperationType, victim string,
	before map[string]identity) error {
	t.Helper()
	if err := untilNode(t, ring, busy, "it is at work: "+string(kind),
		func(n *v1alpha1.CassandraNode) bool { return atWork(n, kind) }); err != nil {
		return err
	}
	if err := loseDisk(t, ring, podOf(t, ring, victim)); err != nil {
		return err
	}
	for _, n := range ring.Nodes(t.Context()) {
		if n.Name == busy && busy != victim && !atWork(&n, kind) {
			return fmt.Errorf("%s of node %s was over before the disk was lost", kind, busy)
		}
	}
	if err := untilNode(t, ring, victim, "its disk is lost",
		func(n *v1alpha1.CassandraNode) bool { return n.Status.Phase == v1alpha1.PhaseDataLost }); err != nil {
		return err
	}
	if err := ring.Slow(t.Context(), slices.DeleteFunc(slices.Clone(slices.Sorted(maps.Keys(before))),
		func(name string) bool { return name == victim }), false); err != nil {
		return err
	}
	return untilReplaced(t, ring, victim, before[victim].hostID)
}

// atWork says that a node does something.
func atWork(n *v1alpha1.CassandraNode, kind v1alpha1.OperationType) bool {
	return slices.ContainsFunc(n.Spec.Operations, func(o v1alpha1.OperationIntent) bool {
		return o.Type == kind && slices.ContainsFunc(n.Status.Operations, func(s v1alpha1.OperationStatus) bool {
			return s.ID == o.ID && s.Phase == v1alpha1.OperationRunning
		})
	})
}

// TestReplacementKilledWhileItStreams: the JVM of a node that replaces another is killed on its way
// into the ring. The same ticket begins again from zero.
func TestReplacementKilledWhileItStreams(t *testing.T) {
	onlyInFull(t)
	ring, victim := losesDisk(t, "e2e-replace-killed")
	ring.Invariants.ExpectRestart(victim)
	before := identities(t, ring)
	while(t, ring, gapsAreShort, "a disk is emptied, and the replacement is killed once", func() error {
		if err := loseDisk(t, ring, podOf(t, ring, victim)); err != nil {
			return err
		}
		if err := ring.Until(t.Context(), replacedAfter+replacement, "the replacement is on its way into the ring",
			func(now follow.Sight) error {
				for _, n := range now.Nodes(ring.Name) {
					if n.Name == victim && (n.Status.Phase != v1alpha1.PhaseJoining || n.Status.Message == "" ||
						n.Spec.Join == nil || n.Spec.Join.Mode != v1alpha1.JoinReplace) {
						return fmt.Errorf("node %s is %s", victim, follow.Phase(&n))
					}
				}
				return nil
			}); err != nil {
			return err
		}
		if err := ring.KillJVM(t.Context(), victim); err != nil {
			return err
		}
		return untilReplaced(t, ring, victim, before[victim].hostID)
	})
	wantReplaced(t, ring, before, victim)
}

// TestDiskLostWhileStopped: a disk is emptied while the ring is stopped, so that no other member
// has gossip of its node when it starts. The node is removed from the ring and joins as a new one.
func TestDiskLostWhileStopped(t *testing.T) {
	onlyInFull(t)
	ring, victim := losesDisk(t, "e2e-replace-stopped")
	before, host := identities(t, ring), podOf(t, ring, victim).Spec.NodeName
	while(t, ring, nothingIsLost, "a disk is emptied while the ring is stopped, and its node joins as a new one",
		func() error {
			err := errors.Join(stopRing(t, ring, true), isDown(t, ring))
			if err == nil {
				err = ring.EmptyVolume(t.Context(), host, v1alpha1.ClaimName(v1alpha1.VolumeData, victim))
			}
			if err == nil {
				err = stopRing(t, ring, false)
			}
			if err != nil {
				return err
			}
			// The ring waits for the node for ten minutes before it has started.
			return ring.Until(t.Context(), 2*replacedAfter+replacement, "node "+victim+" is a new member",
				func(now follow.Sight) error { return isReplaced(now, ring, victim, before[victim].hostID) })
		})
	wantReplaced(t, ring, before, victim)
	wantHistory(t, ring, "JoinNode")
}

// TestEphemeral: the data of a ring goes with its pods. A pod is deleted, and its node is replaced
// without hands. Then a change takes new pods: each node is replaced before the next gives its data
// up, so that rows are read that were written before all of it.
func TestEphemeral(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-ephemeral", replacesSoon, func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Storage = &v1alpha1.Storage{
			Ephemeral: &v1alpha1.EphemeralStorage{SizeLimit: ptr(resource.MustParse("2Gi"))}}
	})
	for _, name := range ring.NodeNames(t.Context()) {
		ring.Invariants.ExpectOtherPods(name)
	}
	before, victim := identities(t, ring), ring.NodeNames(t.Context())[1]
	while(t, ring, gapsAreShort, "a pod is deleted with its data, and its node is replaced", func() error {
		if err := deletePods(t.Context(), ring, victim); err != nil {
			return err
		}
		return untilReplaced(t, ring, victim, before[victim].hostID)
	})
	wantReplaced(t, ring, before, victim)
	before = identities(t, ring)
	while(t, ring, gapsAreShort, "a change of the pods replaces each node", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.TerminationGracePeriodSeconds = ptr(int64(200))
		}); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), time.Duration(len(before))*replacement)
	})
	for name, now := range identities(t, ring) {
		if now.hostID == before[name].hostID || now.tokens != before[name].tokens {
			t.Errorf("node %s was %+v, and is %+v", name, before[name], now)
		}
	}
	wantClaims(t, ring, 0)
	wantRingSeen(t, ring)
}

// losesDisk is a ring of three racks with rows, in which lost members are replaced soon, and the
// node whose disk is to be lost.
func losesDisk(t *testing.T, namespace string) (*scene.Ring, string) {
	t.Helper()
	ring, pod := onHosts(t, namespace)
	if err := ring.Edit(t.Context(), replacesSoon); err != nil {
		t.Fatal(err)
	}
	ring.Invariants.ExpectOtherPods(pod.Name) // one that replaces another needs an address of its own
	return ring, pod.Name
}

// untilReplaced waits until another member has taken the place of one.
func untilReplaced(t *testing.T, ring *scene.Ring, node, hostID string) error {
	t.Helper()
	return ring.Until(t.Context(), replacedAfter+replacement, "node "+node+" is replaced",
		func(now follow.Sight) error { return isReplaced(now, ring, node, hostID) })
}

func isReplaced(now follow.Sight, ring *scene.Ring, node, hostID string) error {
	for _, n := range now.Nodes(ring.Name) {
		if n.Name == node && (n.Spec.Member == nil || n.Spec.Member.HostID == hostID || !n.Status.Ready) {
			return fmt.Errorf("node %s is %s", node, follow.Phase(&n))
		}
	}
	return nil
}

// wantReplaced fails unless these members alone were replaced, and every node sees the ring as it
// is.
func wantReplaced(t *testing.T, ring *scene.Ring, before map[string]identity, victims ...string) {
	t.Helper()
	wantOthersInPlace(t, ring, before, victims...)
	wantHistory(t, ring, slices.Repeat([]string{"ReplaceNode"}, len(victims))...)
	wantRingSeen(t, ring)
}

// wantOthersInPlace fails if nodes have not taken the place of the members that they were, or if
// another one is not the member that it was.
func wantOthersInPlace(t *testing.T, ring *scene.Ring, before map[string]identity, victims ...string) {
	t.Helper()
	now := identities(t, ring)
	for name, was := range before {
		if is := now[name]; (is.hostID == was.hostID) == slices.Contains(victims, name) {
			t.Errorf("node %s had the host id %s and has %s", name, was.hostID, is.hostID)
		}
	}
	for _, n := range ring.Nodes(t.Context()) {
		if slices.Contains(victims, n.Name) && (len(n.Spec.Replaced) != 1 ||
			n.Spec.Replaced[0].HostID != before[n.Name].hostID || n.Spec.Join != nil) {
			t.Errorf("the record of node %s says that it has replaced %v", n.Name, n.Spec.Replaced)
		}
	}
}
