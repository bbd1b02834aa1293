package ring

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const quarter = 1 << 62

// quarters is a datacenter of four nodes with a quarter of the ring each.
func quarters(t testing.TB) *Ring {
	t.Helper()
	return ringOf(t,
		fmt.Sprint("a dc1/r1 ", -quarter), "b dc1/r2 0",
		fmt.Sprint("c dc1/r1 ", quarter), fmt.Sprint("d dc1/r2 ", uint64(2*quarter-1)))
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func printShares(shares map[string]float64) string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(shares)) {
		text += fmt.Sprintf("%s=%.3f ", id, shares[id])
	}
	return text
}

func TestShares(t *testing.T) {
	r := quarters(t)
	if got := printShares(r.PrimaryShares()); got != "a=0.250 b=0.250 c=0.250 d=0.250 " {
		t.Errorf("primary shares %s", got)
	}
	tests := []struct{ replication, want string }{
		{"NetworkTopologyStrategy {dc1=1}", "a=0.250 b=0.250 c=0.250 d=0.250 "},
		{"NetworkTopologyStrategy {dc1=2}", "a=0.500 b=0.500 c=0.500 d=0.500 "},
		{"NetworkTopologyStrategy {dc1=4}", "a=1.000 b=1.000 c=1.000 d=1.000 "},
		{"NetworkTopologyStrategy {dc2=4}", "a=0.000 b=0.000 c=0.000 d=0.000 "},
		{"SimpleStrategy {replication_factor=3}", "a=0.750 b=0.750 c=0.750 d=0.750 "},
		{"EverywhereStrategy {}", "a=1.000 b=1.000 c=1.000 d=1.000 "},
		{"LocalStrategy {}", "a=0.000 b=0.000 c=0.000 d=0.000 "},
	}
	for _, test := range tests {
		if got := printShares(r.EffectiveShares(replicationOf(t, test.replication))); got != test.want {
			t.Errorf("%s: %s", test.replication, got)
		}
	}
}

func TestSums(t *testing.T) {
	r := ringOf(t, "a dc1/r1 0", "b dc1/r2 10", "c dc1/r1 20", "d dc2/r1 30")
	shares := map[string]float64{"a": 1, "b": 2, "c": 4, "d": 8, "x": 16}
	if got := fmt.Sprint(r.ByDatacenter(shares)); got != "map[dc1:7 dc2:8]" {
		t.Errorf("by datacenter %s", got)
	}
}

// Effective shares of a datacenter add up to its factor, or its nodes.
func TestEffectiveSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		replication := drawReplication(t)
		shares := r.EffectiveShares(replication)
		for id, share := range shares {
			if share < 0 || share > 1.000001 {
				t.Fatalf("%s holds %f of the data", id, share)
			}
		}
		if len(shares) != r.Len() {
			t.Fatalf("%d shares of %d nodes", len(shares), r.Len())
		}
		sums := r.ByDatacenter(shares)
		if replication.Strategy() == SimpleStrategy {
			total := 0.0
			for _, sum := range sums {
				total += sum
			}
			if want := float64(min(replication.TotalFactor(), r.Len())); !near(total, want) {
				t.Fatalf("%s: shares add up to %f, want %f", replication, total, want)
			}
			return
		}
		for _, datacenter := range r.Datacenters() {
			want := float64(min(replication.Factor(datacenter), len(r.findDatacenter(datacenter).nodes)))
			if !near(sums[datacenter], want) {
				t.Fatalf("%s: shares in %s add up to %f, want %f", replication, datacenter, sums[datacenter], want)
			}
		}
	})
}

func TestLoads(t *testing.T) {
	keyspaces := []Keyspace{
		{"one", topology(t, "dc1=1")},
		{"two", topology(t, "dc1=2")},
		{"system_auth", topology(t, "dc1=2")},
		{"system", Local()},
	}
	loads := quarters(t).Loads(keyspaces)
	for _, id := range []string{"a", "b", "c", "d"} {
		if load := loads[id]; !near(load.Share, 0.25) || load.Average != 0.25 {
			t.Errorf("%s: %+v", id, load)
		}
	}
	// c is the only node of its rack and owns half of the ring; a and b share the
	// rest. At a factor of 2 its rack needs a replica of every range, so c holds
	// all, and a that of c's own range as well as its own.
	r := ringOf(t, fmt.Sprint("a dc1/r1 ", quarter), fmt.Sprint("b dc1/r1 ", uint64(2*quarter-1)), "c dc1/r2 0")
	for _, test := range []struct {
		keyspaces []Keyspace
		id        string
		share     float64
		because   string
	}{
		{keyspaces[:1], "a", 0.25, "[one]"},
		{keyspaces[:1], "c", 0.5, "[one]"},
		{keyspaces[1:], "a", 0.375, "[system_auth two]"},
		{keyspaces[1:], "b", 0.125, "[system_auth two]"},
		{keyspaces[1:], "c", 0.5, "[system_auth two]"},
		{keyspaces, "a", 0.375, "[system_auth two]"},
		{keyspaces, "b", 0.25, "[one]"},
	} {
		load := r.Loads(test.keyspaces)[test.id]
		if !near(load.Share, test.share) || !near(load.Average, 1.0/3) || fmt.Sprint(load.Keyspaces) != test.because {
			t.Errorf("%d keyspaces, %s: %+v", len(test.keyspaces), test.id, load)
		}
	}
	// Datacenters that hold nothing.
	if load := r.Loads(keyspaces[3:])["c"]; load.Share != 0 || load.Keyspaces != nil {
		t.Errorf("nothing replicated: %+v", load)
	}
}
