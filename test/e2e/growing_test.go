//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// forGrowth is a ring of three nodes, filled with rows, that can grow on a host of any size.
func forGrowth(t *testing.T, namespace string, change ...func(*v1alpha1.CassandraClusterSpec)) *scene.Ring {
	t.Helper()
	ring := emptyForGrowth(t, namespace, change...)
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	return ring
}

func emptyForGrowth(t *testing.T, namespace string, change ...func(*v1alpha1.CassandraClusterSpec)) *scene.Ring {
	t.Helper()
	s := open(t, namespace)
	sample := sampleOf(t, "demo.yaml")
	sample.Spec.Node.Placement = &v1alpha1.Placement{HostAntiAffinity: v1alpha1.HostAntiAffinityNone}
	for _, change := range change {
		change(&sample.Spec)
	}
	var ring *scene.Ring
	took(t, "three nodes have formed a ring", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	return ring
}

// wantAsBefore fails if a node is not the same, in the same pod, as it was.
func wantAsBefore(t *testing.T, before, now map[string]identity) {
	t.Helper()
	for name, was := range before {
		if now[name] != was {
			t.Errorf("node %s was %+v, and is %+v", name, was, now[name])
		}
	}
}

// TestGrowing: a ring that serves gets a node more while a client writes, and then, where time is,
// two more, one after the other. No write is lost, every node sees the new ring, and the old ones
// have dropped what they no longer own.
func TestGrowing(t *testing.T) {
	ring := forGrowth(t, "e2e-grow")
	before := identities(t, ring)
	growByOne(t, ring, "a node more")
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantHistory(t, ring, "JoinNode", "Cleanup")
	if *full {
		grow(t, ring, "two nodes more", 6, func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NodesPerRack = 2 })
		wantAsBefore(t, before, identities(t, ring))
		wantRingSeen(t, ring)
		sayPauses(t, ring)
	}
	wantEndAsSimulated(t, ring)
}

// growByOne has a node join as conformance tells it, and waits until nothing is left to do.
func growByOne(t *testing.T, ring *scene.Ring, what string) {
	t.Helper()
	while(t, ring, servedThroughout, what, func() error {
		if err := joinPod(t, ring); err != nil {
			return err
		}
		return grown(t, ring, 4)
	})
}

// TestGrowingTheOldestLine: a node joins a ring of the oldest line of Cassandra, which says less of
// a join than later ones do.
func TestGrowingTheOldestLine(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-grow-oldest", func(s *v1alpha1.CassandraClusterSpec) { s.Version = oldestLine })
	before := identities(t, ring)
	growByOne(t, ring, "a node more, with "+oldestLine)
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantHistory(t, ring, "JoinNode", "Cleanup")
	wantLivesAsSimulated(t, ring)
	wantEndAsSimulated(t, ring)
}

// TestForgottenWhileJoining: the JVM of a node that joins stands still for so long that its peers
// forget it. When it can continue it does not: it would lack what was written meanwhile. The join
// starts over.
func TestForgottenWhileJoining(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-forgotten", func(s *v1alpha1.CassandraClusterSpec) { s.Version = oldestLine })
	before := identities(t, ring)
	joiner := ring.Name + "-dc1-r1-1"
	while(t, ring, servedThroughout, "a node joins, and stands still for 80 s, with "+oldestLine, func() error {
		if err := beginJoin(t, ring, joiner); err != nil {
			return err
		}
		if err := ring.FreezeJVM(t.Context(), joiner); err != nil {
			return err
		}
		rest(t, 80*time.Second)
		if err := ring.ThawJVM(t.Context(), joiner); err != nil {
			t.Log(err) // it has been ended by now
		}
		if err := untilNode(t, ring, joiner, "its join is ended", func(n *v1alpha1.CassandraNode) bool {
			return strings.Contains(n.Status.Message, "had forgotten this node")
		}); err != nil {
			return err
		}
		return grown(t, ring, 4)
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestJoinKilled: the JVM of a node is killed on its way into the ring. What it has streamed is
// removed before it starts again, since deletions may have passed it, and it joins by the same
// ticket.
func TestJoinKilled(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-join-killed")
	before := identities(t, ring)
	joiner := ring.Name + "-dc1-r1-1"
	while(t, ring, servedThroughout, "the JVM of a node that joins is killed", func() error {
		if err := beginJoin(t, ring, joiner); err != nil {
			return err
		}
		pod, killed := podOf(t, ring, joiner), time.Now()
		if err := ring.KillJVM(t.Context(), joiner); err != nil {
			return err
		}
		if err := untilNode(t, ring, joiner, "it waits until its peers listen again",
			func(n *v1alpha1.CassandraNode) bool { return n.Status.Phase == v1alpha1.PhaseWaiting }); err != nil {
			return err
		}
		if err := grownWithin(t, ring, 4, 15*time.Minute); err != nil {
			return err
		}
		return ring.Says(t.Context(), pod.Name, layout.AgentContainer, killed, "without what was streamed before")
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestAJoinThatIsNeverForgotten: a node that joins is gone without a word, its pod comes back at
// another address, and a member is started meanwhile, which keeps the memory of the earlier try
// alive. The operator has it forgotten, and the node joins.
func TestAJoinThatIsNeverForgotten(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-never-forgotten")
	members := identities(t, ring)
	joiner := ring.Name + "-dc1-r1-1"
	while(t, ring, nothingIsLost, "a node that joins is gone, and a member is started 150 s later", func() error {
		if err := beginJoin(t, ring, joiner); err != nil {
			return err
		}
		pod := podOf(t, ring, joiner)
		if err := ring.FreezeJVM(t.Context(), joiner); err != nil { // so that it says nothing when it ends
			return err
		}
		ring.Invariants.ExpectDeletion(pod)
		if err := kubernetes.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
		rest(t, 150*time.Second)
		if err := ring.KillJVM(t.Context(), ring.Name+"-dc1-r2-0"); err != nil {
			return err
		}
		return grownWithin(t, ring, 4, 15*time.Minute)
	})
	for name, was := range identities(t, ring) {
		if before, member := members[name]; member && was.hostID != before.hostID {
			t.Errorf("node %s was %+v, and is %+v", name, before, was)
		}
	}
	wantRingSeen(t, ring)
}

// beginJoin has a node more in the first rack, and waits until a member knows of its tokens: some
// 30 s later it streams.
func beginJoin(t *testing.T, ring *scene.Ring, joiner string) error {
	t.Helper()
	member := ring.NodeNames(t.Context())[0]
	if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
	}); err != nil {
		return err
	}
	if err := untilNode(t, ring, joiner, "it is on its way into the ring",
		func(n *v1alpha1.CassandraNode) bool { return strings.Contains(n.Status.Message, "JOINING") }); err != nil {
		return err
	}
	return ring.Sees(t.Context(), member, func(members []string) bool {
		return slices.ContainsFunc(members, func(m string) bool { return strings.HasPrefix(m, "UJ ") })
	})
}

// untilNode waits until a node's record is so.
func untilNode(t *testing.T, ring *scene.Ring, node, what string, is func(*v1alpha1.CassandraNode) bool) error {
	t.Helper()
	return ring.Until(t.Context(), growth, what, func(now follow.Sight) error {
		for _, n := range now.Nodes(ring.Name) {
			if n.Name == node && is(&n) {
				return nil
			} else if n.Name == node {
				return fmt.Errorf("%s", follow.Phase(&n))
			}
		}
		return fmt.Errorf("node %s has no record", node)
	})
}

// sayPauses says how long it took from the end of each join to the begin of the next, in the whole
// seconds of the status.
func sayPauses(t *testing.T, ring *scene.Ring) {
	t.Helper()
	c, _ := ring.Now(t.Context()).Cluster(ring.Name)
	joins := slices.DeleteFunc(slices.Clone(c.Status.History),
		func(s v1alpha1.StepRecord) bool { return s.Step != "JoinNode" })
	slices.SortFunc(joins, func(a, b v1alpha1.StepRecord) int { return a.StartedAt.Compare(b.StartedAt.Time) })
	for i := 1; i < len(joins); i++ {
		t.Logf("%s took %s, and %s began %s later", joins[i-1].Message,
			joins[i-1].FinishedAt.Sub(joins[i-1].StartedAt.Time), joins[i].Message,
			joins[i].StartedAt.Sub(joins[i-1].FinishedAt.Time))
	}
}

// TestOneToThree: a single node becomes a ring of three, with three replicas of the system
// keyspaces.
func TestOneToThree(t *testing.T) {
	onlyInFull(t)
	s := open(t, "e2e-one-to-three")
	sample := sampleOf(t, "one-node.yaml")
	sample.Spec.Node.Placement = &v1alpha1.Placement{HostAntiAffinity: v1alpha1.HostAntiAffinityNone}
	var ring *scene.Ring
	took(t, "one node serves", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.One) })
	before := identities(t, ring)
	grow(t, ring, "two nodes more", 3, func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].NodesPerRack, s.Datacenters[0].PlannedReplicationFactor = 3, 3
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantSystemKeyspaces(t, ring, map[string]string{"dc1": "3"})
	wantHistory(t, ring, "JoinNode", "JoinNode", "RaiseSystemKeyspaces", "Cleanup")
	sayPauses(t, ring)
}

// TestRackAdded: two nodes of a rack that the ring did not have join one after the other.
func TestRackAdded(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-rack")
	before := identities(t, ring)
	grow(t, ring, "a rack more", 5, func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks = append(s.Datacenters[0].Racks, v1alpha1.Rack{Name: "r4", Nodes: ptr(int32(2))})
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestDatacenterAdded: a datacenter is added to a ring with data, which is copied to it before
// client traffic opens: they find all rows then, although a node of the source lacks them, from
// which some may have been copied.
func TestDatacenterAdded(t *testing.T) {
	onlyInFull(t)
	ring := emptyForGrowth(t, "e2e-datacenter")
	took(t, "rows are written of which one node knows nothing",
		func() error { return ring.FillWithout(t.Context(), gocql.Quorum, ring.NodeNames(t.Context())[1]) })
	before := identities(t, ring)
	grow(t, ring, "a datacenter more", 6, addDatacenter)
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantSystemKeyspaces(t, ring, map[string]string{"dc1": "3", "dc2": "3"})
	for _, n := range ring.Nodes(t.Context()) {
		if n.Spec.Datacenter == "dc2" {
			took(t, "node "+n.Name+" of the new datacenter has all rows",
				func() error { return ring.ReadThrough(t.Context(), n.Name, gocql.LocalQuorum) })
		}
	}
}

// onlyInFull skips a test that takes too long for every change.
func onlyInFull(t *testing.T) {
	t.Helper()
	if !*full {
		t.Skip("it takes too long for every change: see make e2e-full")
	}
}

// wantHistory fails if the cluster does not say that these steps have succeeded, the first one
// first.
func wantHistory(t *testing.T, ring *scene.Ring, steps ...string) {
	t.Helper()
	c, _ := ring.Now(t.Context()).Cluster(ring.Name)
	var got []string
	for _, s := range slices.Backward(c.Status.History) {
		if slices.Contains(steps, s.Step) {
			got = append(got, s.Step+" "+string(s.Result))
		}
	}
	var want []string
	for _, s := range steps {
		want = append(want, s+" "+string(v1alpha1.StepSucceeded))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history has %v, want %v", got, want)
	}
}

// grow changes the spec of a ring while a client writes, and waits until so many nodes serve and
// nothing is left to do.
func grow(t *testing.T, ring *scene.Ring, what string, nodes int, change func(*v1alpha1.CassandraClusterSpec)) {
	t.Helper()
	while(t, ring, servedThroughout, what, func() error {
		if err := ring.Edit(t.Context(), change); err != nil {
			return err
		}
		return grown(t, ring, nodes)
	})
}

// addDatacenter adds a datacenter that gets the keyspace of the client.
func addDatacenter(s *v1alpha1.CassandraClusterSpec) {
	dc := s.Datacenters[0].DeepCopy()
	dc.Name = "dc2"
	dc.Extend = &v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: scene.Keyspace}},
		LocalConsistencyOnly: true}
	// Six nodes on one host do not end the Paxos repairs of three rebuilds in Cassandra's time.
	dc.Node = &v1alpha1.NodeTemplate{}
	dc.Node.CassandraYaml = v1alpha1.Settings{"skip_paxos_repair_on_topology_change": {Raw: []byte("true")}}
	s.Datacenters = append(s.Datacenters, *dc)
}

// grown waits until so many nodes serve and nothing is left to do.
func grown(t *testing.T, ring *scene.Ring, nodes int) error {
	t.Helper()
	return grownWithin(t, ring, nodes, growth)
}

func grownWithin(t *testing.T, ring *scene.Ring, nodes int, limit time.Duration) error {
	t.Helper()
	return ring.Until(t.Context(), limit, fmt.Sprintf("%d nodes serve, and nothing is left to do", nodes),
		func(now follow.Sight) error {
			c, found := now.Cluster(ring.Name)
			switch {
			case !found || c.Status.ObservedGeneration != c.Generation:
				return fmt.Errorf("the operator has not looked at it yet")
			case c.Status.Step != nil:
				return fmt.Errorf("%s: %s", c.Status.Step.Name, c.Status.Step.Message)
			case int(c.Status.ReadyNodes) != nodes:
				return fmt.Errorf("%d of %d nodes serve", c.Status.ReadyNodes, nodes)
			}
			return nil
		})
}

// growth bounds a join with little data: Cassandra waits for 30 s to see the others, and a host of
// two cores starts a JVM in half a minute.
const growth = 8 * time.Minute

func ptr[T any](v T) *T { return &v }
