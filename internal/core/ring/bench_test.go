package ring

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// largeRing has nodes with 16 random tokens each, in datacenters of three racks.
func largeRing(b *testing.B, datacenters, nodes int) *Ring {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var all []Node
	for n := range nodes {
		node := Node{ID: fmt.Sprintf("n%04d", n), Datacenter: fmt.Sprint("dc", n%datacenters),
			Rack: fmt.Sprint("r", n/datacenters%3)}
		for range 16 {
			node.Tokens = append(node.Tokens, Token(random.Uint64()))
		}
		all = append(all, node)
	}
	r, err := New(all)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// twentyKeyspaces are replicated in four ways.
func twentyKeyspaces(b *testing.B, datacenters int) []Keyspace {
	b.Helper()
	var keyspaces []Keyspace
	for i := range 20 {
		factors := map[string]int{}
		for dc := range datacenters {
			factors[fmt.Sprint("dc", dc)] = 2 + (i+dc)%2
			if i%4 == 0 {
				factors[fmt.Sprint("dc", dc)] = 3
			}
		}
		replication, err := NetworkTopology(factors)
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			replication, _ = Simple(3)
		}
		keyspaces = append(keyspaces, Keyspace{fmt.Sprint("k", i), replication})
	}
	return keyspaces
}

func BenchmarkNew(b *testing.B) {
	nodes := largeRing(b, 3, 1000).Nodes()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(nodes); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGuard is what a guard costs that starts from a ring: preparing the
// answers and asking once, for 1,000 nodes and 20 keyspaces.
func BenchmarkGuard(b *testing.B) {
	for _, datacenters := range []int{1, 3} {
		for _, level := range []Consistency{LocalQuorum, Quorum} {
			b.Run(fmt.Sprintf("%d datacenters/%s", datacenters, level), func(b *testing.B) {
				r, keyspaces := largeRing(b, datacenters, 1000), twentyKeyspaces(b, datacenters)
				b.ReportAllocs()
				for b.Loop() {
					p, err := NewProtection(r, keyspaces, level)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := p.Check([]string{"n0500"}, []string{"n0001"}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCheck is a further question to the same Protection.
func BenchmarkCheck(b *testing.B) {
	r := largeRing(b, 3, 1000)
	p, err := NewProtection(r, twentyKeyspaces(b, 3), LocalQuorum)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Check([]string{"n0500"}, []string{"n0001"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNextWave takes a whole rack of 333 nodes.
func BenchmarkNextWave(b *testing.B) {
	r := largeRing(b, 1, 1000)
	three, err := NetworkTopology(map[string]int{"dc0": 3})
	if err != nil {
		b.Fatal(err)
	}
	p, err := NewProtection(r, []Keyspace{{"k", three}}, LocalQuorum)
	if err != nil {
		b.Fatal(err)
	}
	var pending []string
	for _, node := range r.Nodes() {
		pending = append(pending, node.ID)
	}
	b.ReportAllocs()
	for b.Loop() {
		wave, err := p.NextWave(pending, nil, 1000, Proceed)
		if err != nil || len(wave.Nodes) < 333 {
			b.Fatal(len(wave.Nodes), err)
		}
	}
}

func BenchmarkLoads(b *testing.B) {
	r, keyspaces := largeRing(b, 3, 1000), twentyKeyspaces(b, 3)
	b.ReportAllocs()
	for b.Loop() {
		if loads := r.Loads(keyspaces); len(loads) != 1000 {
			b.Fatal(len(loads))
		}
	}
}
