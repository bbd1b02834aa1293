package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

func TestARingGrowsByOneNodeAtATime(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.change(nodesPerRack(2))
	open, opened := "", 0
	for range 100 {
		made := w.pass()
		if made.Stalled != nil {
			t.Fatalf("stalled:\n%s", made)
		}
		joining := 0
		for _, n := range w.snapshot.Records() {
			if j := n.Record.Spec.Join; j != nil {
				joining++
				if j.Mode != v1alpha1.JoinBootstrap || len(j.Tokens) != 4 {
					t.Fatalf("ticket %+v", j)
				}
			}
		}
		if joining > 1 {
			t.Fatalf("%d nodes have a ticket at the same time", joining)
		}
		if s := w.snapshot.Ledger.Step; s != nil && s.Kind == ledger.JoinNode && s.ID != open {
			open, opened = s.ID, opened+1
			if budget := w.snapshot.Shared.Budgets["orders-dc1"]; budget.Spec.MinAvailable.IntValue() != 6 {
				t.Errorf("a node joins while %s pods of 6 have to stay", budget.Spec.MinAvailable)
			}
		}
		if len(made.Writes) == 0 {
			break
		}
	}
	w.wantOpen()
	if len(w.snapshot.Ledger.Members) != 6 || opened != 3 {
		t.Errorf("%d members after %d joins", len(w.snapshot.Ledger.Members), opened)
	}
	if len(w.snapshot.Ledger.Cleanup) > 0 || !slices.Contains(w.events, "Cleanup") {
		t.Errorf("to clean up: %v, events %v", w.snapshot.Ledger.Cleanup, w.events)
	}
	if budget := w.snapshot.Shared.Budgets["orders-dc1"]; budget.Spec.MinAvailable.IntValue() != 5 {
		t.Errorf("%s pods of 6 have to stay in the end", budget.Spec.MinAvailable)
	}
}

// Nobody joins as long as anything speaks against it.
func TestWhatKeepsANodeFromJoining(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		guard  v1alpha1.Reason
	}{
		"a member is away":     {func(w *world) { w.absent[first] = true }, "MemberDown"},
		"the newcomer is away": {func(w *world) { w.absent["orders-dc1-r1-1"] = true }, "JoiningNodeNotReady"},
		"its disk is not empty": {func(w *world) {
			w.held = map[string]v1alpha1.DiskState{"orders-dc1-r1-1": v1alpha1.DiskJoining}
		}, "JoiningDiskNotEmpty"},
		"a member that is nobody": {func(w *world) {
			w.strangers = []facts.Endpoint{{HostID: "x", Address: "10.9.9.9", Status: facts.StatusNormal, Live: true,
				Tokens: []int64{77}}}
		}, "UnknownRingMember"},
		"ranges are on their way": {func(w *world) { w.pending = 7 }, "TopologyChangeInProgress"},
		"a change is under way": {func(w *world) {
			w.strangers = []facts.Endpoint{{HostID: "x", Address: "10.9.9.9", Status: facts.StatusBootstrap,
				Live: true}}
		}, "TopologyChangeInProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
			c.change(w)
			w.agents()
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
			made := w.settle()
			if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool { return b.Reason == c.guard }) {
				t.Errorf("want %s:\n%s", c.guard, made)
			}
			if w.snapshot.Ledger.Step != nil || len(w.snapshot.Ledger.Members) != 3 {
				t.Errorf("step %+v, members %v", w.snapshot.Ledger.Step, w.snapshot.Ledger.Members)
			}
			if budget := w.snapshot.Shared.Budgets["orders-dc1"]; budget.Spec.MinAvailable.IntValue() != 2 {
				t.Errorf("%s pods have to stay while nobody joins", budget.Spec.MinAvailable)
			}
		})
	}
}

func TestAJoinIsGivenUpByLoweringTheSize(t *testing.T) {
	for name, late := range map[string]bool{"before its ticket": false, "with its ticket": true} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.late[newcomer], w.absent[newcomer] = late, !late
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
			made := w.settle()
			if s := w.snapshot.Ledger.Step; late != (s != nil) {
				t.Fatalf("step %+v:\n%s", s, made)
			}
			if late && !slices.ContainsFunc(made.Notices,
				func(b v1alpha1.Notice) bool { return b.Reason == "JoinFailed" }) {
				t.Errorf("nobody says that the node does not come:\n%s", made)
			}
			w.absent[three[1]] = true
			w.agents()
			if made = w.settle(); late && !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
				return b.Reason == v1alpha1.BlockedMemberDown && slices.Equal(b.Nodes, three[1:2])
			}) {
				t.Errorf("nobody says whom it could stream from if it were up:\n%s", made)
			}
			delete(w.absent, three[1])
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(1)) })
			w.settle()
			w.wantNames(three...)
			w.wantOpen()
			if w.snapshot.Nodes[newcomer].Pod != nil {
				t.Error("its pod is still there")
			}
		})
	}
}

// A datacenter whose nodes do not come is given up by taking it, or some of its nodes, out of the
// spec again. What has joined stays: a ring does not shrink yet.
// A bound claim of a node that never joined stays, and is named until it is deleted.
func TestAClaimThatNobodyUsesIsNamed(t *testing.T) {
	w := formed(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	w.absent[newcomer] = true // it never gets its ticket
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = nil })
	named := func() bool {
		return slices.ContainsFunc(w.settle().Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeClaimUnused && slices.Equal(n.Nodes, []string{newcomer}) &&
				strings.Contains(n.Message, "delete persistentvolumeclaim --namespace shop data-"+newcomer)
		})
	}
	if n := w.snapshot.Nodes[newcomer]; !named() || !n.Claims["data"].Bound() {
		t.Errorf("the claim is not named:\n%s", next(w))
	}
	delete(w.snapshot.Nodes, newcomer)
	if named() {
		t.Error("a claim that is gone is named")
	}
}

func TestADatacenterIsGivenUp(t *testing.T) {
	nodes := []string{"orders-dc2-r1-0", "orders-dc2-r2-0"}
	take := func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] }
	for name, c := range map[string]struct {
		late   []string
		change func(*v1alpha1.CassandraClusterSpec)
		left   []string
		formed bool
		stall  string
	}{
		"nobody has joined":          {nodes, take, three, false, ""},
		"one has joined, and leaves": {nodes[1:], take, three, false, ""},
		"the rack of the one that is late": {nodes[1:],
			func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Racks = s.Datacenters[1].Racks[:1] },
			append(slices.Clone(three), nodes[0]), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			for _, node := range c.late {
				w.late[node] = true
			}
			w.change(func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters = append(s.Datacenters, added("dc2", 1, 1))
			})
			made := w.settle()
			if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageTickets {
				t.Fatalf("step %+v:\n%s", s, made)
			}
			w.change(c.change)
			made = w.settle()
			if c.stall == "" {
				w.wantNames(c.left...)
				w.wantOpen()
			} else {
				wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, c.stall)
			}
			l := w.snapshot.Ledger
			if l.IsFormed("dc2") != c.formed || len(l.Members) != len(c.left) || l.Step != nil {
				t.Errorf("%s\n%s", ledgerInWords(l), made)
			}
		})
	}
}

// A node of a new datacenter that does not come in time is left out for that, and not because the
// spec had lost it.
func TestALatecomerOfADatacenterIsLeftOutForWhatItDid(t *testing.T) {
	const late = "orders-dc2-r2-0"
	w := formed(t)
	w.late[late] = true
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1, 1)) })
	w.settle()
	w.now = w.now.Add(stragglerTimeout)
	said := ""
	for range 60 {
		for _, write := range w.pass().Writes {
			said += write.Why + "\n"
		}
	}
	if !strings.Contains(said, "did not join in time") || strings.Contains(said, "the spec no longer has the node") {
		t.Errorf("it says:\n%s", said)
	}
	if l := w.snapshot.Ledger; !l.IsFormed("dc2") || l.Members[late] != "" && !slices.Contains(l.Excluded, late) {
		t.Errorf("%s, left behind %v", ledgerInWords(l), l.Excluded)
	}
}

// An agent acknowledges nothing before the Cassandra container runs. Where that does not come the
// pod goes, and with it the ticket.
func TestAJoinIsGivenUpWhoseContainerNeverStarts(t *testing.T) {
	for name, c := range map[string]struct {
		newcomers []string
		grow      func(*v1alpha1.CassandraClusterSpec)
		shrink    func(*v1alpha1.CassandraClusterSpec)
	}{
		"a node": {[]string{"orders-dc1-r1-1"}, func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
		},
			func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(1)) }},
		"a datacenter": {[]string{"orders-dc2-r1-0", "orders-dc2-r2-0"},
			func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1, 1)) },
			func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] }},
	} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, silent %v", name, silent), func(t *testing.T) {
				w := formed(t)
				for _, newcomer := range c.newcomers {
					w.late[newcomer] = true
				}
				w.change(c.grow)
				w.settle()
				for _, newcomer := range c.newcomers {
					n := w.snapshot.Nodes[newcomer]
					n.Record.Status.Restarts = nil
					n.Pod.Status.Phase = corev1.PodPending
					n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: layout.CassandraContainer,
						State: corev1.ContainerState{
							Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"},
						}}}
					w.withoutInit[newcomer], w.absent[newcomer] = true, silent
				}
				w.agents()
				w.change(c.shrink)
				made := w.settle()
				if w.snapshot.Ledger.Step != nil {
					t.Errorf("the step goes on:\n%s", made)
				}
				w.wantNames(three...)
				w.wantOpen()
			})
		}
	}
}

// Records that are let go when the ledger is lost are gone when it is rebuilt.
func TestALedgerLostWhileRecordsAreLetGoIsRebuilt(t *testing.T) {
	w := formed(t)
	for _, newcomer := range []string{"orders-dc2-r1-0", "orders-dc2-r2-0"} {
		w.late[newcomer] = true
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1, 1)) })
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] })
	for range 60 {
		if n := w.snapshot.Nodes["orders-dc2-r1-0"]; n.Record.DeletionTimestamp != nil {
			break
		}
		w.pass()
	}
	w.snapshot.Ledger = nil
	made := w.settle()
	if w.snapshot.Ledger == nil {
		t.Fatalf("not rebuilt:\n%s", made)
	}
	w.wantNames(three...)
	w.wantOpen()
	clear(w.late)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1, 1)) })
	w.settle()
	w.wantOpen()
	if l := w.snapshot.Ledger; len(l.Excluded) > 0 || len(l.Members) != 5 {
		t.Errorf("%s, left behind %v", ledgerInWords(l), l.Excluded)
	}
}

func TestARackThatWouldHoldTooMuchIsRefused(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 3, 3))
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks = append(s.Datacenters[0].Racks, v1alpha1.Rack{Name: "r3", Nodes: ptr(int32(1))})
	})
	made := w.settle()
	wantStalled(t, made, v1alpha1.ReasonInvalidSpec, "rack r3", "1 of 7 nodes")
}

func TestANodeThatDoesNotFitIsRefused(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.load = 18 << 30
	w.agents()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	made := w.settle()
	wantStalled(t, made, v1alpha1.ReasonInvalidSpec, "orders-dc1-r1-1", "data volume of 10Gi")
}

// In each datacenter by its own factor.
func TestFromOneNodeToThreeTheSystemKeyspacesAreRaised(t *testing.T) {
	second := datacenter("dc2", 1, 1, 1)
	second.PlannedReplicationFactor = 2
	w := newWorld(t, datacenter("dc1", 1), second)
	w.settle()
	w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=1, dc2=2}"})
	w.change(nodesPerRack(3))
	var kinds []v1alpha1.OperationType
	for range 200 {
		made := w.pass()
		for _, write := range made.Writes {
			if n, ok := write.Object.(*v1alpha1.CassandraNode); ok && write.Verb == plan.Apply &&
				len(n.Spec.Operations) > 0 && strings.Contains(write.Why, "operation ") {
				kinds = append(kinds, n.Spec.Operations[0].Type)
				if r := n.Spec.Operations[0].Arguments; r != nil && r.Replication != nil {
					if !maps.Equal(r.Replication, map[string]int32{"dc1": 3, "dc2": 2}) {
						t.Errorf("they get %v", r.Replication)
					}
					w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=3, dc2=2}"})
				}
			}
		}
		if len(made.Writes) == 0 {
			break
		}
		w.now = w.now.Add(time.Second)
	}
	want := []v1alpha1.OperationType{v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationRepair,
		v1alpha1.OperationRepair, v1alpha1.OperationRepair}
	if len(kinds) < 4 || !slices.Equal(kinds[:4], want) {
		t.Errorf("operations %v", kinds)
	}
	w.wantOpen()
}

func TestADatacenterIsAdded(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		dc := added("dc2", 2, 2, 1)
		dc.Extend.Keyspaces = []v1alpha1.ExtendedKeyspace{{Name: "shop"}}
		s.Datacenters = append(s.Datacenters, dc)
	})
	var did []string
	for range 100 {
		made := w.pass()
		if made.Stalled != nil {
			t.Fatalf("stalled:\n%s", made)
		}
		working := map[v1alpha1.OperationType]map[string]int{}
		for _, write := range made.Writes {
			n, ok := write.Object.(*v1alpha1.CassandraNode)
			if !ok || write.Verb != plan.Apply || len(n.Spec.Operations) == 0 ||
				!strings.Contains(write.Why, "operation ") {
				continue
			}
			o := n.Spec.Operations[0]
			if working[o.Type] == nil {
				working[o.Type] = map[string]int{}
				did = append(did, string(o.Type))
			}
			rack := n.Spec.Datacenter + "/" + n.Spec.Rack
			if working[o.Type][rack]++; working[o.Type][rack] > 1 {
				t.Errorf("two nodes of rack %s do %s at a time", rack, o.Type)
			}
			inside := n.Spec.Datacenter == "dc2"
			switch o.Type {
			case v1alpha1.OperationRepair: // every member, of the ranges that are its own first
				if !o.Arguments.PrimaryRange || !o.Arguments.Full {
					t.Errorf("node %s repairs %+v", n.Name, o.Arguments)
				}
			case v1alpha1.OperationRebuild:
				if !inside {
					t.Errorf("node %s does %s", n.Name, o.Type)
				}
			default:
				if inside {
					t.Errorf("node %s does %s", n.Name, o.Type)
				}
			}
			if o.Type == v1alpha1.OperationAlterKeyspaces &&
				(len(o.Arguments.KeyspaceReplication) != 1 ||
					o.Arguments.KeyspaceReplication[0].Replication["dc2"] != 3) {
				t.Errorf("extends %+v", o.Arguments.KeyspaceReplication)
			}
			extended := []string{"shop"}
			if o.Type == v1alpha1.OperationRepair { // alone brings the system keyspaces
				extended = append(extended, "system_auth", "system_distributed", "system_traces")
			}
			if inside && !extendedEverywhere(o.Arguments.KeyspaceReplication, 3, extended...) {
				t.Errorf("%s by a schema that has at least %+v", o.Type, o.Arguments.KeyspaceReplication)
			}
		}
		if s := w.snapshot.Ledger.Step; s != nil {
			for dc, pods := range map[string]int{"orders-dc1": 3, "orders-dc2": 5} {
				if least := w.snapshot.Shared.Budgets[dc].Spec.MinAvailable.IntValue(); least < pods {
					t.Errorf("a pod of %s can be evicted: %d of %d have to stay", dc, least, pods)
				}
			}
		}
		if s := w.snapshot.Ledger.Step; s != nil && s.Stage != ledger.StageOpen {
			for _, n := range w.snapshot.Records() {
				if n.Record.Spec.Datacenter == "dc2" && n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen {
					t.Fatalf("node %s is open in stage %s", n.Name, s.Stage)
				}
			}
		}
		if len(made.Writes) == 0 {
			break
		}
	}
	if want := []string{"AlterSystemKeyspaces", "AlterKeyspaces", "Rebuild", "Rebuild", "Repair",
		"Repair", "Repair", "Repair"}; !slices.Equal(did, want) {
		t.Errorf("did %v, want %v", did, want)
	}
	w.wantOpen()
	if l := w.snapshot.Ledger; len(l.Members) != 8 || !l.IsFormed("dc2") || l.Replication["dc2"] != 3 {
		t.Errorf("%s", ledgerInWords(l))
	}
}

// Each keyspace gets as many replicas as its entry says, or else as the datacenter plans; all of
// them are those that exist when the step is opened.
func TestKeyspacesAreExtendedByTheirOwnFactors(t *testing.T) {
	for name, c := range map[string]struct {
		extend v1alpha1.Extend
		want   map[string]int32
	}{
		"none": {v1alpha1.Extend{}, map[string]int32{}},
		"by name": {v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "shop"},
			{Name: "carts", ReplicationFactor: 1}}}, map[string]int32{"shop": 2, "carts": 1}},
		"all": {v1alpha1.Extend{All: true}, map[string]int32{"shop": 2, "carts": 2}},
		"all, one fewer": {v1alpha1.Extend{All: true,
			Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "carts", ReplicationFactor: 1}}},
			map[string]int32{"shop": 2, "carts": 1}},
		"too many": {v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "shop", ReplicationFactor: 9}}},
			map[string]int32{"shop": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{
				"shop": "NetworkTopologyStrategy {dc1=3}", "carts": "NetworkTopologyStrategy {dc1=2}",
				"local": "LocalStrategy {}", "system_auth": "NetworkTopologyStrategy {dc1=3}",
			})
			w.change(func(s *v1alpha1.CassandraClusterSpec) {
				dc := added("dc2", 2, 2)
				dc.PlannedReplicationFactor, c.extend.LocalConsistencyOnly = 2, true
				dc.Extend = &c.extend
				s.Datacenters = append(s.Datacenters, dc)
			})
			w.until(func(s *ledger.Step) bool { return s.Kind == ledger.AddDatacenter })
			w.replicated(map[string]string{
				"shop": "NetworkTopologyStrategy {dc1=3}", "carts": "NetworkTopologyStrategy {dc1=2}",
				"later": "NetworkTopologyStrategy {dc1=3}", "system_auth": "NetworkTopologyStrategy {dc1=3}",
			})
			got, system := map[string]int32{}, map[string]int32(nil)
			for range 100 {
				made := w.pass()
				if made.Stalled != nil {
					t.Fatalf("stalled:\n%s", made)
				}
				for _, write := range made.Writes {
					n, ok := write.Object.(*v1alpha1.CassandraNode)
					if !ok || len(n.Spec.Operations) == 0 {
						continue
					}
					switch o := n.Spec.Operations[0]; o.Type {
					case v1alpha1.OperationAlterKeyspaces:
						for _, k := range o.Arguments.KeyspaceReplication {
							got[k.Keyspace] = k.Replication["dc2"]
						}
					case v1alpha1.OperationAlterSystemKeyspaces: // each datacenter by its own factor
						if system = o.Arguments.Replication; !maps.Equal(system, map[string]int32{"dc1": 3, "dc2": 2}) {
							t.Errorf("the system keyspaces get %v", system)
						}
					default:
					}
				}
				if len(made.Writes) == 0 {
					break
				}
			}
			w.wantOpen()
			if !maps.Equal(got, c.want) || system == nil {
				t.Errorf("extends %v, want %v; the system keyspaces get %v", got, c.want, system)
			}
		})
	}
}

// extendedEverywhere says that exactly these keyspaces have so many replicas in dc2, at least.
func extendedEverywhere(least []v1alpha1.KeyspaceReplication, replicas int32, keyspaces ...string) bool {
	return slices.EqualFunc(least, keyspaces, func(k v1alpha1.KeyspaceReplication, keyspace string) bool {
		return k.Keyspace == keyspace && maps.Equal(k.Replication, map[string]int32{"dc2": replicas})
	})
}

func TestWhatKeepsADatacenterOut(t *testing.T) {
	for name, c := range map[string]struct {
		keyspaces map[string]string
		change    func(*v1alpha1.Datacenter)
		words     string
	}{
		"clients may read anywhere": {nil, func(dc *v1alpha1.Datacenter) { dc.Extend = nil },
			"extend.localConsistencyOnly"},
		"a keyspace is there already": {map[string]string{"shop": "NetworkTopologyStrategy {dc1=3, dc2=1}"},
			func(*v1alpha1.Datacenter) {}, "keyspace shop already has replicas"},
		"a keyspace without datacenter": {map[string]string{"shop": "SimpleStrategy {replication_factor=1}"},
			func(*v1alpha1.Datacenter) {}, "alter it to NetworkTopologyStrategy"},
		"no such keyspace": {map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"},
			func(dc *v1alpha1.Datacenter) { dc.Extend.Keyspaces = []v1alpha1.ExtendedKeyspace{{Name: "x"}} },
			"there is no keyspace x"},
		"nothing to copy": {map[string]string{"shop": "NetworkTopologyStrategy {dc9=1}"},
			func(dc *v1alpha1.Datacenter) { dc.Extend.Keyspaces = []v1alpha1.ExtendedKeyspace{{Name: "shop"}} },
			"keyspace shop has no replicas in datacenter dc1"},
		"nothing of one to copy, of all": {map[string]string{"shop": "NetworkTopologyStrategy {dc9=1}"},
			func(dc *v1alpha1.Datacenter) { dc.Extend.All = true },
			"keyspace shop has no replicas in datacenter dc1"},
		"no such source": {nil, func(dc *v1alpha1.Datacenter) { dc.Extend.From = "dc9" }, `extend.from is "dc9"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(c.keyspaces)
			w.change(func(s *v1alpha1.CassandraClusterSpec) {
				dc := added("dc2", 1)
				c.change(&dc)
				s.Datacenters = append(s.Datacenters, dc)
			})
			wantStalled(t, w.settle(), v1alpha1.ReasonInvalidSpec, c.words)
			if w.snapshot.Ledger.Step != nil {
				t.Errorf("step %s was opened", w.snapshot.Ledger.Step.Kind)
			}
		})
	}
}

// A ledger that is lost while a ring grows is rebuilt so that what was begun goes on, by the same
// tickets as far as the records have them.
func TestALostLedgerDoesNotEndWhatWasBegun(t *testing.T) {
	both := func(w *world) {
		w.snapshot.Ledger = nil
		for _, n := range w.snapshot.Nodes {
			n.Record = nil
		}
	}
	for name, lose := range map[string]func(*world){
		"the ledger":         func(w *world) { w.snapshot.Ledger = nil },
		"ledger and records": both,
		"both, and a member has never let clients in": func(w *world) {
			both(w)
			w.snapshot.Nodes[third].Agent.Traffic, w.snapshot.Nodes[third].Agent.TrafficOpened = v1alpha1.TrafficClosed,
				false
		},
	} {
		t.Run(name, func(t *testing.T) { whatWasBegunGoesOn(t, lose) })
	}
}

func whatWasBegunGoesOn(t *testing.T, lose func(*world)) {
	t.Helper()
	adding := func(s *v1alpha1.CassandraClusterSpec) {
		dc := added("dc2", 1, 1)
		dc.Extend.Keyspaces = []v1alpha1.ExtendedKeyspace{{Name: "shop"}}
		s.Datacenters = append(s.Datacenters, dc)
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraClusterSpec)
		until  func(*ledger.Step) bool
	}{
		"a join": {nodesPerRack(2), func(s *ledger.Step) bool {
			return s.Kind == ledger.JoinNode && s.Stage == ledger.StageTickets
		}},
		"tickets of a datacenter":      {adding, func(s *ledger.Step) bool { return s.Stage == ledger.StageTickets }},
		"records of a datacenter":      {adding, func(s *ledger.Step) bool { return s.Stage == ledger.StageFormed }},
		"a datacenter that is rebuilt": {adding, inRebuild},
		"a clean-up":                   {nodesPerRack(2), func(s *ledger.Step) bool { return s.Kind == ledger.Cleanup }},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=3}",
				"shop": "NetworkTopologyStrategy {dc1=3}"})
			w.change(c.change)
			for i := 0; !slices.ContainsFunc(w.snapshot.Ledger.Open(), c.until); i++ {
				if w.pass(); i > 100 {
					t.Fatal("the step did not come")
				}
			}
			tickets := map[string]string{}
			for _, n := range w.snapshot.Records() {
				if n.Record.Spec.Join != nil {
					tickets[n.Name] = n.Record.Spec.Join.ID
				}
			}
			lose(w)
			rebuilds := 0
			for range 200 {
				made := w.pass()
				for _, write := range made.Writes {
					n, ok := write.Object.(*v1alpha1.CassandraNode)
					if !ok || write.Verb != plan.Apply {
						continue
					}
					if n.Spec.Join != nil && tickets[n.Name] != "" && n.Spec.Join.ID != tickets[n.Name] {
						t.Fatalf("node %s had ticket %s and gets %s", n.Name, tickets[n.Name], n.Spec.Join.ID)
					}
					if len(n.Spec.Operations) > 0 && n.Spec.Operations[0].Type == v1alpha1.OperationRebuild {
						rebuilds++
					}
					if n.Spec.Datacenter == "dc2" && n.Spec.ClientTraffic == v1alpha1.TrafficOpen && rebuilds < 2 {
						t.Fatalf("node %s opens before all nodes of its datacenter are rebuilt", n.Name)
					}
				}
				if len(made.Writes) == 0 {
					break
				}
			}
			w.wantOpen()
			if l := w.snapshot.Ledger; len(l.Members) != len(w.snapshot.Records()) {
				t.Errorf("%s", ledgerInWords(l))
			}
		})
	}
}

func inRebuild(s *ledger.Step) bool { return s.Stage == ledger.StageRebuild }

// A node whose record is away counts as one that is not rebuilt: its datacenter is not opened
// without it.
func TestNoNodeOfADatacenterIsForgottenWhileItsRecordIsAway(t *testing.T) {
	const lost = "orders-dc2-r2-0"
	w := formed(t)
	w.change(w.withShop(added("dc2", 1, 1)))
	w.until(inRebuild)
	n := w.snapshot.Nodes[lost]
	record := n.Record
	for range 5 {
		n.Record = nil
		for _, write := range Next(w.snapshot, w.now).Writes { // of which the creation of the record is late
			if write.Object == nil || write.Object.GetName() != lost {
				w.do(write)
			}
		}
		w.agents()
	}
	if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageRebuild {
		t.Fatalf("goes on without node %s: %+v", lost, s)
	}
	n.Record = record
	w.settle()
	w.wantOpen()
}

// A join that is given up is given up to its end, although the user wants the node again meanwhile:
// its ticket is worth nothing any more. Then it joins by another.
func TestAJoinThatIsWantedAgainBeginsAnew(t *testing.T) {
	size := func(n int32) func(*v1alpha1.CassandraClusterSpec) {
		return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(n) }
	}
	w := formed(t)
	w.late[newcomer], w.lateDisk = true, v1alpha1.DiskEmpty
	w.change(size(2))
	w.settle()
	first := w.snapshot.Ledger.Step.ID
	w.absent[newcomer] = true
	w.agents()
	w.change(size(1))
	w.pass()
	if j := w.snapshot.Nodes[newcomer].Record.Spec.Join; j == nil || j.Withdraw == nil {
		t.Fatalf("ticket %+v is not taken back", j)
	}
	w.change(size(2))
	clear(w.absent)
	clear(w.late)
	w.agents()
	w.settle()
	w.wantOpen()
	if l := w.snapshot.Ledger; l.Members[newcomer] == "" || l.Steps < 3 {
		t.Errorf("after step %s: %s", first, ledgerInWords(l))
	}
}

// The record of a node that is not wanted any more is not made again. Without a pod its ticket is
// nowhere, and the step is over.
func TestAJoinWhoseRecordIsGoneIsGivenUp(t *testing.T) {
	for name, pod := range map[string]bool{"with its pod": true, "without a pod": false} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.late[newcomer] = true
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
			w.settle()
			n := w.snapshot.Nodes[newcomer]
			n.Record = nil
			if !pod {
				n.Pod, n.Agent = nil, nil
			}
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(1)) })
			made := w.settle()
			if over := w.snapshot.Ledger.Step == nil; over == pod {
				t.Errorf("the step is over: %v\n%s", over, made)
			}
			if pod && !slices.ContainsFunc(made.Blocked,
				func(b v1alpha1.BlockedStep) bool { return b.Reason == "AbandonedPodStillRunning" }) {
				t.Errorf("nobody says what is waited for:\n%s", made)
			}
		})
	}
}

// What a datacenter gets is decided when it is added: an edit on the way neither opens it without a
// repair nor copies from elsewhere.
func TestWhatADatacenterGetsIsDecidedOnce(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.CassandraClusterSpec){
		"other keyspaces": func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Extend.Keyspaces = nil },
		"no extension":    func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Extend = nil },
		"another factor":  func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].PlannedReplicationFactor = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.change(w.withShop(added("dc2", 1, 1)))
			w.until(inRebuild)
			w.change(edit)
			repaired := 0
			for range 50 {
				made := w.pass()
				for _, write := range made.Writes {
					n, ok := write.Object.(*v1alpha1.CassandraNode)
					if ok && len(n.Spec.Operations) > 0 && n.Spec.Operations[0].Type == v1alpha1.OperationRepair &&
						slices.Contains(n.Spec.Operations[0].Arguments.Keyspaces, "shop") {
						repaired++
					}
				}
				if len(made.Writes) == 0 {
					break
				}
			}
			w.wantOpen()
			if repaired != 5 {
				t.Errorf("shop is repaired on %d nodes, want each of the 5 members once", repaired)
			}
		})
	}
}

// A step whose operation waits for a node that is down says so, and which node it is.
func TestWhoKeepsAnOperationWaitingIsSaid(t *testing.T) {
	w := formed(t)
	w.change(w.withShop(added("dc2", 1, 1)))
	w.until(func(s *ledger.Step) bool { return s.Stage == ledger.StageKeyspaces })
	lost := w.snapshot.Ledger.Step.Wave()[1]
	w.absent[lost] = true
	w.agents()
	made := w.settle()
	if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageRebuild {
		t.Fatalf("goes on without node %s: %+v", lost, s)
	}
	if !slices.ContainsFunc(made.Notices, func(b v1alpha1.Notice) bool {
		return b.Reason == "NodeDown" && slices.Equal(b.Nodes, []string{lost})
	}) {
		t.Errorf("nobody says that node %s is waited for:\n%s", lost, made)
	}
	delete(w.absent, lost)
	w.agents()
	w.settle()
	w.wantOpen()
}
