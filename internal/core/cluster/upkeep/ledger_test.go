package upkeep

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// withClaim is a node of which a claim is left, and a volume without its claim.
func withClaim(cluster string, phase corev1.PersistentVolumeClaimPhase) *facts.Node {
	c := claimOf("data-"+second, cluster)
	c.Claim.Status.Phase = phase
	return &facts.Node{Name: second, Claims: map[string]*facts.Claim{"commitlog": {}, "data": c}}
}

// An empty ledger is only made for a cluster of which nothing is there: it would allow another
// formation.
func TestALedgerIsLostIfAnythingOfTheClusterIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		node *facts.Node
		lost bool
	}{
		"nothing":                    {&facts.Node{}, false},
		"a record":                   {&facts.Node{Record: &v1alpha1.CassandraNode{}}, true},
		"a pod":                      {&facts.Node{Pod: &corev1.Pod{}}, true},
		"a claim of it":              {withClaim("cluster-uid", ""), true},
		"a claim of another cluster": {withClaim("other", ""), false},
		"a volume without its claim": {&facts.Node{Claims: map[string]*facts.Claim{"data": {}}}, false},
	} {
		if got := keeper(c.node).anyNodeObject(); got != c.lost {
			t.Errorf("%s: lost %v, want %v", name, got, c.lost)
		}
	}
	if keeper().anyNodeObject() {
		t.Error("lost without any node")
	}
}

// Only what is certainly this cluster's brings a record back.
func TestWhichNodesGetARecordBack(t *testing.T) {
	for name, c := range map[string]struct {
		node *facts.Node
		want bool
	}{
		"nothing is there":                {nil, false},
		"nothing but its name":            {&facts.Node{Name: second}, false},
		"a pod":                           {&facts.Node{Name: second, Pod: &corev1.Pod{}}, true},
		"a volume":                        {withClaim("cluster-uid", corev1.ClaimBound), true},
		"a volume of another cluster":     {withClaim("other", corev1.ClaimBound), false},
		"a claim that never had a volume": {withClaim("cluster-uid", corev1.ClaimPending), false},
	} {
		k := keeper(recorded(first))
		if c.node != nil {
			k.Nodes[second] = c.node
		}
		got := k.unrecorded()
		back := slices.ContainsFunc(got, func(w render.Wanted) bool { return w.Name == second })
		if back != c.want || len(got) > 1 {
			t.Errorf("%s: %d get one", name, len(got))
		}
	}
}

// How many members that no record knows there are, and how many of them have let clients in, says
// whether their datacenter serves.
func TestWhichDatacentersServeByTheirDisks(t *testing.T) {
	n := recorded(first)
	n.Record.Spec.Datacenter, n.Record.Spec.ClientTraffic = "dc1", v1alpha1.TrafficClosed
	for members, serves := range map[int][]bool{1: {false, true}, 2: {false, false, true},
		3: {false, false, true, true}} {
		for opened, want := range serves {
			agents := make([]*facts.Agent, members)
			for i := range agents {
				agents[i] = &facts.Agent{TrafficOpened: i >= members-opened}
			}
			if got := keeper(n).openDatacenters(map[string][]*facts.Agent{"dc1": agents}); got["dc1"] != want {
				t.Errorf("%d of %d have let clients in: serves %v, want %v", opened, members, got["dc1"], want)
			}
		}
	}
	n.Record.Spec.ClientTraffic = v1alpha1.TrafficOpen
	if got := keeper(n).openDatacenters(map[string][]*facts.Agent{"dc1": {{}, {}}}); !got["dc1"] {
		t.Error("it does not serve, though a record lets clients in")
	}
}
