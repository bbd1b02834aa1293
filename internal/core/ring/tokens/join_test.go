package tokens

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/core/ring"
)

func TestAllocateFaults(t *testing.T) {
	nodes := []ring.Node{{ID: "a", Datacenter: "dc1", Rack: "r1", Tokens: []ring.Token{1}}}
	good := Join{ID: "b", Datacenter: "dc1", Rack: "r1", Tokens: 1, ReplicationFactor: 1}
	tests := []struct {
		change func(*Join)
		want   string
	}{
		{func(j *Join) { j.ID = "" }, "the joining node has no id"},
		{func(j *Join) { j.ID = "a" }, "node a has tokens already"},
		{func(j *Join) { j.Datacenter = "" }, "node b has no datacenter"},
		{func(j *Join) { j.Rack = "" }, "node b has no rack"},
		{func(j *Join) { j.Tokens = 0 }, "0 tokens: want 1 or more"},
		{func(j *Join) { j.ReplicationFactor = 0 }, "replication factor 0: want 1 or more"},
	}
	for _, test := range tests {
		join := good
		test.change(&join)
		if tokens, err := allocated(nodes, join); err == nil || err.Error() != "allocate tokens: "+test.want {
			t.Errorf("got %v, %v; want %s", tokens, err, test.want)
		}
	}
	if tokens, err := allocated(nodes, good); err != nil || len(tokens) != 1 {
		t.Errorf("a good one: %v, %v", tokens, err)
	}
}

func TestWays(t *testing.T) {
	tests := []struct {
		racks, factor int
		want          []way
	}{
		{1, 1, []way{primaryInDatacenter}},
		{5, 1, []way{primaryInDatacenter}},
		{3, 3, []way{primaryInRack}},
		{4, 3, []way{replicatedByRack}},
		{1, 3, []way{replicatedByNode}},
		{2, 3, []way{replicatedByNode, primaryInRack}},
		{1, 2, []way{replicatedByNode}},
		{2, 2, []way{primaryInRack}},
	}
	for _, test := range tests {
		if got := waysFor(test.racks, test.factor); !slices.Equal(got, test.want) {
			t.Errorf("%d racks, factor %d: %v, want %v", test.racks, test.factor, got, test.want)
		}
	}
}

// Racks are counted from the nodes of the datacenter, the joining node, and those
// that are planned.
func TestRackCount(t *testing.T) {
	nodes := []ring.Node{
		{ID: "a", Datacenter: "dc1", Rack: "r1", Tokens: []ring.Token{1}},
		{ID: "b", Datacenter: "dc1", Rack: "r2", Tokens: []ring.Token{2}},
		{ID: "c", Datacenter: "dc2", Rack: "r9", Tokens: []ring.Token{3}},
	}
	for want, join := range map[int]Join{
		2: {Datacenter: "dc1", Rack: "r1"},
		3: {Datacenter: "dc1", Rack: "r3", Racks: []string{"r1", "r3"}},
		4: {Datacenter: "dc1", Rack: "r1", Racks: []string{"r3", "r4"}},
		1: {Datacenter: "dc3", Rack: "r1"},
	} {
		if got := join.rackCount(nodes); got != want {
			t.Errorf("%+v: %d racks, want %d", join, got, want)
		}
	}
}

// With fewer racks than replicas the better of two ways is taken, which is not
// always the same.
func TestAllocateTakesTheBetterWay(t *testing.T) {
	for _, test := range []struct {
		sizes []int
		rack  string
		want  way
	}{
		{[]int{3, 3}, "r0", replicatedByNode},
		{[]int{7, 2}, "r1", primaryInRack},
	} {
		nodes := form(t, nil, Formation{Datacenter: "dc1", Tokens: 16, ReplicationFactor: 3,
			Racks: racksOf(test.sizes...)})
		join := Join{ID: "new", Datacenter: "dc1", Rack: test.rack, Tokens: 16, ReplicationFactor: 3}
		got, err := allocated(nodes, join)
		if err != nil {
			t.Fatal(err)
		}
		want := allocate(nodes, join, test.want, 0)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("racks of %v: not the tokens of way %d", test.sizes, test.want)
		}
	}
}

// A clash with another datacenter moves the token on by one, as Cassandra does.
func TestAllocateAvoidsOtherDatacenters(t *testing.T) {
	join := Join{ID: "new", Datacenter: "dc1", Rack: "r1", Tokens: 4, ReplicationFactor: 1, Start: 1000}
	nodes := form(t, nil, Formation{Datacenter: "dc1", Tokens: 4, ReplicationFactor: 1, Racks: racksOf(2)})
	alone, err := allocated(nodes, join)
	if err != nil {
		t.Fatal(err)
	}
	other := ring.Node{ID: "other", Datacenter: "dc2", Rack: "r1",
		Tokens: []ring.Token{alone[0], alone[2], alone[2] + 1}}
	got, err := allocated(append(nodes, other), join)
	if err != nil {
		t.Fatal(err)
	}
	if want := []ring.Token{alone[0] + 1, alone[1], alone[2] + 2, alone[3]}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// So does the start of the first node of a datacenter.
	join = Join{ID: "new", Datacenter: "dc3", Rack: "r1", Tokens: 1, ReplicationFactor: 1, Start: alone[2]}
	if got, err := allocated(append(nodes, other), join); err != nil || !slices.Equal(got, []ring.Token{alone[2] + 2}) {
		t.Errorf("start: %v, %v", got, err)
	}
	join.Start = ring.MinToken
	if got, err := allocated(nil, join); err != nil || !slices.Equal(got, []ring.Token{ring.MinToken + 1}) {
		t.Errorf("least token: %v, %v", got, err)
	}
	join.Start = ring.MaxToken
	if got, err := allocated([]ring.Node{{ID: "a", Datacenter: "dc2", Rack: "r", Tokens: []ring.Token{ring.MaxToken}}},
		join); err != nil || !slices.Equal(got, []ring.Token{ring.MinToken + 1}) {
		t.Errorf("greatest token: %v, %v", got, err)
	}
}

// A joining node takes what the others have too much, not halves: it never gets
// more than a fair share and leaves none of its rack with much more. In a rack
// with about as many nodes as it has tokens, all of them evenly spaced, it gets
// less at first; later joins make up for that (see TestGrowth).
func TestJoinTakesItsLoad(t *testing.T) {
	for size := 1; size <= 24; size++ {
		nodes := form(t, nil, Formation{Datacenter: "dc1", Tokens: 16, ReplicationFactor: 3,
			Racks: racksOf(size, size, size)})
		nodes = join(t, nodes, 16, 3, nil, "r1")
		r, err := ring.New(nodes)
		if err != nil {
			t.Fatal(err)
		}
		replication, err := ring.NetworkTopology(map[string]int{"dc1": 3})
		if err != nil {
			t.Fatal(err)
		}
		share := r.EffectiveShares(replication)["join-00"]
		if fair := 1 / float64(size+1); share < fair*0.72 || share > fair*1.02 || size <= 5 && share < fair*0.94 {
			t.Errorf("joining a rack of %d it holds %.4f, a fair share is %.4f", size, share, fair)
		}
		if got := measureByRack(t, nodes, "dc1", 3); got.most > 1.06 {
			t.Errorf("after a join to a rack of %d its nodes hold %s of the mean", size, got)
		}
	}
}

// Nodes may have come with other numbers of tokens, or none may be there.
func TestAllocateRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []ring.Node
		for i := range rapid.IntRange(0, 10).Draw(t, "nodes") {
			join := Join{
				ID:                fmt.Sprint("n", i),
				Datacenter:        rapid.SampledFrom([]string{"dc1", "dc1", "dc2"}).Draw(t, "datacenter"),
				Rack:              rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "rack"),
				Racks:             rapid.SliceOfN(rapid.SampledFrom([]string{"r1", "r2", "r5"}), 0, 2).Draw(t, "racks"),
				Tokens:            rapid.IntRange(1, 9).Draw(t, "tokens"),
				ReplicationFactor: rapid.IntRange(1, 4).Draw(t, "factor"),
				Start:             ring.Token(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2)).Draw(t, "start")),
			}
			got, err := allocated(nodes, join)
			if err != nil {
				t.Fatal(err)
			}
			again, err := allocated(slices.Clone(nodes), join)
			if err != nil || !slices.Equal(again, got) {
				t.Fatalf("allocated again: %v, %v, at first %v", again, err, got)
			}
			if len(got) != join.Tokens || !slices.IsSorted(got) || slices.Contains(got, ring.MinToken) {
				t.Fatalf("%d tokens wanted: %v", join.Tokens, got)
			}
			nodes = append(nodes, ring.Node{ID: join.ID, Datacenter: join.Datacenter, Rack: join.Rack, Tokens: got})
			if _, err := ring.New(nodes); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkAllocate(b *testing.B) {
	for _, racks := range []int{3, 4} {
		b.Run(fmt.Sprint(racks, " racks"), func(b *testing.B) {
			sizes := slices.Repeat([]int{999 / racks}, racks)
			nodes := form(b, nil, Formation{Datacenter: "dc1", Tokens: 16, ReplicationFactor: 3,
				Racks: racksOf(sizes...)})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := allocated(nodes, Join{ID: "new", Datacenter: "dc1", Rack: "r1", Tokens: 16,
					ReplicationFactor: 3}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// allocated is Allocate among nodes whose ring is not made yet.
func allocated(nodes []ring.Node, join Join) ([]ring.Token, error) {
	r, err := ring.New(nodes)
	if err != nil {
		return nil, err
	}
	return Allocate(r, nodes, join)
}

func parseTokens(text string) ([]ring.Token, error) {
	var tokens []ring.Token
	for part := range strings.SplitSeq(text, ",") {
		t, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, ring.Token(t))
	}
	return tokens, nil
}
