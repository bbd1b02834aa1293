package assess

import (
	"maps"
	"slices"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// formed has all nodes be members.
func (s *scene) formed() {
	s.Ledger.Step, s.Ledger.Formed, s.Ledger.Members = nil, []string{"dc1"}, map[string]string{}
	for name := range s.Nodes {
		s.Ledger.Members[name] = "host-" + name
	}
}

func anotherDatacenter() v1alpha1.Datacenter {
	one := int32(1)
	return v1alpha1.Datacenter{Name: "dc2", PlannedReplicationFactor: 3,
		Racks: []v1alpha1.Rack{{Name: "r1", Nodes: &one}}}
}

func TestReplicasOfTheSystemKeyspaces(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		want   map[string]int32
	}{
		"as many as keyspaces of users": {func(*scene) {}, map[string]int32{"dc1": 3}},
		"fewer, with fewer members": {func(s *scene) { delete(s.Ledger.Members, first) },
			map[string]int32{"dc1": 2}},
		"as many, with a record away": {func(s *scene) { s.Nodes[first].Record = nil }, map[string]int32{"dc1": 3}},
		"as many, with a pod away": {func(s *scene) {
			s.Nodes[first].Record, s.Nodes[first].Pod = nil, nil
		}, map[string]int32{"dc1": 3}},
		"none where no nodes are": {func(s *scene) {
			s.Cluster.Spec.Datacenters = append(s.Cluster.Spec.Datacenters, anotherDatacenter())
		}, map[string]int32{"dc1": 3}},
		"none where nobody is a member": {func(s *scene) {
			s.Cluster.Spec.Datacenters = append(s.Cluster.Spec.Datacenters, anotherDatacenter())
			s.Ledger.Formed = append(s.Ledger.Formed, "dc2")
		}, map[string]int32{"dc1": 3}},
		"none in what is still being added": {func(s *scene) {
			s.Cluster.Spec.Datacenters = append(s.Cluster.Spec.Datacenters, anotherDatacenter())
			s.Nodes[first].Record.Spec.Datacenter = "dc2"
		}, map[string]int32{"dc1": 2}},
		"as many as each datacenter plans": {func(s *scene) {
			dc := anotherDatacenter()
			dc.PlannedReplicationFactor = 1
			s.Cluster.Spec.Datacenters, s.Ledger.Formed = append(s.Cluster.Spec.Datacenters, dc), []string{"dc1", "dc2"}
			s.Nodes[first].Record.Spec.Datacenter, s.Nodes[third].Record.Spec.Datacenter = "dc2", "dc2"
		}, map[string]int32{"dc1": 1, "dc2": 1}},
		"by the name that the ring knows": {func(s *scene) {
			s.Cluster.Spec.Datacenters[0].DatacenterName = "DC One"
		}, map[string]int32{"DC One": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.formed()
			s.Nodes[first].Pod.Labels = map[string]string{v1alpha1.LabelDatacenter: "dc1"}
			c.change(s)
			if got := s.view().SystemReplication(); !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// The user takes a rack out while the ring forms: its node leaves then, and stays if the rack is
// put back.
func TestReplicasOfARingThatHasJustFormed(t *testing.T) {
	s := newScene(t)
	s.formed()
	s.Cluster.Spec.Datacenters[0].Racks = s.Cluster.Spec.Datacenters[0].Racks[1:]
	v := s.view()
	if got, want := v.FormedReplication(), map[string]int32{"dc1": 3}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := v.SystemReplication(), map[string]int32{"dc1": 2}; !maps.Equal(got, want) {
		t.Errorf("without the one that leaves %v, want %v", got, want)
	}
}

// The ring is seen by the first member that is NORMAL.
func TestByWhomTheRingIsSeen(t *testing.T) {
	for name, second := range map[string]*facts.Ring{"without a JVM": nil, "on its way": {Mode: facts.ModeJoining}} {
		s := newScene(t)
		s.formed()
		s.Nodes[first].Agent, s.n.Agent.Ring = nil, second
		if got := s.view().AnyRing(); got == nil || got != s.Nodes[third].Agent.Ring {
			t.Errorf("%s: %+v", name, got)
		}
		s.Nodes[third].Agent = nil
		if got := s.view().AnyRing(); got != nil {
			t.Errorf("%s: nobody sees %+v", name, got)
		}
	}
}

// A member that joins in a pass is one from then on.
func TestMembersAreThoseOfThePresentLedger(t *testing.T) {
	s := newScene(t)
	s.formed()
	v := s.view()
	if got := v.Members(); !slices.Equal(got, []string{first, second, third}) {
		t.Fatalf("members %v", got)
	}
	l := s.Ledger.Copy()
	l.Members["orders-dc1-r1-1"] = "id"
	if got := v.WithLedger(l).Members(); !slices.Equal(got, []string{first, "orders-dc1-r1-1", second, third}) {
		t.Errorf("members %v", got)
	}
	if got := v.Members(); len(got) != 3 {
		t.Errorf("the view has changed: %v", got)
	}
}

// A node does not count that sees itself, and one of two endpoints with its host id is enough.
func TestWhoSeesANodeAlive(t *testing.T) {
	sees := func(live ...string) *facts.Ring {
		r := &facts.Ring{Mode: facts.ModeNormal}
		for _, name := range []string{first, second, third} {
			r.Endpoints = append(r.Endpoints, facts.Endpoint{HostID: "host-" + name, Live: slices.Contains(live, name)},
				facts.Endpoint{HostID: "host-" + name, Address: "former"})
		}
		return r
	}
	for name, c := range map[string]struct {
		rings map[string]*facts.Ring
		want  [3]string // of each node
	}{
		"all alike": {map[string]*facts.Ring{first: sees(first, second, third), second: sees(first, second, third),
			third: sees(first, second, third)}, [3]string{second, first, first}},
		"each alone": {map[string]*facts.Ring{first: sees(first), second: sees(second), third: sees(third)}, [3]string{}},
		"two views": {map[string]*facts.Ring{first: sees(first, third), second: sees(second), third: sees(first, third)},
			[3]string{third, "", first}},
		"the last one": {map[string]*facts.Ring{first: sees(first), second: sees(first, second), third: sees(second)},
			[3]string{second, third, ""}},
		"nobody answers": {nil, [3]string{}},
	} {
		s := newScene(t)
		s.formed()
		for _, node := range []string{first, second, third} {
			s.Nodes[node].Agent = nil
			if r := c.rings[node]; r != nil {
				s.Nodes[node].Agent = &facts.Agent{Ring: r}
			}
		}
		v := NewView(s.Snapshot, now)
		for i, node := range []string{first, second, third} {
			if got := v.SeesAlive(v.Nodes[node]); got != c.want[i] {
				t.Errorf("%s: %s is seen by %q, not %q", name, node, got, c.want[i])
			}
		}
	}
}
