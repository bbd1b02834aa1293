package tokens

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/core/ring"
)

func printNodes(nodes []ring.Node) string {
	var text strings.Builder
	for _, node := range nodes {
		fmt.Fprintf(&text, "%s %s/%s %s\n", node.ID, node.Datacenter, node.Rack, ring.FormatTokens(node.Tokens))
	}
	return text.String()
}

// The tokens themselves: whatever changes them changes what a formation that was
// interrupted would give out the second time.
func TestFormedTokens(t *testing.T) {
	tests := []struct {
		name       string
		formations []Formation
		want       string
	}{
		{"one node, one token", []Formation{{"dc1", 1, 1, racksOf(1)}}, `r0-0 dc1/r0 2177342782468422676
`},
		{"three racks", []Formation{{"dc1", 2, 3, racksOf(1, 1, 1)}},
			`r0-0 dc1/r0 -7323252900300909395,1900119136553866413
r1-0 dc1/r1 -4248795554682650793,4974576482172125015
r2-0 dc1/r2 -1174338209064392190,8049033827790383618
`},
		{"two datacenters of equal shape", []Formation{
			{"dc1", 1, 1, []Rack{{"a", []string{"x"}}, {"b", []string{"y"}}}},
			{"dc2", 1, 1, []Rack{{"a", []string{"z", "w"}}}},
		}, `x dc1/a -3523014627193176567
y dc1/b 5700357409661599241
z dc2/a -7046029254386353132
w dc2/a 2177342782468422676
`},
	}
	for _, test := range tests {
		if got := printNodes(form(t, nil, test.formations...)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestFormFaults(t *testing.T) {
	existing := []ring.Node{{ID: "old", Datacenter: "dc1", Rack: "r1", Tokens: []ring.Token{1}}}
	_, err := Form([]Formation{
		{"dc1", 1, 1, racksOf(1)},
		{"dc2", 0, 1, racksOf(1)},
		{"dc3", 1, 0, racksOf(1)},
		{"dc4", 1, 1, racksOf(0, 0)},
		{"dc5", 1, 1, []Rack{{"r", []string{"a"}}, {"r", []string{"b"}}}},
		{"dc6", 1, 1, []Rack{{"r", []string{"old"}}}},
		{"", 1, 1, []Rack{{"r", []string{"c"}}}},
		{"dc7", 1, 1, []Rack{{"", []string{"d"}}}},
		{"dc8", 1, 1, []Rack{{"r", []string{"", "e", "e"}}}},
		{"dc8", 1, 1, []Rack{{"r", []string{"f"}}}},
		{"dc9", 1, 3, []Rack{{"r", []string{"g", "g"}}, {"s", []string{"h"}}}}, // two ways are tried
	}, existing)
	want := `form datacenters: datacenter dc1 has nodes already: further ones join one by one
datacenter dc2: 0 tokens: want 1 or more
datacenter dc3: replication factor 0: want 1 or more
datacenter dc4 has no nodes
datacenter dc5: rack r is there twice
datacenter dc8 has nodes already: further ones join one by one
make ring: a node has no id
node c has no datacenter
node d has no rack
node e is there twice
node g is there twice
node old is there twice`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	broken := append(slices.Clone(existing),
		ring.Node{ID: "other", Datacenter: "dc1", Rack: "r1", Tokens: []ring.Token{1}})
	if _, err := Form(nil, broken); err == nil ||
		err.Error() != "form datacenters: make ring: token 1 belongs to both old and other" {
		t.Errorf("broken ring: %v", err)
	}
	if nodes, err := Form(nil, existing); err != nil || len(nodes) != 0 {
		t.Errorf("nothing to form: %v, %v", nodes, err)
	}
}

// What is formed is complete, unique in the ring, and the same again.
func TestFormRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 4)
		draw := func(name string) Formation {
			sizes := shape.Filter(func(sizes []int) bool { return slices.Max(sizes) > 0 }).Draw(t, "racks")
			f := Formation{Datacenter: name, Tokens: rapid.IntRange(1, 8).Draw(t, "tokens"),
				ReplicationFactor: rapid.IntRange(1, 4).Draw(t, "factor"), Racks: racksOf(sizes...)}
			for _, rack := range f.Racks {
				for n := range rack.Nodes {
					rack.Nodes[n] = name + "-" + rack.Nodes[n]
				}
			}
			return f
		}
		first, err := Form([]Formation{draw("dc1"), draw("dc2")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// The tokens that the third would get are taken, to make them clash.
		third := draw("dc3")
		clashing, err := Form([]Formation{third}, first)
		if err != nil {
			t.Fatal(err)
		}
		for i := range clashing {
			clashing[i].ID, clashing[i].Datacenter = fmt.Sprint("taken-", i), "dc0"
		}
		existing := slices.Concat(first, clashing)
		got, err := Form([]Formation{third}, existing)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Form([]Formation{third}, slices.Clone(existing))
		if err != nil || printNodes(again) != printNodes(got) {
			t.Fatalf("formed again: %v, %v, at first %v", again, err, got)
		}
		if _, err := ring.New(append(existing, got...)); err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, rack := range third.Racks {
			for _, id := range rack.Nodes {
				node := got[at]
				at++
				if node.ID != id || node.Rack != rack.Name || node.Datacenter != "dc3" ||
					len(node.Tokens) != third.Tokens {
					t.Fatalf("want %s of rack %s with %d tokens, got %+v", id, rack.Name, third.Tokens, node)
				}
				if !slices.IsSorted(node.Tokens) || slices.Contains(node.Tokens, ring.MinToken) {
					t.Fatalf("tokens %v", node.Tokens)
				}
			}
		}
		if at != len(got) {
			t.Fatalf("%d nodes too many", len(got)-at)
		}
	})
}

// Datacenters that form together mix, so that a strategy which does not look at
// datacenters loads them alike.
func TestDatacentersMix(t *testing.T) {
	var formations []Formation
	for dc := range 4 {
		racks := racksOf(2, 2, 2)
		for _, rack := range racks {
			for n := range rack.Nodes {
				rack.Nodes[n] = fmt.Sprintf("dc%d-%s", dc, rack.Nodes[n])
			}
		}
		formations = append(formations, Formation{fmt.Sprint("dc", dc), 16, 3, racks})
	}
	for count := 2; count <= 4; count++ {
		r, err := ring.New(form(t, nil, formations[:count]...))
		if err != nil {
			t.Fatal(err)
		}
		shares := map[string]float64{}
		for _, node := range r.Nodes() {
			for _, token := range node.Tokens {
				at, _ := slices.BinarySearch(r.Tokens(), token)
				shares[node.ID] += r.Tokens()[(at+r.Len()*16-1)%(r.Len()*16)].SizeTo(token)
			}
		}
		for id, share := range shares {
			if mean := 1 / float64(r.Len()); share < mean/2 || share > mean*2 {
				t.Errorf("of %d datacenters %s owns %.3f, the mean is %.3f", count, id, share, mean)
			}
		}
	}
}
