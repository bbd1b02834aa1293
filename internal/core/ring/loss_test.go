package ring

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each keyspace of which the replicas that are up may lack a write is named, with who is up and
// down of the range that is worst off.
func TestWhatIsLostWithANode(t *testing.T) {
	keyspaces := []Keyspace{{"three", topology(t, "dc1=3")}, {"pair", topology(t, "dc1=2")},
		{"single", topology(t, "dc1=1")}, {"far", topology(t, "dc2=3")}}
	p := protectionOf(t, twoDatacenters(t), LocalQuorum, keyspaces...)
	for down, want := range map[string]string{
		"":   "single: [] up, [] down, 1 needed",
		"a2": "single: [] up, [] down, 1 needed", // of its rack: they have no range in common
		"b1": "pair: [] up, [b1] down, 1 needed; single: [] up, [] down, 1 needed; three: [c1] up, [b1] down, 2 needed",
		"x":  "single: [] up, [] down, 1 needed",
	} {
		shortages, err := p.Shortages("a1", strings.Fields(down))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range shortages {
			got = append(got, fmt.Sprintf("%s: %v up, %v down, %d needed", strings.Join(s.Keyspaces, ", "), s.Up,
				s.Down, s.Needed))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("with %q down: %s, want %s", down, text, want)
		}
	}
	if _, err := p.Shortages("nobody", nil); err == nil {
		t.Error("a node that is not in the ring is judged")
	}
}

// Few nodes are chosen that have all that one has.
func TestWhoHasWhatANodeHas(t *testing.T) {
	p := protectionOf(t, twoDatacenters(t), LocalQuorum, Keyspace{"three", topology(t, "dc1=3")})
	for among, want := range map[string]int{"a2": 0, "b1 b2": 2, "b1 b2 c1 c2 a2 x y z": 2, "": 0} {
		got, err := p.Holders("a1", strings.Fields(among))
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range got {
			if node == "a1" || !slices.Contains(strings.Fields(among), node) {
				t.Errorf("among %q: %v", among, got)
			}
		}
		if len(got) != want {
			t.Errorf("among %q: %v, want %d", among, got, want)
		}
	}
}
