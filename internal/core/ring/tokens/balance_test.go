package tokens

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/ring"
)

// balance is the least and the greatest share in a datacenter as multiples of
// the mean.
type balance struct{ least, most float64 }

func (b balance) String() string { return fmt.Sprintf("%.3f to %.3f", b.least, b.most) }

// measure is the balance of what the nodes replicate.
func measure(t *testing.T, nodes []ring.Node, datacenter string, factor int) balance {
	t.Helper()
	r, err := ring.New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	replication, err := ring.NetworkTopology(map[string]int{datacenter: factor})
	if err != nil {
		t.Fatal(err)
	}
	shares := r.EffectiveShares(replication)
	sum, count := 0.0, 0
	least, most := math.Inf(1), 0.0
	for _, node := range nodes {
		if node.Datacenter == datacenter {
			share := shares[node.ID]
			sum, count = sum+share, count+1
			least, most = min(least, share), max(most, share)
		}
	}
	mean := sum / float64(count)
	return balance{least / mean, most / mean}
}

// measureByRack is the worst balance within any one rack.
func measureByRack(t *testing.T, nodes []ring.Node, datacenter string, factor int) balance {
	t.Helper()
	r, err := ring.New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	replication, err := ring.NetworkTopology(map[string]int{datacenter: factor})
	if err != nil {
		t.Fatal(err)
	}
	shares := r.EffectiveShares(replication)
	byRack := map[string][]float64{}
	for _, node := range nodes {
		if node.Datacenter == datacenter {
			byRack[node.Rack] = append(byRack[node.Rack], shares[node.ID])
		}
	}
	worst := balance{1, 1}
	for _, rack := range slices.Sorted(maps.Keys(byRack)) {
		sum := 0.0
		for _, share := range byRack[rack] {
			sum += share
		}
		mean := sum / float64(len(byRack[rack]))
		worst.least = min(worst.least, slices.Min(byRack[rack])/mean)
		worst.most = max(worst.most, slices.Max(byRack[rack])/mean)
	}
	return worst
}

// toolRun is one command in testdata/generatetokens.golden.
type toolRun struct {
	count, tokens, factor int
	racks                 []int
	nodes                 []ring.Node
}

func (r toolRun) name() string {
	return strings.ReplaceAll(fmt.Sprintf("n=%d,t=%d,rf=%d,racks=%v", r.count, r.tokens, r.factor, r.racks), " ", "-")
}

func readToolRuns(t *testing.T) []toolRun {
	t.Helper()
	var runs []toolRun
	eachLine(t, "testdata/generatetokens.golden", func(line string) {
		var run toolRun
		var racks string
		if n, _ := fmt.Sscanf(line, "command generatetokens -n %d -t %d --rf %d --racks %s", &run.count, &run.tokens,
			&run.factor, &racks); n == 4 {
			for rack := range strings.SplitSeq(racks, ",") {
				var size int
				if _, err := fmt.Sscan(rack, &size); err != nil {
					t.Fatalf("line %q: %v", line, err)
				}
				run.racks = append(run.racks, size)
			}
			runs = append(runs, run)
			return
		}
		var id, rack int
		if _, err := fmt.Sscanf(line, "Node %d rack %d:", &id, &rack); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		_, list, _ := strings.Cut(line, "[")
		tokens, err := parseTokens(strings.TrimSuffix(list, "]"))
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		last := &runs[len(runs)-1]
		last.nodes = append(last.nodes, ring.Node{ID: fmt.Sprint("n", id), Datacenter: "dc1",
			Rack: fmt.Sprint("r", rack), Tokens: tokens})
	})
	return runs
}

// racksOf are racks r0, r1 ... of the given sizes.
func racksOf(sizes ...int) []Rack {
	var racks []Rack
	for r, size := range sizes {
		rack := Rack{Name: fmt.Sprint("r", r)}
		for n := range size {
			rack.Nodes = append(rack.Nodes, fmt.Sprintf("r%d-%d", r, n))
		}
		racks = append(racks, rack)
	}
	return racks
}

func form(t testing.TB, existing []ring.Node, formations ...Formation) []ring.Node {
	t.Helper()
	nodes, err := Form(formations, existing)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// join lets nodes join dc1, one for each rack named.
func join(t testing.TB, nodes []ring.Node, count, factor int, racks []string, order ...string) []ring.Node {
	t.Helper()
	nodes = slices.Clone(nodes)
	for i, rack := range order {
		node := ring.Node{ID: fmt.Sprintf("join-%02d", i), Datacenter: "dc1", Rack: rack}
		tokens, err := allocated(nodes, Join{
			ID: node.ID, Datacenter: "dc1", Rack: rack, Racks: racks, Tokens: count, ReplicationFactor: factor,
			Start: ring.Token(i) * 1e15,
		})
		if err != nil {
			t.Fatal(err)
		}
		node.Tokens = tokens
		nodes = append(nodes, node)
	}
	return nodes
}

// Nodes that form a datacenter, or join one after the other, are never worse
// balanced than with the tokens that Cassandra's own tool computes beforehand.
func TestBalanceAgainstTheTool(t *testing.T) {
	for _, run := range readToolRuns(t) {
		t.Run(run.name(), func(t *testing.T) {
			tool := measure(t, run.nodes, "dc1", run.factor)
			formed := form(t, nil, Formation{Datacenter: "dc1", Tokens: run.tokens, ReplicationFactor: run.factor,
				Racks: racksOf(run.racks...)})
			got := measure(t, formed, "dc1", run.factor)
			if got.least < tool.least || got.most > tool.most {
				t.Errorf("formed %s, the tool has %s", got, tool)
			}
			var order, racks []string
			for _, node := range run.nodes {
				order = append(order, node.Rack)
			}
			for r := range run.racks {
				racks = append(racks, fmt.Sprint("r", r))
			}
			joined := join(t, nil, run.tokens, run.factor, racks, order...)
			got, tool = measureByRack(t, joined, "dc1", run.factor), measureByRack(t, run.nodes, "dc1", run.factor)
			if got.most > tool.most+0.001 || got.most-got.least > tool.most-tool.least+0.03 {
				t.Errorf("joined %s within a rack, the tool has %s", got, tool)
			}
		})
	}
}

// Where the racks are equal all nodes hold the same, whatever the factor; where
// there are as many as replicas, all nodes of a rack do.
func TestFormedShares(t *testing.T) {
	tests := []struct {
		sizes  []int
		tokens int
		factor int
		whole  balance
		rack   balance
	}{
		{[]int{1}, 16, 3, balance{1, 1}, balance{1, 1}},
		{[]int{1, 1, 1}, 16, 3, balance{1, 1}, balance{1, 1}},
		{[]int{3, 3, 3}, 16, 3, balance{1, 1}, balance{1, 1}},
		{[]int{333, 333, 333}, 16, 3, balance{1, 1}, balance{1, 1}},
		{[]int{7, 7, 7}, 1, 3, balance{1, 1}, balance{1, 1}},
		{[]int{5}, 4, 3, balance{1, 1}, balance{1, 1}},
		{[]int{4, 4}, 8, 3, balance{1, 1}, balance{1, 1}},
		{[]int{2, 2, 2, 2, 2}, 16, 3, balance{1, 1}, balance{1, 1}},
		{[]int{3, 3, 3}, 4, 2, balance{1, 1}, balance{1, 1}},
		{[]int{3, 3, 3}, 4, 4, balance{1, 1}, balance{1, 1}},
		{[]int{4, 2, 1}, 4, 1, balance{1, 1}, balance{1, 1}},
		{[]int{0, 3, 0, 3}, 4, 2, balance{1, 1}, balance{1, 1}},
		{[]int{4, 3, 2}, 16, 3, balance{0.75, 1.5}, balance{1, 1}},
		{[]int{5, 4}, 16, 3, balance{1, 1}, balance{1, 1}},
		{[]int{6, 2}, 16, 3, balance{0.88, 1.34}, balance{1, 1}},
		{[]int{3, 3, 2, 2}, 16, 3, balance{0.85, 1.2}, balance{0.86, 1.11}},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(fmt.Sprint(test.sizes, test.tokens, test.factor), " ", ","), func(t *testing.T) {
			nodes := form(t, nil, Formation{Datacenter: "dc1", Tokens: test.tokens, ReplicationFactor: test.factor,
				Racks: racksOf(test.sizes...)})
			const rounding = 1e-6
			if got := measure(t, nodes, "dc1", test.factor); got.least < test.whole.least-rounding ||
				got.most > test.whole.most+rounding {
				t.Errorf("nodes hold %s of the mean, want %s", got, test.whole)
			}
			if got := measureByRack(t, nodes, "dc1", test.factor); got.least < test.rack.least-rounding ||
				got.most > test.rack.most+rounding {
				t.Errorf("within a rack nodes hold %s of the mean, want %s", got, test.rack)
			}
		})
	}
}

// A datacenter that formed evenly stays balanced as it grows.
func TestGrowth(t *testing.T) {
	tests := []struct {
		name   string
		sizes  []int
		tokens int
		factor int
		order  string
		within balance // within each rack, after every join
	}{
		{"from three nodes to six", []int{1, 1, 1}, 16, 3, "r0 r1 r2", balance{0.969, 1.031}},
		{"racks of three doubled", []int{3, 3, 3}, 16, 3, "r0 r1 r2 r0 r1 r2 r0 r1 r2", balance{0.969, 1.031}},
		{"racks of twelve, one grown by half", []int{12, 12, 12}, 16, 3, "r0 r0 r0 r0 r0 r0", balance{0.72, 1.06}},
		{"four tokens", []int{3, 3, 3}, 4, 3, "r0 r0 r0 r0", balance{0.81, 1.12}},
		{"one more of many", []int{30, 30, 30}, 16, 3, "r0 r1", balance{0.87, 1.04}},
		{"one rack", []int{4}, 16, 3, "r0 r0 r0 r0", balance{0.97, 1.03}},
		{"five racks", []int{2, 2, 2, 2, 2}, 16, 3, "r0 r1 r2 r3 r4", balance{0.93, 1.08}},
		{"two racks at a factor of three", []int{3, 3}, 16, 3, "r0 r1 r0 r1", balance{0.87, 1.06}},
		{"a factor of one", []int{3}, 16, 1, "r0 r0 r0", balance{0.969, 1.031}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nodes := form(t, nil, Formation{Datacenter: "dc1", Tokens: test.tokens, ReplicationFactor: test.factor,
				Racks: racksOf(test.sizes...)})
			order := strings.Fields(test.order)
			for i := range order {
				grown := join(t, nodes, test.tokens, test.factor, nil, order[:i+1]...)
				if got := measureByRack(t, grown, "dc1", test.factor); got.least < test.within.least ||
					got.most > test.within.most {
					t.Errorf("after %d joins nodes of a rack hold %s of its mean, want %s", i+1, got, test.within)
				}
			}
		})
	}
}
