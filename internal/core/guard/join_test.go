package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/ring"
)

// ringOf is a ring of nodes that all see the same, each in a list of its own.
func ringOf(names ...string) *facts.Snapshot {
	s := &facts.Snapshot{Nodes: map[string]*facts.Node{},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Members: map[string]string{}}}}
	for _, name := range names {
		r := &facts.Ring{Mode: facts.ModeNormal, HostID: "host-" + name, SchemaVersion: "schema",
			ReleaseVersion: "5.0.6"}
		for i, of := range names {
			r.Endpoints = append(r.Endpoints, facts.Endpoint{
				Address: fmt.Sprintf("10.0.0.%d", i+1), HostID: "host-" + of, Datacenter: "dc1", Rack: "r1",
				Status: facts.StatusNormal, Live: true, Tokens: []int64{int64(i)}, SchemaVersion: "schema",
			})
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("pod-" + name)}}
		s.Nodes[name] = &facts.Node{Name: name, Pod: pod, Agent: &facts.Agent{PodUID: pod.UID, Ring: r}}
		s.Ledger.Members[name] = "host-" + name
	}
	return s
}

// Of many nodes that see the same, and few that do not, the guards name the few, whether what they
// see was digested before or not.
func TestJoinGuardsNameWhoeverSeesOtherwise(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	for name, c := range map[string]struct {
		change func(see func(string) *facts.Ring)
		want   string
	}{
		"all see the same": {func(func(string) *facts.Ring) {}, ""},
		"all but the load": {func(see func(string) *facts.Ring) { see("c").Endpoints[0].Load = 9 }, ""},
		"one sees another down": {func(see func(string) *facts.Ring) { see("d").Endpoints[1].Live = false },
			"RingViewsDiffer [d] d sees NORMAL and down of host-b, most see NORMAL"},
		"one has heard that another was stopped, and the others see it down": {
			func(see func(string) *facts.Ring) {
				for _, observer := range names {
					see(observer).Endpoints[1].Live = false
				}
				see("d").Endpoints[1].Status = facts.StatusShutdown
			}, ""},
		"one has heard that another was stopped, and the others see it up": {
			func(see func(string) *facts.Ring) {
				see("d").Endpoints[1].Status, see("d").Endpoints[1].Live = facts.StatusShutdown, false
			}, "RingViewsDiffer [d] d sees NORMAL and down of host-b, most see NORMAL"},
		"one sees another leave": {
			func(see func(string) *facts.Ring) { see("c").Endpoints[5].Status = facts.StatusLeaving },
			"TopologyChangeInProgress [c] node c sees 10.0.0.6 as LEAVING; RingViewsDiffer [c] c sees LEAVING of " +
				"host-f, most see NORMAL",
		},
		"two see other tokens, alike": {func(see func(string) *facts.Ring) {
			for _, observer := range []string{"e", "b"} {
				see(observer).Endpoints[0].Tokens = []int64{-7}
			}
		}, "RingViewsDiffer [b] b sees NORMAL with tokens -7 of host-a, most see NORMAL with tokens 0; " +
			"RingViewsDiffer [e] e sees NORMAL with tokens -7 of host-a, most see NORMAL with tokens 0"},
		"two differ from each other, too": {func(see func(string) *facts.Ring) {
			see("f").Endpoints = see("f").Endpoints[1:]
			see("a").Endpoints[1].Tokens = nil
		}, "RingViewsDiffer [a] a sees nothing of host-b, most see NORMAL; RingViewsDiffer [f] f sees nothing of " +
			"host-a, most see NORMAL"},
		"all see the same in flight": {func(see func(string) *facts.Ring) {
			for _, observer := range names {
				see(observer).Endpoints[2].Status = facts.StatusMoving
			}
		}, "TopologyChangeInProgress [a] node a sees 10.0.0.3 as MOVING; TopologyChangeInProgress [b] node b sees " +
			"10.0.0.3 as MOVING; TopologyChangeInProgress [c] node c sees 10.0.0.3 as MOVING; " +
			"TopologyChangeInProgress [d] node d sees 10.0.0.3 as MOVING; TopologyChangeInProgress [e] node e sees " +
			"10.0.0.3 as MOVING; TopologyChangeInProgress [f] node f sees 10.0.0.3 as MOVING"},
		"one sees ranges on their way": {func(see func(string) *facts.Ring) { see("e").Pending = 2 },
			"TopologyChangeInProgress [e] node e sees 2 ranges on their way to new owners"},
		"one sees a stranger at another address, who has left": {func(see func(string) *facts.Ring) {
			see("b").Endpoints = append(see("b").Endpoints,
				facts.Endpoint{Address: "10.0.0.9", HostID: "gone", Status: facts.StatusLeft, Tokens: []int64{9}})
		}, ""},
		"one has another schema": {
			func(see func(string) *facts.Ring) { see("c").SchemaVersion = "other" },
			"SchemaVersionsDiffer [] the members have different schema versions: schema (node a), other (node c)",
		},
		"one has the schema of another release": {func(see func(string) *facts.Ring) {
			see("b").ReleaseVersion, see("b").SchemaVersion = "4.1.10", "other"
		}, ""},
		"one has another schema, and another patch release": {func(see func(string) *facts.Ring) {
			see("b").ReleaseVersion, see("b").SchemaVersion = "5.0.2", "other"
		}, "SchemaVersionsDiffer [] the members have different schema versions: schema (node a), other (node b)"},
		"one sees a stranger": {func(see func(string) *facts.Ring) {
			see("c").Endpoints = append(see("c").Endpoints,
				facts.Endpoint{Address: "10.0.0.9", HostID: "stranger", Status: facts.StatusNormal, Live: true,
					Tokens: []int64{9}})
		}, "RingViewsDiffer [c] c sees NORMAL of stranger, most see nothing; UnknownRingMember [] the ring has a " +
			"member with host id stranger at 10.0.0.9 that no CassandraNode is of: find its disk, or remove it with " +
			"nodetool removenode"},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/digested before %v", name, kept), func(t *testing.T) {
				s := ringOf(names...)
				c.change(func(observer string) *facts.Ring { return s.Nodes[observer].Agent.Ring })
				if kept {
					for _, n := range s.Nodes {
						n.Agent.Ring.KeepView()
					}
				}
				var got []string
				for _, r := range Check(Nodes{s, slices.Clone(names)}, beforeJoin...) {
					got = append(got, fmt.Sprintf("%s %v %s", r.Reason, r.Nodes, r.Message))
				}
				if text := strings.Join(got, "; "); text != c.want {
					t.Errorf("they say\n%s\nwant\n%s", text, c.want)
				}
			})
		}
	}
}

// Before a cleanup members that are down count, too: by another schema they may be about to own
// what is removed.
func TestACleanupNeedsOneSchemaOfAllMembersInGossip(t *testing.T) {
	const one = "SchemaVersionsDiffer [b] node b: the schema of 10.0.0.3 is "
	for name, c := range map[string]struct {
		change func(of *facts.Endpoint)
		want   string
	}{
		"one":          {func(*facts.Endpoint) {}, ""},
		"another":      {func(e *facts.Endpoint) { e.SchemaVersion = "older" }, one + `"older", and here "schema"`},
		"not heard":    {func(e *facts.Endpoint) { e.SchemaVersion = "" }, one + `"", and here "schema"`},
		"one who left": {func(e *facts.Endpoint) { e.SchemaVersion, e.Status = "older", facts.StatusLeft }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := ringOf("a", "b", "c")
			for _, n := range s.Nodes { // c is down, in every view
				n.Agent.Ring.Endpoints[2].Live = false
				if c.want == "" {
					c.change(&n.Agent.Ring.Endpoints[2])
				}
			}
			c.change(&s.Nodes["b"].Agent.Ring.Endpoints[2])
			var got []string
			for _, r := range Check(Nodes{s, []string{"a", "b"}}, cleanup...) {
				got = append(got, fmt.Sprintf("%s %v %s", r.Reason, r.Nodes, r.Message))
			}
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("they say\n%s\nwant\n%s", text, c.want)
			}
		})
	}
}

// A member that is not up has no say in what the others are asked.
func TestWhoIsNotUpIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   string
	}{
		"not heard":      {func(n *facts.Node) { n.Agent = nil }, "node b is not up: "},
		"of another pod": {func(n *facts.Node) { n.Agent.PodUID = "another" }, "node b is not up: "},
		"without a JVM":  {func(n *facts.Node) { n.Agent.Ring = nil }, "node b is not up: its JVM does not answer"},
		"without its disk": {func(n *facts.Node) {
			n.Agent.Ring, n.Agent.Phase, n.Agent.Message = nil, v1alpha1.PhaseDataLost, "it must be replaced"
		}, "node b is not up: it is DataLost: it must be replaced; "},
		"leaving": {func(n *facts.Node) {
			n.Agent.Ring = &facts.Ring{Mode: facts.ModeLeaving, SchemaVersion: "other", ReleaseVersion: "4.1.10",
				Pending: 3}
		}, "node b is not up: it is LEAVING"},
	} {
		s := ringOf("a", "b", "c")
		c.change(s.Nodes["b"])
		refusals := Check(Nodes{s, []string{"a", "b", "c"}}, beforeJoin...)
		if len(refusals) != 1 || refusals[0].Reason != "MemberDown" ||
			!slices.Equal(refusals[0].Nodes, []string{"b"}) || !strings.HasPrefix(refusals[0].Message, c.want) {
			t.Errorf("%s: %+v, want %q", name, refusals, c.want)
		}
	}
}

// racks of a datacenter with three replicas; the first is the one in doubt.
func TestARackWithTooFewNodesIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		sizes    map[string]int
		replicas int
		want     string
	}{
		"as many each":      {map[string]int{"a": 3, "b": 3, "c": 3}, 3, ""},
		"twice the average": {map[string]int{"a": 1, "b": 2, "c": 3}, 3, ""},
		"more than that": {map[string]int{"a": 1, "b": 3, "c": 3}, 3,
			"rack a of datacenter dc1 would have 1 of 7 nodes in 3 racks: with 3 replicas each rack holds everything " +
				"once, so each of its nodes would hold 2.3 times the average"},
		"more racks than replicas": {map[string]int{"a": 1, "b": 9, "c": 9, "d": 9}, 3, ""},
		"fewer racks than replicas": {map[string]int{"a": 1, "b": 9}, 3,
			"rack a of datacenter dc1 would have 1 of 10 nodes in 2 racks"},
		"one rack":                     {map[string]int{"a": 1}, 3, ""},
		"one rack that has nodes":      {map[string]int{"a": 0, "b": 9}, 3, ""},
		"a rack without nodes is none": {map[string]int{"a": 2, "b": 4, "c": 0}, 3, ""},
		"nor makes it the others large": {map[string]int{"a": 1, "b": 9, "c": 0}, 3,
			"rack a of datacenter dc1 would have 1 of 10 nodes in 2 racks"},
		"two nodes of a rack share it": {map[string]int{"a": 2, "b": 6, "c": 6}, 3,
			"rack a of datacenter dc1 would have 2 of 14 nodes in 3 racks: with 3 replicas each rack holds " +
				"everything once, so each of its nodes would hold 2.3 times the average"},
		"two are small": {map[string]int{"a": 1, "b": 1, "c": 9}, 3,
			"rack a of datacenter dc1 would have 1 of 11 nodes; rack b of datacenter dc1 would have 1 of 11 nodes"},
		"two racks, and as many copies": {map[string]int{"a": 1, "b": 4}, 2,
			"rack a of datacenter dc1 would have 1 of 5 nodes"},
	} {
		var got []string
		for _, r := range Check(Joining{Datacenter: "dc1", ReplicationFactor: c.replicas, Sizes: c.sizes},
			placement[0]) {
			got = append(got, r.Message)
		}
		want := strings.Split(c.want, "; ")
		if c.want == "" {
			want = nil
		}
		if len(got) != len(want) || slices.ContainsFunc(want, func(w string) bool {
			return !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
		}) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A ring of one node, which has all, gets another one, which takes half: of 4 GiB two have to fit.
func TestANodeThatWouldBeTooFullIsRefused(t *testing.T) {
	const gib = 1 << 30
	joiner := ring.Node{ID: "b", Datacenter: "dc1", Rack: "r1", Tokens: []ring.Token{0}}
	before, err := ring.New([]ring.Node{{ID: "a", Datacenter: "dc1", Rack: "r1",
		Tokens: []ring.Token{ring.MinToken + 1}}})
	if err != nil {
		t.Fatal(err)
	}
	replication, err := ring.NetworkTopology(map[string]int{"dc1": 1})
	if err != nil {
		t.Fatal(err)
	}
	member := facts.Endpoint{HostID: "a", Datacenter: "dc1", Status: facts.StatusNormal, Tokens: []int64{1},
		Load: 4 * gib}
	for name, c := range map[string]struct {
		volume string
		view   []facts.Endpoint
		change func(*Joining)
		want   string
	}{
		"it fits": {"3Gi", []facts.Endpoint{member}, nil, ""},
		"it does not": {"2Gi", []facts.Endpoint{member}, nil,
			"node b would hold about 2.0Gi, which is more than 70 % of its data volume of 2Gi"},
		"it just fits": {"10", []facts.Endpoint{{HostID: "a", Datacenter: "dc1",
			Status: facts.StatusNormal, Tokens: []int64{1}, Load: 14}}, nil, ""},
		"what all have counts": {"2Gi", []facts.Endpoint{member,
			{HostID: "c", Datacenter: "dc1", Status: facts.StatusNormal, Tokens: []int64{2}}}, nil,
			"node b would hold about 2.0Gi"},
		"nobody knows the volume":  {"", []facts.Endpoint{member}, nil, ""},
		"the volume is of no size": {"0", []facts.Endpoint{member}, nil, ""},
		"another datacenter has it": {"2Gi", []facts.Endpoint{{HostID: "a", Datacenter: "dc2",
			Status: facts.StatusNormal, Tokens: []int64{1}, Load: 4 * gib}}, nil, ""},
		"who has it is no member": {"2Gi", []facts.Endpoint{{HostID: "a", Datacenter: "dc1",
			Status: facts.StatusNormal, Load: 4 * gib}}, nil, ""},
		"a little that does not": {"100Mi",
			[]facts.Endpoint{{HostID: "a", Datacenter: "dc1", Status: facts.StatusNormal, Tokens: []int64{1},
				Load: gib / 2}}, nil, "node b would hold about 256Mi"},
		"a whole gibibyte is said so": {"100Mi",
			[]facts.Endpoint{{HostID: "a", Datacenter: "dc1", Status: facts.StatusNormal, Tokens: []int64{1},
				Load: 2 * gib}}, nil, "node b would hold about 1.0Gi"},
		"its tokens are taken already": {"3Gi", []facts.Endpoint{member},
			func(j *Joining) { j.Node.Tokens = []ring.Token{ring.MinToken + 1} },
			"the ring with node b cannot be judged"},
	} {
		j := Joining{Node: joiner, Datacenter: "dc1", View: &facts.Ring{Endpoints: c.view}, Before: before,
			Keyspaces: []ring.Keyspace{{Name: "shop", Replication: replication}}}
		if c.volume != "" {
			j.Volume = new(resource.MustParse(c.volume))
		}
		if c.change != nil {
			c.change(&j)
		}
		got := ""
		if refusals := Check(j, placement[1]); len(refusals) > 0 {
			got = refusals[0].Message
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A node that is to join is heard, has nothing on its disk, and runs nothing.
func TestGuardsOfANewcomer(t *testing.T) {
	const names, empty, absent = "JoiningNodeNotReady", "JoiningDiskNotEmpty", "JVMNotAbsent"
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   []string
	}{
		"ready":          {func(*facts.Node) {}, nil},
		"not heard":      {func(n *facts.Node) { n.Agent = nil }, []string{names}},
		"without words":  {func(n *facts.Node) { n.Agent.Address = "" }, []string{names}},
		"of another pod": {func(n *facts.Node) { n.Agent.PodUID = "another" }, []string{names}},
		"cut off": {func(n *facts.Node) { n.Agent.Disk = v1alpha1.DiskJoining },
			[]string{empty + " delete its claim"}},
		"a member": {func(n *facts.Node) { n.Agent.Disk = v1alpha1.DiskMember },
			[]string{empty + " it may hold writes"}},
		"it has served": {func(n *facts.Node) { n.Agent.TrafficOpened = true },
			[]string{empty + " it may hold writes"}},
		"a JVM runs": {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, []string{absent}},
		"all of it": {func(n *facts.Node) {
			n.Agent.Disk, n.Agent.Process = v1alpha1.DiskForeign, facts.ProcessUnknown
		}, []string{
			empty + " delete its claim", absent,
		}},
	} {
		s := ringOf("a", "b")
		for _, n := range s.Nodes {
			n.Agent.Address, n.Agent.Disk, n.Agent.Process = "10.0.0.9", v1alpha1.DiskEmpty, facts.ProcessAbsent
		}
		c.change(s.Nodes["b"])
		refusals := Check(Nodes{s, []string{"a", "b"}}, pendingNode...)
		if len(refusals) != len(c.want) {
			t.Errorf("%s: %+v, want %q", name, refusals, c.want)
			continue
		}
		for i, want := range c.want {
			guard, words, _ := strings.Cut(want, " ")
			if r := refusals[i]; string(r.Reason) != guard || !strings.Contains(r.Message, words) ||
				!slices.Equal(r.Nodes, []string{"b"}) {
				t.Errorf("%s: %+v, want %q", name, r, want)
			}
		}
	}
}

// A keyspace whose replication is not understood is named once, however many nodes see it.
func TestAKeyspaceThatNobodyUnderstands(t *testing.T) {
	s := ringOf("a", "b")
	for _, n := range s.Nodes {
		n.Agent.Ring.Keyspaces = map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
			"odd": "NetworkTopologyStrategy {dc1=3/1}", "own": "OwnStrategy {}"}
	}
	found := everyReplicationIsKnown(Nodes{Snapshot: s, Names: []string{"a", "b"}})
	if len(found) != 2 || !strings.Contains(found[0].Message, "keyspace odd: ") ||
		!strings.Contains(found[0].Message, "3/1") || !strings.Contains(found[1].Message, `"OwnStrategy"`) ||
		found[0].Stalled == "" {
		t.Errorf("%+v", found)
	}
}
