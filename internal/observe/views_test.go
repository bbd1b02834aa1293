package observe

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
)

// said is an answer as it is decoded: with texts and tokens of its own.
func said(load int64, tokens ...int64) *facts.Agent {
	own := func(text string) string { return string([]byte(text)) }
	return &facts.Agent{Ring: &facts.Ring{Keyspaces: map[string]string{"ks": fmt.Sprint(load)},
		Endpoints: []facts.Endpoint{
			{Address: own("10.0.0.1"), HostID: own("host-a"), Status: facts.GossipStatus(own("NORMAL")), Live: true,
				Tokens: append([]int64{}, tokens...), Load: load},
			{Address: own("10.0.0.2"), HostID: own("host-b"), Load: 2 * load},
		}}}
}

// What an answer says is not changed by being kept, and what another node of the cluster said
// already is kept once.
func TestEqualViewsAreKeptOnce(t *testing.T) {
	other := types.NamespacedName{Namespace: "shop", Name: "others"}
	first, same, different, elsewhere := said(1, 5, 6), said(7, 5, 6), said(1, 5, 7), said(1, 5, 6)
	a := &Agents{contacts: map[Target]*contact{}}
	for _, c := range []struct {
		cluster types.NamespacedName
		node    string
		answer  *facts.Agent
	}{{orders, "r1-0", first}, {orders, "r1-1", same}, {orders, "r1-2", different}, {other, "r1-0", elsewhere},
		{orders, "r1-3", &facts.Agent{}}} {
		a.keep(c.cluster, c.answer)
		kept := &contact{}
		kept.set(c.answer, "")
		a.contacts[Target{Cluster: c.cluster, Node: c.node}] = kept
	}
	a.contacts[Target{Cluster: orders, Node: "silent"}] = &contact{}
	for name, c := range map[string]struct {
		got, want *facts.Agent
		shared    bool
	}{
		"of another node, with other loads": {same, said(7, 5, 6), true},
		"another view":                      {different, said(1, 5, 7), false},
		"of another cluster":                {elsewhere, said(1, 5, 6), false},
	} {
		if got, want := *c.got.Ring, *c.want.Ring; !reflect.DeepEqual(got.Endpoints, want.Endpoints) ||
			!reflect.DeepEqual(got.Keyspaces, want.Keyspaces) {
			t.Errorf("%s: kept %+v, it said %+v", name, got, want)
		}
		for i := range c.got.Ring.Endpoints {
			have, of := c.got.Ring.Endpoints[i], first.Ring.Endpoints[i]
			if got := unsafe.StringData(have.HostID) == unsafe.StringData(of.HostID); got != c.shared {
				t.Errorf("%s: endpoint %d shares its texts: %v, want %v", name, i, got, c.shared)
			}
			if got := unsafe.SliceData(have.Tokens) == unsafe.SliceData(of.Tokens); len(of.Tokens) > 0 &&
				got != c.shared {
				t.Errorf("%s: endpoint %d shares its tokens: %v, want %v", name, i, got, c.shared)
			}
		}
	}
	if first.Ring.View() != same.Ring.View() || first.Ring.View() == different.Ring.View() {
		t.Error("views are not told apart by what they are")
	}
}

// To compare views in a pass costs a digest of each that is not kept, which at a thousand nodes is
// half a millisecond.
func TestTheViewOfAKeptAnswerIsNotWorkedOutAgain(t *testing.T) {
	a := &Agents{contacts: map[Target]*contact{}}
	for i, answer := range []*facts.Agent{said(1, 5, 6), said(7, 5, 6)} {
		a.keep(orders, answer)
		kept := &contact{}
		kept.set(answer, "")
		a.contacts[Target{Cluster: orders, Node: fmt.Sprint(i)}] = kept
		if allocations := testing.AllocsPerRun(10, func() { _ = answer.Ring.View() }); allocations != 0 {
			t.Errorf("answer %d: it is worked out again, with %.0f allocations", i, allocations)
		}
	}
}
