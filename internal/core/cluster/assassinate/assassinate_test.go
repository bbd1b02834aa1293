package assassinate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

const (
	first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"

	deserted = "10.9.9.9"
)

// scene is a ring of which all see the same.
type scene struct{ *facts.Snapshot }

func newScene(members ...string) scene {
	s := scene{&facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Members: map[string]string{}}},
	}}
	var endpoints []facts.Endpoint
	for _, name := range members {
		address := "address-" + name
		s.Ledger.Members[name] = "host-" + name
		s.Nodes[name] = &facts.Node{
			Name: name, Record: &v1alpha1.CassandraNode{},
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)},
				Status: corev1.PodStatus{PodIP: address}},
			Agent: &facts.Agent{PodUID: types.UID(name), HostID: "host-" + name, Address: address},
		}
		endpoints = append(endpoints, facts.Endpoint{Address: address, HostID: "host-" + name,
			Status: facts.StatusNormal, Live: true, Tokens: []int64{1}})
	}
	for _, n := range s.Nodes {
		n.Agent.Ring = &facts.Ring{Mode: facts.ModeNormal, HostID: n.Agent.HostID,
			Endpoints: endpoints[:len(endpoints):len(endpoints)]}
	}
	return s
}

// sees has members see an endpoint beside the ring.
func (s scene) sees(e facts.Endpoint, by ...string) {
	for _, name := range by {
		r := s.Nodes[name].Agent.Ring
		r.Endpoints = append(r.Endpoints, e)
	}
}

// staleOf is a failed join of a node as members see it that have not forgotten it.
func staleOf(node string) facts.Endpoint {
	return facts.Endpoint{Address: deserted, HostID: "host-" + node, Status: facts.StatusBootstrap, Tokens: []int64{7}}
}

func with(e facts.Endpoint, change func(*facts.Endpoint)) facts.Endpoint {
	change(&e)
	return e
}

func TestWhichEndpointIsStale(t *testing.T) {
	as := func(status facts.GossipStatus) func(scene) {
		return func(s scene) { s.sees(with(staleOf(first), func(e *facts.Endpoint) { e.Status = status }), second) }
	}
	for name, c := range map[string]struct {
		change func(scene)
		want   string
	}{
		"there is none":      {func(scene) {}, ""},
		"one member sees it": {func(s scene) { s.sees(staleOf(first), second) }, first},
		"two members see it": {func(s scene) { s.sees(staleOf(first), second, third) }, first},
		"all see it":         {func(s scene) { s.sees(staleOf(first), first, second, third) }, ""},
		"it is up": {func(s scene) {
			s.sees(with(staleOf(first), func(e *facts.Endpoint) { e.Live = true }), second)
		}, ""},
		"it is a member":           {as(facts.StatusNormal), ""},
		"it leaves":                {as(facts.StatusLeaving), ""},
		"it has left":              {as(facts.StatusLeft), ""},
		"nobody knows its host id": {func(s scene) { s.sees(staleOf("stranger"), second) }, ""},
		"it has no host id": {func(s scene) {
			s.sees(with(staleOf(first), func(e *facts.Endpoint) { e.HostID = "" }), second)
		}, ""},
		"its agent knows its host id": {func(s scene) {
			s.Nodes[first].Agent.HostID = "host-stranger"
			s.sees(staleOf("stranger"), second)
		}, first},
		"its record does": {func(s scene) {
			s.Nodes[third].Record.Status.HostID = "host-stranger"
			s.sees(staleOf("stranger"), second)
		}, third},
		"a pod of ours is there": {func(s scene) {
			s.sees(with(staleOf(first), func(e *facts.Endpoint) { e.Address = "address-" + third }), second)
		}, ""},
		"a member is away": {func(s scene) { s.sees(staleOf(first), second); s.Nodes[third].Agent = nil }, ""},
		"to another member it is up": {func(s scene) {
			s.sees(staleOf(first), second)
			s.sees(with(staleOf(first), func(e *facts.Endpoint) { e.Live = true }), first)
		}, ""},
		"a pod of ours may be there": {func(s scene) {
			s.sees(staleOf(first), second)
			n := s.Nodes[third]
			n.Pod.Status.PodIP, n.Record.Status.Address = "", deserted
		}, ""},
		"the first by address counts": {func(s scene) {
			s.sees(with(staleOf(third), func(e *facts.Endpoint) { e.Address = "10.9.9.8" }), second)
			s.sees(staleOf(first), second)
		}, third},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(first, second, third)
			c.change(s)
			got := ""
			if stale := staleJoin(assess.NewView(s.Snapshot, metav1.Now().Time)); stale != nil {
				got = stale.node
			}
			if got != c.want {
				t.Errorf("of %q, want %q", got, c.want)
			}
		})
	}
}

// Two members are enough to keep a stale endpoint alive, one is not: it alone forgets.
func TestHowManyMembersKeepAStaleEndpointAlive(t *testing.T) {
	for _, members := range [][]string{{first}, {first, second}} {
		s := newScene(members...)
		s.sees(staleOf(first), first)
		if got := staleJoin(assess.NewView(s.Snapshot, metav1.Now().Time)); (got != nil) != (len(members) > 1) {
			t.Errorf("of %d members: %+v", len(members), got)
		}
	}
}

// An address is somebody's if an agent of today says so, or its pod, or the record of a pod that
// has no address yet.
func TestWhoseAddressItIs(t *testing.T) {
	pod := func(ip string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}, Status: corev1.PodStatus{PodIP: ip}}
	}
	record := func(address string) *v1alpha1.CassandraNode {
		return &v1alpha1.CassandraNode{Status: v1alpha1.CassandraNodeStatus{Address: address}}
	}
	for name, c := range map[string]struct {
		node facts.Node
		want bool
	}{
		"nothing is known": {facts.Node{}, false},
		"its agent has it": {facts.Node{Pod: pod("10.0.0.1"),
			Agent: &facts.Agent{PodUID: "pod", Address: deserted}}, true},
		"its agent has another": {facts.Node{Pod: pod("10.0.0.1"),
			Agent: &facts.Agent{PodUID: "pod", Address: "10.0.0.1"}}, false},
		"the agent of its former pod had it": {facts.Node{Pod: pod("10.0.0.1"),
			Agent: &facts.Agent{PodUID: "former", Address: deserted}}, false},
		"its pod has it":                      {facts.Node{Pod: pod(deserted)}, true},
		"its record had it, and has no pod":   {facts.Node{Record: record(deserted)}, false},
		"its pod may get it":                  {facts.Node{Pod: pod(""), Record: record(deserted)}, true},
		"its pod may get another":             {facts.Node{Pod: pod(""), Record: record("10.0.0.1")}, false},
		"its pod may get any":                 {facts.Node{Pod: pod("")}, false},
		"its record has not heard of its pod": {facts.Node{Pod: pod("10.0.0.1"), Record: record(deserted)}, false},
	} {
		s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{},
			Nodes: map[string]*facts.Node{"other": {}, "node": &c.node}}
		if got := anyoneAt(assess.NewView(s, metav1.Now().Time), deserted); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
