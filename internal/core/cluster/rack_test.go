package cluster

import (
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

const inR4, alsoInR4 = "orders-dc1-r4-0", "orders-dc1-r4-1"

// fourRacks serve, the last of which has two nodes and a setting of its own.
func fourRacks(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1, 2))
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[3].Node = &v1alpha1.NodeSettings{
			CassandraYaml: v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}},
		}
	})
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.settle()
	return w
}

// racks that stay of the first datacenter: the first so many.
func racks(n int) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks = s.Datacenters[0].Racks[:n:n] }
}

// leaversUntilIdle are the nodes that leave and join, in their order, until nothing is left to do.
func (w *world) leaversUntilIdle() []string {
	var out []string
	for range 300 {
		made := w.pass()
		if s := w.snapshot.Ledger.Step; s != nil && (s.Kind == ledger.LeaveNode || s.Kind == ledger.JoinNode) {
			out = append(out, string(s.Kind)+" "+s.Nodes[0])
		}
		if len(made.Writes) == 0 {
			break
		}
	}
	return slices.Compact(out)
}

// Until it is their turn the nodes stay as their records have them.
func TestARackLeaves(t *testing.T) {
	w := fourRacks(t)
	w.change(racks(3))
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.LeaveNode })
	for _, name := range []string{inR4, alsoInR4} {
		if c := w.snapshot.Nodes[name].Record.Spec.Configuration; string(c.CassandraYaml["concurrent_reads"].Raw) != "16" {
			t.Errorf("node %s lost the settings of its rack: %v", name, c.CassandraYaml)
		}
	}
	want := []string{"LeaveNode " + alsoInR4, "LeaveNode " + inR4}
	if got := w.leaversUntilIdle(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w.wantNames(first, second, third)
	w.wantOpen()
	if w.snapshot.Nodes[inR4].Pod != nil || len(w.snapshot.Ledger.Members) != 3 {
		t.Errorf("%s", ledgerInWords(w.snapshot.Ledger))
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks = append(s.Datacenters[0].Racks, v1alpha1.Rack{Name: "r4"})
	})
	delete(w.snapshot.Nodes[inR4].Claims, v1alpha1.VolumeData) // it does not join with what has left
	w.settle()
	w.wantNames(first, second, third, inR4)
}

func TestWhatKeepsARackFromLeaving(t *testing.T) {
	fewerRacks := func(w *world) {
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].AllowFewerRacks = true })
	}
	for name, c := range map[string]struct {
		of     func(*testing.T) *world
		change func(*world)
		stay   int
		reason v1alpha1.Reason
		words  []string
	}{
		"too few racks": {six, func(*world) {}, 2, v1alpha1.BlockedTooFewRacks,
			[]string{"keyspace shop has 3 replicas in datacenter dc1", "allowFewerRacks",
				"2 racks left once node orders-dc1-r3-0 has left", "add a datacenter"}},
		"too few racks for the system keyspaces": {six, func(w *world) {
			w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=3}"})
		}, 2, v1alpha1.BlockedTooFewRacks, []string{"keyspace system_auth has 3 replicas", "2 racks left"}},
		"too many replicas": {fourRacks, fewerRacks, 2, v1alpha1.BlockedTooManyReplicas,
			[]string{"keyspace shop has 3 replicas", "2 nodes left"}},
		"the last node of the rack has no room": {six, func(w *world) { fewerRacks(w); w.fill(4 << 30) }, 2,
			v1alpha1.BlockedTooLittleDisk, []string{"once node orders-dc1-r3-1 has left, node orders-dc1-r3-0 would " +
				"fill 8.0Gi", "of keyspace shop", "add a datacenter"}},
		"those that stay have no room": {six, func(w *world) {
			fewerRacks(w)
			w.fill(5 << 30)
			w.snapshot.Nodes["orders-dc1-r3-0"].Agent.Space.Data = 1 << 20
			w.snapshot.Nodes["orders-dc1-r3-0"].Agent.Space.Free = 10 << 30
		}, 2, v1alpha1.BlockedTooLittleDisk,
			[]string{"once node orders-dc1-r3-0 has left, node orders-dc1-r1-0 would"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.of(t)
			c.change(w)
			w.change(racks(c.stay))
			members := len(w.snapshot.Ledger.Members)
			made := w.settle()
			i := slices.IndexFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool { return b.Reason == c.reason })
			if i < 0 || made.Stalled == nil || w.snapshot.Ledger.Step != nil || len(w.snapshot.Ledger.Members) != members {
				t.Fatalf("not blocked by %s:\n%s", c.reason, made)
			}
			for _, word := range c.words {
				if !strings.Contains(made.Blocked[i].Message, word) {
					t.Errorf("message %q does not say %q", made.Blocked[i].Message, word)
				}
			}
		})
	}
}

// Where fewer racks are allowed, or keyspaces need no more, a rack leaves that the others follow.
func TestFewerRacks(t *testing.T) {
	for name, change := range map[string]func(*world){
		"allowed": func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].AllowFewerRacks = true })
		},
		"enough": func(w *world) {
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=2}",
				"old": "SimpleStrategy {replication_factor=3}"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := six(t)
			change(w)
			w.change(racks(2))
			want := []string{"LeaveNode orders-dc1-r3-1", "LeaveNode orders-dc1-r3-0"}
			if got := w.leaversUntilIdle(); !slices.Equal(got, want) {
				t.Errorf("%q, want %q:\n%s", got, want, next(w))
			}
		})
	}
}

// Two racks that go lose their nodes in turn.
func TestTwoRacksLeave(t *testing.T) {
	w := six(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=1}"})
	w.change(racks(1))
	want := []string{"LeaveNode orders-dc1-r2-1", "LeaveNode orders-dc1-r3-1", "LeaveNode orders-dc1-r2-0",
		"LeaveNode orders-dc1-r3-0"}
	if got := w.leaversUntilIdle(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q:\n%s", got, want, next(w))
	}
}

// undecided has agents begin nothing, and give up what they are not to do any more.
func (w *world) undecided() {
	w.operate = func(_ *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if o.Withdraw == nil {
			return nil
		}
		return []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationWithdrawn}}
	}
}

// A rack that is put back stays before its nodes are leaving.
func TestARackIsPutBack(t *testing.T) {
	w := fourRacks(t)
	had := slices.Clone(w.snapshot.Cluster.Spec.Datacenters[0].Racks)
	w.undecided()
	w.change(racks(3))
	w.until(func(s *ledger.Step) bool {
		return s.Kind == ledger.LeaveNode && len(w.snapshot.Nodes[alsoInR4].Record.Spec.Operations) > 0
	})
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks = had })
	w.settle()
	w.wantNames(first, second, third, inR4, alsoInR4)
	w.wantOpen()
	if !slices.Contains(w.events, "LeaveTakenBack") || slices.Contains(w.events, "NodeLeft") {
		t.Errorf("events %v", w.events)
	}
}

// A rack with another name is another one: its nodes join first, so that there are never too few
// racks.
func TestARackIsRenamed(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[2].Name = "r4" })
	want := []string{"JoinNode " + inR4, "LeaveNode " + third}
	if got := w.leaversUntilIdle(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q:\n%s", got, want, next(w))
	}
	w.wantNames(first, second, inR4)
}

// Whatever was lost while a rack leaves, its nodes leave in the end.
func TestWhatIsLostWhileARackLeaves(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"the ledger":          func(w *world) { w.snapshot.Ledger = nil },
		"the leaver's record": func(w *world) { w.snapshot.Nodes[alsoInR4].Record = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := fourRacks(t)
			w.change(racks(3))
			w.until(func(s *ledger.Step) bool { return s.Kind == ledger.LeaveNode })
			lose(w)
			w.agents()
			w.settle()
			w.wantNames(first, second, third)
			if l := w.snapshot.Ledger; len(l.Members) != 3 || l.Step != nil {
				t.Errorf("%s\n%s", ledgerInWords(l), next(w))
			}
		})
	}
}

// Without the record of its last node nobody knows the settings of a rack. The others do not wait
// for it.
func TestTheLastRecordOfARackThatLeaves(t *testing.T) {
	w := fourRacks(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[3].Nodes = nil })
	w.settle()
	had := slices.Clone(w.snapshot.Cluster.Spec.Datacenters[0].Racks)
	pod := w.snapshot.Nodes[inR4].Pod
	w.snapshot.Nodes[inR4].Record, w.snapshot.Nodes[first].Record = nil, nil
	w.held = map[string]v1alpha1.DiskState{inR4: v1alpha1.DiskMember, first: v1alpha1.DiskMember}
	w.change(racks(3))
	made := w.settle()
	wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, "the record of "+inR4+" is gone", "put its rack back")
	w.wantNames(first, second, third)
	if w.snapshot.Nodes[inR4].Pod != pod || w.snapshot.Ledger.Members[inR4] == "" {
		t.Errorf("its pod is touched, or it is forgotten:\n%s", made)
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks = had })
	w.settle()
	w.wantNames(first, second, third, inR4)
	w.change(racks(3))
	w.settle()
	w.wantNames(first, second, third)
}
