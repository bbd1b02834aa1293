package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
)

// ringOf is a ring of nodes that all see the same, each in a list of its own.
func ringOf(names ...string) *facts.Snapshot {
	s := &facts.Snapshot{Nodes: map[string]*facts.Node{}, Ledger: &facts.Ledger{Members: map[string]string{}}}
	for _, name := range names {
		r := &facts.Ring{Mode: facts.ModeNormal, HostID: "host-" + name, SchemaVersion: "schema", ReleaseVersion: "5.0.6"}
		for i, of := range names {
			r.Endpoints = append(r.Endpoints, facts.Endpoint{
				Address: fmt.Sprintf("10.0.0.%d", i+1), HostID: "host-" + of, Datacenter: "dc1", Rack: "r1", Status: facts.StatusNormal, Live: true, Tokens: []int64{int64(i)},
			})
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("pod-" + name)}}
		s.Nodes[name] = &facts.Node{Name: name, Pod: pod, Agent: &facts.Agent{PodUID: pod.UID, Ring: r}}
		s.Ledger.Members[name] = "host-" + name
	}
	return s
}

// Of many nodes that see the same, and few that do not, the guards name the few, whether what they see was digested before or not.
func TestJoinGuardsNameWhoeverSeesOtherwise(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	for name, c := range map[string]struct {
		change func(see func(string) *facts.Ring)
		want   string
	}{
		"all see the same":      {func(func(string) *facts.Ring) {}, ""},
		"all but the load":      {func(see func(string) *facts.Ring) { see("c").Endpoints[0].Load = 9 }, ""},
		"one sees another down": {func(see func(string) *facts.Ring) { see("d").Endpoints[1].Live = false }, "every_view_is_the_same [d] d sees NORMAL and down of host-b, most see NORMAL"},
		"one sees another leave": {
			func(see func(string) *facts.Ring) { see("c").Endpoints[5].Status = facts.StatusLeaving },
			"no_other_topology_change [c] node c sees 10.0.0.6 as LEAVING; every_view_is_the_same [c] c sees LEAVING of host-f, most see NORMAL",
		},
		"two see other tokens, alike": {func(see func(string) *facts.Ring) {
			for _, observer := range []string{"e", "b"} {
				see(observer).Endpoints[0].Tokens = []int64{-7}
			}
		}, "every_view_is_the_same [b] b sees NORMAL with tokens -7 of host-a, most see NORMAL with tokens 0; " +
			"every_view_is_the_same [e] e sees NORMAL with tokens -7 of host-a, most see NORMAL with tokens 0"},
		"two differ from each other, too": {func(see func(string) *facts.Ring) {
			see("f").Endpoints = see("f").Endpoints[1:]
			see("a").Endpoints[1].Tokens = nil
		}, "every_view_is_the_same [a] a sees nothing of host-b, most see NORMAL; every_view_is_the_same [f] f sees nothing of host-a, most see NORMAL"},
		"all see the same in flight": {func(see func(string) *facts.Ring) {
			for _, observer := range names {
				see(observer).Endpoints[2].Status = facts.StatusMoving
			}
		}, "no_other_topology_change [a] node a sees 10.0.0.3 as MOVING; no_other_topology_change [b] node b sees 10.0.0.3 as MOVING; " +
			"no_other_topology_change [c] node c sees 10.0.0.3 as MOVING; no_other_topology_change [d] node d sees 10.0.0.3 as MOVING; " +
			"no_other_topology_change [e] node e sees 10.0.0.3 as MOVING; no_other_topology_change [f] node f sees 10.0.0.3 as MOVING"},
		"one sees ranges on their way": {func(see func(string) *facts.Ring) { see("e").Pending = 2 }, "no_other_topology_change [e] node e sees 2 ranges on their way to new owners"},
		"one sees a stranger at another address, who has left": {func(see func(string) *facts.Ring) {
			see("b").Endpoints = append(see("b").Endpoints, facts.Endpoint{Address: "10.0.0.9", HostID: "gone", Status: facts.StatusLeft, Tokens: []int64{9}})
		}, ""},
		"one sees a stranger": {func(see func(string) *facts.Ring) {
			see("c").Endpoints = append(see("c").Endpoints, facts.Endpoint{Address: "10.0.0.9", HostID: "stranger", Status: facts.StatusNormal, Live: true, Tokens: []int64{9}})
		}, "every_view_is_the_same [c] c sees NORMAL of stranger, most see nothing; every_host_id_of_the_ring_is_known [] the ring has a member with host id stranger at 10.0.0.9 that no " +
			"CassandraNode is of: find its disk, or remove it with nodetool removenode"},
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
				for _, r := range Check(Nodes{s, slices.Clone(names)}, Join...) {
					got = append(got, fmt.Sprintf("%s %v %s", r.Guard, r.Nodes, r.Message))
				}
				if text := strings.Join(got, "; "); text != c.want {
					t.Errorf("they say\n%s\nwant\n%s", text, c.want)
				}
			})
		}
	}
}
