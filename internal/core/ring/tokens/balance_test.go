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
		if n, _ := fmt.Sscanf(line, "command generatetokens -n %d -t %d --rf %d --racks %s", &run.count, &run.tokens, &run.factor, &racks); n == 4 {
			for rack := range strings.SplitSeq(racks, ",") {
				var size int
				fmt.Sscan(rack, &size)
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
		tokens, err := ring.ParseTokens(strings.TrimSuffix(list, "]"))
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		last := &runs[len(runs)-1]
		last.nodes = append(last.nodes, ring.Node{ID: fmt.Sprint("n", id), Datacenter: "dc1", Rack: fmt.Sprint("r", rack), Tokens: tokens})
	})
	return runs
}

func TestShow(t *testing.T) {
	for _, run := range readToolRuns(t) {
		var racks []Rack
		for i, size := range run.racks {
			rack := Rack{Name: fmt.Sprint("r", i)}
			for n := range size {
				rack.Nodes = append(rack.Nodes, fmt.Sprint("r", i, "-", n))
			}
			racks = append(racks, rack)
		}
		formed, err := Form([]Formation{{Datacenter: "dc1", Tokens: run.tokens, ReplicationFactor: run.factor, Racks: racks}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// one by one
		var joined []ring.Node
		for _, n := range run.nodes {
			tk, err := Allocate(joined, Join{Datacenter: "dc1", Rack: n.Rack, Tokens: run.tokens, ReplicationFactor: run.factor, Start: 77})
			if err != nil {
				t.Fatal(err)
			}
			joined = append(joined, ring.Node{ID: n.ID, Datacenter: "dc1", Rack: n.Rack, Tokens: tk})
		}
		t.Logf("%s\n tool  %s (in rack %s)\n formed %s (%s)\n joined %s (%s)", run.name(), measure(t, run.nodes, "dc1", run.factor), measureByRack(t, run.nodes, "dc1", run.factor),
			measure(t, formed, "dc1", run.factor), measureByRack(t, formed, "dc1", run.factor), measure(t, joined, "dc1", run.factor), measureByRack(t, joined, "dc1", run.factor))
	}
}
