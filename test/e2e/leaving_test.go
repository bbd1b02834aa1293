//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// TestLeaving: a ring of six shrinks by a node in each rack while a client writes and reads; where
// time is short, one of four by one. Nothing of the nodes is left that have left.
func TestLeaving(t *testing.T) {
	ring := forGrowth(t, "e2e-leave", scene.Linearizable, deletingClaims, func(s *v1alpha1.CassandraClusterSpec) {
		if s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)); *full {
			s.Datacenters[0].NodesPerRack = 2
		}
	})
	before := identities(t, ring)
	leavers := len(before) - 3
	while(t, ring, servedThroughout, fmt.Sprintf("%d of %d nodes leave", leavers, len(before)), func() error {
		return shrink(t, ring)
	})
	now := identities(t, ring)
	for name := range before {
		if strings.HasSuffix(name, "-1") {
			delete(before, name)
		}
	}
	wantAsBefore(t, before, now)
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
	wantHistory(t, ring, slices.Repeat([]string{"LeaveNode"}, leavers)...)
}

// TestLeavingTheOldestLine: a node leaves a ring of the oldest line of Cassandra, which refuses a
// second decommission where later ones answer it at once. Meanwhile its agent is killed.
func TestLeavingTheOldestLine(t *testing.T) {
	onlyInFull(t)
	ring := forLeaving(t, "e2e-leave-oldest", func(s *v1alpha1.CassandraClusterSpec) { s.Version = oldestLine })
	while(t, ring, servedThroughout, "one of four nodes leaves, whose agent is killed, with "+oldestLine, func() error {
		if err := beginLeave(t, ring); err != nil {
			return err
		}
		pod := podOf(t, ring, leaverOf(ring))
		if err := ring.SignalAgent(pod.UID, syscall.SIGKILL); err != nil {
			return err
		}
		return shrunk(t, ring)
	})
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
}

// TestReplacedAndLeftWhileTheOperatorIsKilled: a node has joined, and all nodes have forgotten that
// rows were deleted. Then one is replaced, and one leaves, while the operator is killed again and
// again. Nothing happens twice, and what was deleted stays so.
func TestReplacedAndLeftWhileTheOperatorIsKilled(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-leave-operator", deletingClaims)
	onlyHere(t, ring.Scene)
	took(t, "rows are written that are to be deleted", func() error { return ring.WriteDoomed(t.Context()) })
	grow(t, ring, "a node more", 4,
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	give := func(name string, spec v1alpha1.TaskTemplate) error {
		task, err := ring.Give(t.Context(), name, spec)
		if err != nil {
			return err
		}
		return ring.Finished(t.Context(), task)
	}
	took(t, "the rows are deleted, and the deletions forgotten", func() error {
		if err := ring.DeleteDoomed(t.Context()); err != nil {
			return err
		}
		return errors.Join(give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush}),
			give("compact", v1alpha1.TaskTemplate{Type: v1alpha1.TaskCompact, Keyspaces: []string{scene.Keyspace}}))
	})
	replaced := ring.NodeNames(t.Context())[1]
	ring.Invariants.ExpectOtherPods(replaced)
	for seed, operation := range []struct {
		what string
		do   func() error
	}{
		{"a node is replaced while the operator is killed", func() error {
			return give("replace", v1alpha1.TaskTemplate{Type: v1alpha1.TaskReplace, Nodes: []string{replaced}})
		}},
		{"a node leaves while the operator is killed", func() error { return shrink(t, ring) }},
	} {
		while(t, ring, servedThroughout, operation.what, func() error {
			stop := killing(t, ring.Scene, uint64(seed))
			err := operation.do()
			if n := stop(); n == 0 {
				err = errors.Join(err, errors.New("no operator was killed"))
			}
			return err
		})
	}
	took(t, "no row is there again", func() error { return ring.NoneHasRisen(t.Context()) })
	wantHistory(t, ring, "ReplaceTask", "LeaveNode")
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
}

// TestLeaverKilled: the JVM of a node that leaves is killed after its data is with the others, so
// that it never starts again.
func TestLeaverKilled(t *testing.T) {
	onlyInFull(t)
	ring := forLeaving(t, "e2e-leaver-killed")
	leaver, member := leaverOf(ring), ring.NodeNames(t.Context())[0]
	while(t, ring, servedThroughout, "one of four nodes leaves, and is killed when it has streamed", func() error {
		if err := beginLeave(t, ring); err != nil {
			return err
		}
		hasLeft := func(members []string) bool { return len(members) == 3 }
		if err := ring.Sees(t.Context(), member, hasLeft); err != nil {
			return err
		}
		if err := ring.KillJVM(t.Context(), leaver); err != nil {
			return err
		}
		return shrunk(t, ring)
	})
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
}

// TestLeaverKilledAgainAndAgain: the JVM of a node that leaves is killed at nine moments before its
// data is with the others, three of each attempt to leave, of which two are taken back. It is
// NORMAL again each time, and leaves in the end.
func TestLeaverKilledAgainAndAgain(t *testing.T) {
	onlyInFull(t)
	ring := forLeaving(t, "e2e-leaver-killed-again")
	leaver := leaverOf(ring)
	const leaves, kills = 3, 3
	const apart = 3 * time.Second // Cassandra streams half a minute after it began to leave
	for leave := range leaves {
		while(t, ring, servedThroughout, fmt.Sprintf("a node leaves and is killed, %d of %d", leave+1, leaves), func() error {
			for kill := range kills {
				if err := beginLeave(t, ring); err != nil {
					return err
				}
				rest(t, time.Duration(leave*kills+kill)*apart)
				if err := ring.KillJVM(t.Context(), leaver); err != nil {
					return err
				}
				if err := untilNode(t, ring, leaver, "it starts again", func(n *v1alpha1.CassandraNode) bool {
					return n.Status.Phase != v1alpha1.PhaseLeaving
				}); err != nil {
					return err
				}
			}
			if leave == leaves-1 {
				return shrunk(t, ring)
			}
			if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
			}); err != nil {
				return err
			}
			return grown(t, ring, 4)
		})
	}
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
}

// TestLeaveTakenBack: a node that is to leave stays when the spec has it again before it began, and
// when its JVM was killed before its data was with the others.
func TestLeaveTakenBack(t *testing.T) {
	onlyInFull(t)
	ring := forLeaving(t, "e2e-leave-taken-back")
	leaver, before := leaverOf(ring), identities(t, ring)
	back := func(s *v1alpha1.CassandraClusterSpec) {
		s.Paused, s.Datacenters[0].Racks[0].Nodes = false, ptr(int32(2))
	}
	while(t, ring, servedThroughout, "a node is to leave, and is not, before it began", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Paused, s.Datacenters[0].Racks[0].Nodes = true, nil
		}); err != nil {
			return err
		}
		if err := ring.Until(t.Context(), growth, "a node is to leave", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			if c.Status.Step == nil || !strings.Contains(c.Status.Step.Message, "1 node to leave") {
				return fmt.Errorf("the step is %+v", c.Status.Step)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := ring.Edit(t.Context(), back); err != nil {
			return err
		}
		return grown(t, ring, 4)
	})
	wantAsBefore(t, before, identities(t, ring))
	while(t, ring, gapsAreShort, "a node leaves, is killed, and is not to leave any more", func() error {
		if err := beginLeave(t, ring); err != nil {
			return err
		}
		if err := ring.Edit(t.Context(), back); err != nil {
			return err
		}
		if err := ring.KillJVM(t.Context(), leaver); err != nil {
			return err
		}
		return grown(t, ring, 4)
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestDatacenterLeaves: a datacenter gives up its keyspace, and leaves. Rows that two of its nodes
// alone have, as they were written at LOCAL_QUORUM, are read in the other one afterwards. Taken out
// before, it stays as it is. The operator is killed all the while, and nothing happens twice.
func TestDatacenterLeaves(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-datacenter-leaves", deletingClaims)
	onlyHere(t, ring.Scene)
	grow(t, ring, "a datacenter more", 6, addDatacenter)
	took(t, "rows are written at LOCAL_QUORUM that two nodes of the second datacenter alone have", func() error {
		names := ring.NodeNames(t.Context())
		return ring.FillWithout(t.Context(), gocql.LocalQuorum, names[:4]...)
	})
	var had []v1alpha1.Datacenter
	takenOut := func(s *v1alpha1.CassandraClusterSpec) {
		had = slices.Clone(s.Datacenters)
		s.Datacenters = s.Datacenters[:1]
	}
	took(t, "it does not leave with a keyspace", func() error {
		if err := ring.Edit(t.Context(), takenOut); err != nil {
			return err
		}
		return ring.Until(t.Context(), growth, "it is refused", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			if !slices.ContainsFunc(c.Status.Blocked, func(b v1alpha1.BlockedStep) bool {
				return b.Reason == v1alpha1.BlockedDatacenterInUse && strings.Contains(b.Message, scene.Keyspace)
			}) {
				return fmt.Errorf("blocked are %+v", c.Status.Blocked)
			}
			return nil
		})
	})
	stop := killing(t, ring.Scene, 0)
	took(t, "it gives up its keyspace", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters = had
			s.Datacenters[1].Withdraw = &v1alpha1.Withdraw{Keyspaces: []string{scene.Keyspace}}
		}); err != nil {
			return err
		}
		return ring.Until(t.Context(), growth, "the operator recommends to take it out", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			if !slices.ContainsFunc(c.Status.Recommended,
				func(r v1alpha1.Recommendation) bool { return r.Operation == "RemoveDatacenter" }) {
				return fmt.Errorf("the step is %+v, blocked are %+v", c.Status.Step, c.Status.Blocked)
			}
			return nil
		})
	})
	took(t, "it leaves", func() error {
		if err := ring.Edit(t.Context(), takenOut); err != nil {
			return err
		}
		return shrunk(t, ring)
	})
	if stop() == 0 {
		t.Error("no operator was killed")
	}
	took(t, "all rows are read at LOCAL_QUORUM through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.LocalQuorum) })
	wantHistory(t, ring, "WithdrawDatacenter", "LeaveNode", "LeaveNode", "LeaveNode")
	wantSystemKeyspaces(t, ring, map[string]string{"dc1": "3"})
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
}

// TestRackLeaves: a rack of a ring of four leaves once two racks are allowed for three replicas,
// and all rows are read afterwards. Before that it stays as it is. Then another one gets another
// name, so that its node leaves when that of the new one has joined.
func TestRackLeaves(t *testing.T) {
	onlyInFull(t)
	ring := forLeaving(t, "e2e-rack-leaves")
	before := identities(t, ring)
	took(t, "a rack is to leave, and may not", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks = s.Datacenters[0].Racks[:2]
		}); err != nil {
			return err
		}
		message, err := ring.Stalled(t.Context(), v1alpha1.ReasonInvalidSpec)
		if want := "would have 2 racks left once node " + ring.Name + "-dc1-r3-0 has left"; err == nil &&
			!strings.Contains(message, want) {
			err = fmt.Errorf("it is refused for another reason: %s", message)
		}
		return err
	})
	wantAsBefore(t, before, identities(t, ring))
	while(t, ring, servedThroughout, "it may, and leaves", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].AllowFewerRacks = true
		}); err != nil {
			return err
		}
		return shrunk(t, ring)
	})
	delete(before, ring.Name+"-dc1-r3-0")
	wantAsBefore(t, before, identities(t, ring))
	while(t, ring, servedThroughout, "a rack gets another name", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks[1].Name = "r4"
		}); err != nil {
			return err
		}
		return shrunk(t, ring)
	})
	took(t, "all rows are read through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.Quorum) })
	wantHistory(t, ring, "LeaveNode", "JoinNode", "LeaveNode")
	wantRingSeen(t, ring)
	wantClaims(t, ring, 3)
}

// TestLeaveRefused: a node does not leave where a keyspace has as many replicas as there are nodes.
// Nothing is touched. With one replica less it leaves: the system keyspaces get one less by
// themselves.
func TestLeaveRefused(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-leave-refused", deletingClaims, func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks = s.Datacenters[0].Racks[:1]
		s.Datacenters[0].Racks[0].Nodes = ptr(int32(3))
	})
	before := identities(t, ring)
	while(t, ring, servedThroughout, "a node is to leave and may not", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
		}); err != nil {
			return err
		}
		message, err := ring.Stalled(t.Context(), v1alpha1.ReasonInvalidSpec)
		if err == nil && !strings.Contains(message, "keyspace "+scene.Keyspace+" has 3 replicas in datacenter dc1") {
			err = fmt.Errorf("it is refused for another reason: %s", message)
		}
		return err
	})
	wantAsBefore(t, before, identities(t, ring))
	while(t, ring, servedThroughout, "it has a replica less, and the node leaves", func() error {
		if err := ring.Replicate(t.Context(), 2); err != nil {
			return err
		}
		return shrunkTo(t, ring, 2)
	})
	wantRingSeen(t, ring)
	wantSystemKeyspaces(t, ring, map[string]string{"dc1": "2"})
}

// forLeaving is a ring of four nodes, two of which are in the first rack.
func forLeaving(t *testing.T, namespace string, change ...func(*v1alpha1.CassandraClusterSpec)) *scene.Ring {
	t.Helper()
	return forGrowth(t, namespace, append(change, scene.Linearizable, deletingClaims,
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })...)
}

func deletingClaims(s *v1alpha1.CassandraClusterSpec) { s.Volumes.OnScaleIn = v1alpha1.ClaimDelete }

func leaverOf(ring *scene.Ring) string { return ring.Name + "-dc1-r1-1" }

// shrink to one node in each rack.
func shrink(t *testing.T, ring *scene.Ring) error {
	t.Helper()
	if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].NodesPerRack, s.Datacenters[0].Racks[0].Nodes = 1, nil
	}); err != nil {
		return err
	}
	return shrunk(t, ring)
}

// beginLeave has the second node of the first rack leave, and waits until its agent says that it
// does.
func beginLeave(t *testing.T, ring *scene.Ring) error {
	t.Helper()
	if err := ring.Edit(t.Context(),
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = nil }); err != nil {
		return err
	}
	return untilNode(t, ring, leaverOf(ring), "it is leaving",
		func(n *v1alpha1.CassandraNode) bool { return n.Status.Phase == v1alpha1.PhaseLeaving })
}

func shrunk(t *testing.T, ring *scene.Ring) error {
	t.Helper()
	return shrunkTo(t, ring, 3)
}

// shrunkTo waits until so many nodes are left, with their records alone, and serve.
func shrunkTo(t *testing.T, ring *scene.Ring, nodes int) error {
	t.Helper()
	return ring.Until(t.Context(), 3*growth, fmt.Sprintf("%d nodes are left, and nothing is left to do", nodes),
		func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			switch {
			case c.Status.ObservedGeneration != c.Generation:
				return fmt.Errorf("the operator has not looked at it yet")
			case c.Status.Step != nil:
				return fmt.Errorf("%s: %s", c.Status.Step.Name, c.Status.Step.Message)
			case len(now.Nodes(ring.Name)) != nodes || int(c.Status.ReadyNodes) != nodes:
				return fmt.Errorf("%d nodes, %d of which serve", len(now.Nodes(ring.Name)), c.Status.ReadyNodes)
			}
			return nil
		})
}
