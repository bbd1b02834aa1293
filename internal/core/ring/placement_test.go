package ring

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// testdata/placement.golden is what Cassandra's own strategies answered, in order.
func TestNaturalEndpointsEqualCassandra(t *testing.T) {
	file, err := os.Open("testdata/placement.golden")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var lines []string
	var r *Ring
	var replication Replication
	asked := 0
	for scan := bufio.NewScanner(file); scan.Scan(); {
		line := scan.Text()
		switch {
		case line == "ring":
			lines, r = nil, nil
		case strings.HasPrefix(line, "node "):
			fields := strings.Fields(line)
			lines = append(lines, fmt.Sprintf("%s %s/%s %s", fields[1], fields[2], fields[3], fields[4]))
		case strings.HasPrefix(line, "replication "):
			r = ringOf(t, lines...)
			replication = replicationOf(t, strings.TrimPrefix(line, "replication "))
		default:
			fields := strings.Fields(line)
			token, err := ParseToken(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			if got := r.NaturalEndpoints(replication, token); !slices.Equal(got, fields[1:]) {
				t.Errorf("ring %q, %s, token %s: got %v, want %v", lines, replication, token, got, fields[1:])
			}
			asked++
		}
	}
	if asked < 500 {
		t.Fatalf("only %d answers in the golden file", asked)
	}
}

func TestNaturalEndpoints(t *testing.T) {
	r := ringOf(t, "a dc1/r1 0,30", "b dc1/r1 10", "c dc1/r2 20", "d dc2/r1 5")
	tests := []struct {
		replication string
		token       Token
		want        string
	}{
		{"NetworkTopologyStrategy {dc1=2}", 0, "[a c]"},   // b shares a's rack
		{"NetworkTopologyStrategy {dc1=3}", 0, "[a b c]"}, // one repeat is acceptable
		{"NetworkTopologyStrategy {dc1=1}", 1, "[b]"},
		{"NetworkTopologyStrategy {dc1=2, dc2=1}", 1, "[d b c]"},
		{"NetworkTopologyStrategy {dc1=9, dc2=9, dc3=9}", 21, "[a d b c]"},
		{"NetworkTopologyStrategy {dc3=1}", 0, "[]"},
		{"NetworkTopologyStrategy {}", 0, "[]"},
		{"SimpleStrategy {replication_factor=2}", 20, "[c a]"},
		{"SimpleStrategy {replication_factor=3}", 31, "[a d b]"},
		{"SimpleStrategy {replication_factor=9}", 31, "[a d b c]"},
		{"SimpleStrategy {replication_factor=0}", 31, "[]"},
		{"EverywhereStrategy {}", 31, "[a b c d]"},
		{"LocalStrategy {}", 0, "[]"},
	}
	for _, test := range tests {
		if got := fmt.Sprint(r.NaturalEndpoints(replicationOf(t, test.replication), test.token)); got != test.want {
			t.Errorf("%s, token %s: got %s, want %s", test.replication, test.token, got, test.want)
		}
	}
}

// replicasBySkipping is the replica set of a token as releases before 3.0 found
// it: nodes whose rack was seen are put off until every rack of the datacenter
// was seen, and then come in the order in which they were put off.
func replicasBySkipping(nodes []Node, replication Replication, token Token) []string {
	type owned struct {
		token Token
		node  Node
	}
	var ring []owned
	for _, node := range nodes {
		for _, t := range node.Tokens {
			ring = append(ring, owned{t, node})
		}
	}
	slices.SortFunc(ring, func(a, b owned) int { return slices.Compare([]Token{a.token}, []Token{b.token}) })
	first := slices.IndexFunc(ring, func(o owned) bool { return o.token >= token })
	ring = append(ring[max(first, 0):], ring[:max(first, 0)]...)

	var replicas []string
	if replication.Strategy() == SimpleStrategy {
		for _, o := range ring {
			if len(replicas) < replication.TotalFactor() && !slices.Contains(replicas, o.node.ID) {
				replicas = append(replicas, o.node.ID)
			}
		}
		return replicas
	}
	for _, datacenter := range replication.Datacenters() {
		allRacks := map[string]bool{}
		for _, node := range nodes {
			if node.Datacenter == datacenter {
				allRacks[node.Rack] = true
			}
		}
		var chosen, skipped []string
		seen := map[string]bool{}
		for _, o := range ring {
			if o.node.Datacenter != datacenter || slices.Contains(chosen, o.node.ID) ||
				slices.Contains(skipped, o.node.ID) {
				continue
			}
			switch {
			case len(seen) == len(allRacks):
				chosen = append(chosen, o.node.ID)
			case seen[o.node.Rack]:
				skipped = append(skipped, o.node.ID)
			default:
				seen[o.node.Rack] = true
				chosen = append(chosen, o.node.ID)
				if len(seen) == len(allRacks) {
					chosen = append(chosen, skipped...)
					skipped = nil
				}
			}
		}
		replicas = append(replicas, chosen[:min(len(chosen), replication.Factor(datacenter))]...)
	}
	return replicas
}

func TestNaturalEndpointsAreThoseOfSkipping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		r, err := New(nodes)
		if err != nil {
			t.Fatal(err)
		}
		replication := drawReplication(t)
		for _, token := range append(r.Tokens(), MinToken, MaxToken, Token(rapid.Int64().Draw(t, "token"))) {
			got := slices.Sorted(slices.Values(r.NaturalEndpoints(replication, token)))
			want := slices.Sorted(slices.Values(replicasBySkipping(nodes, replication, token)))
			if !slices.Equal(got, want) {
				t.Fatalf("%s, token %s: got %v, want %v", replication, token, got, want)
			}
		}
	})
}

// The tables that are worked out for all ranges at once hold what the walk from
// each token finds.
func TestTablesEqualNaturalEndpoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		replication := drawReplication(t)
		for _, token := range r.Tokens() {
			var got []string
			for _, table := range r.tables(replication) {
				got = append(got, r.ids(table.row(table.circle.at(token)))...)
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(r.NaturalEndpoints(replication, token)))
			if !slices.Equal(got, want) {
				t.Fatalf("%s, token %s: table has %v, walk finds %v", replication, token, got, want)
			}
		}
	})
}

// In a datacenter of one large and one tiny rack the next token of the tiny one
// is far away.
func TestTableFindsSeldomRacks(t *testing.T) {
	var lines []string
	for n := range 40 {
		lines = append(lines, fmt.Sprintf("big%02d dc1/r1 %d,%d", n, n*10, 1000+n*10))
	}
	r := ringOf(t, append(lines, "tiny dc1/r2 777")...)
	for factor := 1; factor <= 4; factor++ {
		table := r.datacenterTable(&r.datacenters[0], factor)
		replication := topology(t, fmt.Sprint("dc1=", factor))
		for i, token := range r.Tokens() {
			got := slices.Sorted(slices.Values(r.ids(table.row(i))))
			want := slices.Sorted(slices.Values(r.NaturalEndpoints(replication, token)))
			if !slices.Equal(got, want) {
				t.Fatalf("factor %d, token %s: got %v, want %v", factor, token, got, want)
			}
			if factor > 1 && !slices.Contains(got, "tiny") {
				t.Fatalf("factor %d, token %s: no replica in the tiny rack: %v", factor, token, got)
			}
		}
	}
}
