package tokens

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/ring"
)

// goldenJoins is one series of joins in testdata/allocation.golden.
type goldenJoins struct {
	name   string
	factor int
	tokens int
	nodes  []ring.Node // tokens in the order in which Cassandra returned them
}

func readGoldenJoins(t *testing.T) []goldenJoins {
	t.Helper()
	var all []goldenJoins
	eachLine(t, "testdata/allocation.golden", func(line string) {
		var g goldenJoins
		if n, _ := fmt.Sscanf(line, "joins rf=%d tokens=%d", &g.factor, &g.tokens); n == 2 {
			all = append(all, g)
			return
		}
		last := &all[len(all)-1]
		var id, rack, text string
		if _, err := fmt.Sscanf(line, "node %s %s %s", &id, &rack, &text); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		tokens, err := parseTokens(text)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		last.nodes = append(last.nodes, ring.Node{ID: id, Datacenter: "dc1", Rack: rack, Tokens: tokens})
		last.name = fmt.Sprintf("rf=%d tokens=%d racks=%s", last.factor, last.tokens, rackOrder(last.nodes))
	})
	return all
}

func rackOrder(nodes []ring.Node) string {
	var order strings.Builder
	for _, node := range nodes {
		order.WriteString(node.Rack)
	}
	return order.String()
}

func eachLine(t *testing.T, path string, do func(line string)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); line != "" && line[0] != '#' {
			do(line)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// Given the same ring, and the same start where Cassandra drew one, the allocator
// chooses the very tokens that Cassandra chose.
func TestAllocatorEqualsCassandra(t *testing.T) {
	for _, g := range readGoldenJoins(t) {
		t.Run(g.name, func(t *testing.T) {
			for i, node := range g.nodes {
				join := Join{ID: node.ID, Datacenter: "dc1", Rack: node.Rack, Tokens: g.tokens,
					ReplicationFactor: g.factor}
				ways := waysFor(cassandraRackCount(g.nodes[:i], node.Rack), g.factor)
				if len(ways) != 1 {
					t.Fatalf("node %s in rack %s: Cassandra has no way, but did it", node.ID, node.Rack)
				}
				got := allocate(g.nodes[:i], join, ways[0], node.Tokens[0])
				slices.Sort(got)
				want := slices.Sorted(slices.Values(node.Tokens))
				if !slices.Equal(got, want) {
					t.Fatalf("node %s in rack %s:\n got %v\nwant %v", node.ID, node.Rack, got, want)
				}
			}
		})
	}
}

// cassandraRackCount is the number of racks as TokenAllocation#createStrategy
// counts it: 1 for the first node of a rack.
func cassandraRackCount(nodes []ring.Node, rack string) int {
	racks := map[string]bool{}
	for _, node := range nodes {
		racks[node.Rack] = true
	}
	if !racks[rack] {
		return 1
	}
	return len(racks)
}
