package ring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func protectionOf(t testing.TB, r *Ring, consistency Consistency, keyspaces ...Keyspace) *Protection {
	t.Helper()
	p, err := NewProtection(r, keyspaces, consistency)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkOf(t testing.TB, p *Protection, take, down string) Verdict {
	t.Helper()
	v, err := p.Check(strings.Fields(take), strings.Fields(down))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// twoDatacenters has three racks of two nodes in dc1, whose tokens take turns so
// that a1 b1 c1 and a2 b2 c2 share ranges, and three nodes in dc2.
func twoDatacenters(t testing.TB) *Ring {
	t.Helper()
	return ringOf(t,
		"a1 dc1/a 0", "b1 dc1/b 10", "c1 dc1/c 20",
		"a2 dc1/a 30", "b2 dc1/b 40", "c2 dc1/c 50",
		"x dc2/x 5", "y dc2/y 15", "z dc2/z 25")
}

func TestCheck(t *testing.T) {
	r := twoDatacenters(t)
	three := Keyspace{"three", topology(t, "dc1=3")}
	both := Keyspace{"both", topology(t, "dc1=3, dc2=3")}
	far := Keyspace{"far", topology(t, "dc2=3")}
	simple := Keyspace{"simple", replicationOf(t, "SimpleStrategy {replication_factor=3}")}
	single := Keyspace{"single", topology(t, "dc1=1")}
	pair := Keyspace{"pair", topology(t, "dc1=2")}
	tests := []struct {
		name        string
		level       Consistency
		keyspaces   []Keyspace
		take, down  string
		broken      int
		unprotected int
	}{
		{"one node", LocalQuorum, []Keyspace{three}, "a1", "", 0, 0},
		{"a rack", LocalQuorum, []Keyspace{three}, "a1 a2", "", 0, 0},
		{"two racks", LocalQuorum, []Keyspace{three}, "a1 b1", "", 2, 0},
		// a1 has replicas of the ranges that end with 40, 50 and 0; b2 of 20, 30, 40.
		{"two racks that meet once", LocalQuorum, []Keyspace{three}, "a1 b2", "", 1, 0},
		{"another is down", LocalQuorum, []Keyspace{three}, "b1", "a1", 2, 0},
		{"one of the same rack is down", LocalQuorum, []Keyspace{three}, "a2", "a1", 0, 0},
		{"it is down itself", LocalQuorum, []Keyspace{three}, "a1", "a1 b1", 0, 0},
		{"who left is no matter", LocalQuorum, []Keyspace{three}, "b1", "gone", 0, 0},
		{"down twice is down once", LocalOne, []Keyspace{three}, "a1", "b1 b1", 0, 0},
		{"it is named twice", LocalQuorum, []Keyspace{three}, "a1 a1", "a2 a2", 0, 0},
		{"another datacenter is down", LocalQuorum, []Keyspace{both}, "a1", "x y z", 0, 0},
		{"another datacenter is taken", LocalQuorum, []Keyspace{both}, "x y", "", 3, 0},
		{"no replicas here", LocalQuorum, []Keyspace{far}, "a1 b1 c1", "", 0, 0},
		{"none left", LocalOne, []Keyspace{three}, "a1 b1 c1", "", 1, 0},
		{"one left", LocalOne, []Keyspace{three}, "a1 c1 b2", "", 0, 0},
		{"ONE counts all", One, []Keyspace{both}, "a1 b1 c1 a2 b2 c2 x y", "", 0, 0},
		{"ONE has none", One, []Keyspace{both}, "a1 b1 c1 a2 b2 c2 x y z", "", 9, 0},
		{"LOCAL_ONE counts one", LocalOne, []Keyspace{both}, "a1 b1 c1 a2 b2 c2 x y", "", 6, 0},
		{"TWO", Two, []Keyspace{three}, "a1 b1", "", 2, 0},
		{"THREE spares none", Three, []Keyspace{three}, "a1", "", 0, 3},
		{"THREE of six", Three, []Keyspace{both}, "a1 b1 x", "", 0, 0},
		{"QUORUM of six is four", Quorum, []Keyspace{both}, "a1 x", "", 0, 0},
		{"QUORUM of six lacks one", Quorum, []Keyspace{both}, "a1 b1 x", "", 2, 0},
		{"EACH_QUORUM", EachQuorum, []Keyspace{both}, "a1 x", "", 0, 0},
		{"EACH_QUORUM in one", EachQuorum, []Keyspace{both}, "x y", "", 3, 0},
		{"ALL", All, []Keyspace{both}, "a1", "", 0, 3},
		{"SimpleStrategy", LocalQuorum, []Keyspace{simple}, "a1", "", 0, 0},
		{"SimpleStrategy over datacenters", LocalQuorum, []Keyspace{simple}, "a1 x", "", 2, 0},
		{"a single replica", LocalQuorum, []Keyspace{single}, "a1", "", 0, 1},
		{"two replicas", LocalQuorum, []Keyspace{pair}, "a1", "", 0, 2},
		{"two replicas at ONE", LocalOne, []Keyspace{pair}, "a1", "", 0, 0},
		{"both sorts", LocalQuorum, []Keyspace{three, single}, "a1 b1", "", 2, 2},
		{"nothing replicated", LocalQuorum, []Keyspace{{"system", Local()}}, "a1 b1 c1", "", 0, 0},
		{"everywhere", Quorum, []Keyspace{{"e", Everywhere()}}, "a1 b1 c1 x", "", 0, 0},
		{"everywhere, too many", Quorum, []Keyspace{{"e", Everywhere()}}, "a1 b1 c1 x y", "", 1, 0},
		{"alike keyspaces count once", LocalQuorum, []Keyspace{three, {"four", topology(t, "dc1=3")}, both}, "a1 b1",
			"", 2, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := checkOf(t, protectionOf(t, r, test.level, test.keyspaces...), test.take, test.down)
			if v.Broken.Ranges != test.broken || v.Unprotected.Ranges != test.unprotected ||
				v.Safe != (test.broken == 0) {
				t.Errorf("%d ranges broken, %d unprotected, safe %t; want %d and %d: %s",
					v.Broken.Ranges, v.Unprotected.Ranges, v.Safe, test.broken, test.unprotected, v)
			}
			if (v.Broken.Worst == nil) != (test.broken == 0) ||
				(v.Unprotected.Worst == nil) != (test.unprotected == 0) {
				t.Errorf("examples %v and %v", v.Broken.Worst, v.Unprotected.Worst)
			}
		})
	}
}

func TestCheckUnknownNode(t *testing.T) {
	p := protectionOf(t, twoDatacenters(t), LocalQuorum)
	_, err := p.Check([]string{"a1", "q"}, nil)
	var unknown *UnknownNodeError
	if !errors.As(err, &unknown) || unknown.ID != "q" || err.Error() != "node q is not in the ring" {
		t.Errorf("got %v", err)
	}
	if _, err := p.NextWave([]string{"q"}, nil, 1, Proceed); !errors.As(err, &unknown) {
		t.Errorf("wave: %v", err)
	}
	if _, err := NewProtection(twoDatacenters(t), nil, "Any"); err == nil ||
		!strings.Contains(err.Error(), `consistency level "Any" is not known`) {
		t.Errorf("unknown level: %v", err)
	}
}

func TestVerdictWords(t *testing.T) {
	r := twoDatacenters(t)
	three, single := Keyspace{"three", topology(t, "dc1=3")}, Keyspace{"single", topology(t, "dc1=1")}
	both := Keyspace{"both", topology(t, "dc1=3, dc2=3")}
	tests := []struct {
		level      Consistency
		keyspaces  []Keyspace
		take, down string
		want       string
	}{
		{LocalQuorum, []Keyspace{three}, "a1", "", "every range keeps its consistency"},
		{LocalQuorum, []Keyspace{three}, "b1", "a1",
			"2 ranges would fail: keyspace three: LOCAL_QUORUM needs 2 of the 3 replicas of range (50,0] in dc1, 1 " +
				"would be up (a1 down already, b1 to be taken down)"},
		// The worst range is the one that lacks most.
		{LocalQuorum, []Keyspace{three}, "b1 c1", "a1",
			"3 ranges would fail: keyspace three: LOCAL_QUORUM needs 2 of the 3 replicas of range (50,0] in dc1, 0 " +
				"would be up (a1 down already, b1, c1 to be taken down)"},
		{Quorum, []Keyspace{both, {"also", both.Replication}, {"more", both.Replication}}, "a1 b1 x", "",
			"2 ranges would fail: keyspace also and 2 more: QUORUM needs 4 of the 6 replicas of range (50,0], 3 " +
				"would be up (a1, b1, x to be taken down)"},
		{LocalQuorum, []Keyspace{single}, "a1", "",
			"1 range cannot be protected: keyspace single: LOCAL_QUORUM needs 1 of the 1 replicas of range (50,0] in " +
				"dc1, 0 would be up (a1 to be taken down)"},
		{LocalQuorum, []Keyspace{single, three}, "a1 b2", "",
			"1 range would fail: keyspace three: LOCAL_QUORUM needs 2 of the 3 replicas of range (30,40] in dc1, 1 " +
				"would be up (a1, b2 to be taken down); 2 ranges cannot be protected: keyspace single: LOCAL_QUORUM " +
				"needs 1 of the 1 replicas of range (50,0] in dc1, 0 would be up (a1 to be taken down)"},
	}
	for _, test := range tests {
		if got := checkOf(t, protectionOf(t, r, test.level, test.keyspaces...), test.take,
			test.down).String(); got != test.want {
			t.Errorf("take %q, down %q:\n got %s\nwant %s", test.take, test.down, got, test.want)
		}
	}
}

func TestUnserved(t *testing.T) {
	r := twoDatacenters(t)
	p := protectionOf(t, r, LocalQuorum, Keyspace{"three", topology(t, "dc1=3")},
		Keyspace{"single", topology(t, "dc1=1")})
	// as if c2 were joining: it takes (40,50] of its own, and of three (20,50] besides
	before := without(t, r, "c2")
	now := protectionOf(t, before, LocalQuorum, Keyspace{"three", topology(t, "dc1=3")},
		Keyspace{"single", topology(t, "dc1=1")})
	tests := []struct {
		of, with *Protection
		down     string
		ranges   int
		worst    string
	}{
		{p, nil, "", 0, "<nil>"},
		{p, p, "x gone", 0, "<nil>"},
		{p, nil, "a1", 1, "keyspace single: LOCAL_QUORUM needs 1 of the 1 replicas of range (50,0] in dc1, 0 up (a1 down)"},
		{p, p, "a1 a1 b1", 4, "keyspace single: LOCAL_QUORUM needs 1 of the 1 replicas of range (50,0] in dc1, 0 up " +
			"(a1 down)"},
		{now, p, "", 1, "keyspace single: LOCAL_QUORUM needs 1 of the 1 replicas of range (40,0] in dc1, 1 up, and " +
			"writes need 1 more for what joins and is down"},
		{now, p, "a1", 3, "keyspace single: LOCAL_QUORUM needs 1 of the 1 replicas of range (40,0] in dc1, 0 up (a1 " +
			"down), and writes need 1 more for what joins and is down"},
	}
	for _, test := range tests {
		f, by := test.of.Unserved(strings.Fields(test.down), test.with)
		if got := fmt.Sprint(f.Worst); f.Ranges != test.ranges || got != test.worst {
			t.Errorf("down %q:\n got %d %s\nwant %d %s", test.down, f.Ranges, got, test.ranges, test.worst)
		}
		sum := 0
		for _, ranges := range by {
			sum += ranges
		}
		if sum != f.Ranges {
			t.Errorf("down %q: %v by datacenter, %d in all", test.down, by, f.Ranges)
		}
	}
}

// Of each range that lacks a replica it is said what Unserved counts.
func TestAtIsUnserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		keyspace := drawKeyspaces(t)
		p, err := NewProtection(r, keyspace[:min(1, len(keyspace))], rapid.SampledFrom(consistencies).Draw(t, "level"))
		if err != nil {
			t.Fatal(err)
		}
		down := drawIDs(t, r, "down")
		risks := map[string]bool{}
		for _, token := range r.Tokens() {
			for _, risk := range p.At(token, down, nil) {
				if !risk.Served() && len(risk.Down) > 0 {
					risks[risk.Datacenter+risk.Range.String()] = true
				}
			}
		}
		if f, _ := p.Unserved(down, nil); f.Ranges != len(risks) {
			t.Fatalf("down %v: %d ranges, want %d", down, len(risks), f.Ranges)
		}
	})
}

func without(t *testing.T, r *Ring, id string) *Ring {
	t.Helper()
	out, err := New(slices.DeleteFunc(r.Nodes(), func(n Node) bool { return n.ID == id }))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is below the level is what would be if its nodes were taken down now.
func TestUnservedIsCheckOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		p, err := NewProtection(r, drawKeyspaces(t), rapid.SampledFrom(consistencies).Draw(t, "level"))
		if err != nil {
			t.Fatal(err)
		}
		down := drawIDs(t, r, "down")
		now, _ := p.Unserved(down, nil)
		then, err := p.Check(down, nil)
		if err != nil {
			t.Fatal(err)
		}
		if now.Ranges != then.Broken.Ranges+then.Unprotected.Ranges {
			t.Fatalf("down %v: %d ranges, but %s", down, now.Ranges, then)
		}
	})
}

func TestPermits(t *testing.T) {
	r := twoDatacenters(t)
	three, single, pair := Keyspace{"three", topology(t, "dc1=3")}, Keyspace{"single", topology(t, "dc1=1")},
		Keyspace{"pair", topology(t, "dc1=2")}
	tests := []struct {
		name           string
		keyspaces      []Keyspace
		take, down     string
		proceed, block bool
	}{
		{"nothing at risk", []Keyspace{three}, "a1 a2", "", true, true},
		{"broken", []Keyspace{three}, "a1 b1", "", false, false},
		{"one unprotected node", []Keyspace{three, single}, "a1", "", true, false},
		{"two unprotected nodes", []Keyspace{three, single}, "a1 a2", "", false, false},
		{"one of them down already", []Keyspace{three, single}, "a1 a2", "a2", true, false},
		{"the other replica is down", []Keyspace{pair}, "a1", "b1", false, false},
		{"another range's replica is down", []Keyspace{pair}, "a1", "c1", true, false},
		{"it is down itself", []Keyspace{pair}, "a1", "a1 b1", true, true},
		{"broken and unprotected", []Keyspace{three, single}, "a1", "b1", false, false},
	}
	for _, test := range tests {
		v := checkOf(t, protectionOf(t, r, LocalQuorum, test.keyspaces...), test.take, test.down)
		if v.Permits(Proceed) != test.proceed || v.Permits(Block) != test.block {
			t.Errorf("%s: proceed %t, block %t: %s", test.name, v.Permits(Proceed), v.Permits(Block), v)
		}
	}
}

// outlook is what taking nodes down does, counted range by range.
type outlook struct {
	broken, unprotected bool
	unprotectedDown     int
}

// foresee counts the replicas of each range of the ring that are up, as a reader
// of Cassandra's documentation would.
func foresee(r *Ring, keyspaces []Keyspace, level Consistency, take, down []string) outlook {
	var o outlook
	for _, keyspace := range keyspaces {
		for _, token := range r.Tokens() {
			endpoints := r.NaturalEndpoints(keyspace.Replication, token)
			factors := map[string]int{"": keyspace.Replication.TotalFactor()}
			if keyspace.Replication.Strategy() == NetworkTopologyStrategy &&
				slices.Contains([]Consistency{LocalOne, LocalQuorum, EachQuorum}, level) {
				factors = map[string]int{}
				for _, datacenter := range keyspace.Replication.Datacenters() {
					factors[datacenter] = keyspace.Replication.Factor(datacenter)
				}
			}
			for datacenter, factor := range factors {
				required := map[Consistency]int{One: 1, LocalOne: 1, Two: 2, Three: 3, All: factor}[level]
				if strings.HasSuffix(string(level), "Quorum") {
					required = factor/2 + 1
				}
				all, dead, taken := 0, 0, 0
				for _, id := range endpoints {
					node, _ := r.Node(id)
					if datacenter != "" && node.Datacenter != datacenter {
						continue
					}
					all++
					if slices.Contains(down, id) {
						dead++
					} else if slices.Contains(take, id) {
						taken++
					}
				}
				switch {
				case taken == 0:
				case all-1 < required:
					o.unprotected = true
					o.unprotectedDown = max(o.unprotectedDown, dead+taken)
				case all-dead-taken < required:
					o.broken = true
				}
			}
		}
	}
	return o
}

func drawKeyspaces(t *rapid.T) []Keyspace {
	var keyspaces []Keyspace
	for i := range rapid.IntRange(0, 4).Draw(t, "keyspaces") {
		keyspaces = append(keyspaces, Keyspace{fmt.Sprint("k", i), drawReplication(t)})
	}
	return keyspaces
}

func drawIDs(t *rapid.T, r *Ring, label string) []string {
	var ids []string
	for _, node := range r.Nodes() {
		if rapid.IntRange(0, 4).Draw(t, label) == 0 {
			ids = append(ids, node.ID)
		}
	}
	return ids
}

func TestCheckIsTheCountOfEachRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		keyspaces := drawKeyspaces(t)
		level := rapid.SampledFrom(consistencies).Draw(t, "level")
		p, err := NewProtection(r, keyspaces, level)
		if err != nil {
			t.Fatal(err)
		}
		take, down := drawIDs(t, r, "take"), drawIDs(t, r, "down")
		v, err := p.Check(take, down)
		if err != nil {
			t.Fatal(err)
		}
		want := foresee(r, keyspaces, level, take, down)
		if v.Safe == want.broken || (v.Unprotected.Ranges > 0) != want.unprotected ||
			v.Unprotected.Down != want.unprotectedDown {
			t.Fatalf("take %v, down %v at %s of %v: %s (%d down of an unprotected range), but counting gives %+v",
				take, down, level, keyspaces, v, v.Unprotected.Down, want)
		}
		for _, risk := range []*Risk{v.Broken.Worst, v.Unprotected.Worst} {
			if risk != nil && (risk.missing() < 1 || len(risk.Taken) == 0) {
				t.Fatalf("no risk: %s", risk)
			}
		}
	})
}

func TestNextWave(t *testing.T) {
	r := twoDatacenters(t)
	three, single, both := Keyspace{"three", topology(t, "dc1=3")}, Keyspace{"single", topology(t, "dc1=1")},
		Keyspace{"both", topology(t, "dc1=3, dc2=3")}
	all := "b2 a1 x c1 a2 b1 c2 y z"
	tests := []struct {
		name          string
		keyspaces     []Keyspace
		pending, down string
		limit         int
		policy        UnprotectedPolicy
		want          string
		safe          bool
	}{
		{"the rack of the first", []Keyspace{both}, all, "", 9, Proceed, "dc1 b [b2 b1]", true},
		{"up to the limit", []Keyspace{both}, all, "", 1, Proceed, "dc1 b [b2]", true},
		{"none at all", []Keyspace{both}, all, "", 0, Proceed, "  []", true},
		{"nothing pending", []Keyspace{both}, "", "", 1, Proceed, "  []", true},
		{"named twice", []Keyspace{both}, "a1 a1 a2", "", 9, Proceed, "dc1 a [a1 a2]", true},
		{"the rack of one that is down", []Keyspace{both}, all, "a1", 9, Proceed, "dc1 a [a1 a2]", true},
		{"the other rack may not", []Keyspace{both}, "b2 b1 x", "a1 c2", 9, Proceed, "dc2 x [x]", true},
		{"part of a rack", []Keyspace{three}, "c1 c2", "a2", 9, Proceed, "  []", false},
		{"part of a rack that meets nobody", []Keyspace{three}, "b1 b2", "a1", 9, Proceed, "  []", false},
		{"one at a time", []Keyspace{three, single}, "a1 a2", "", 9, Proceed, "dc1 a [a1]", true},
		{"not at all", []Keyspace{three, single}, "a1 a2", "", 9, Block, "  []", true},
		{"unprotected elsewhere", []Keyspace{single}, "x a1", "", 9, Block, "dc2 x [x]", true},
		{"down ones come along", []Keyspace{three, single}, "a1 a2", "a1", 9, Proceed, "dc1 a [a1 a2]", true},
		{"down ones even if blocked", []Keyspace{three, single}, "a1 a2", "a1", 9, Block, "dc1 a [a1]", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wave, err := protectionOf(t, r, LocalQuorum, test.keyspaces...).NextWave(strings.Fields(test.pending),
				strings.Fields(test.down), test.limit, test.policy)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(wave.Datacenter, " ", wave.Rack, " ", wave.Nodes); got != test.want ||
				wave.Verdict.Safe != test.safe {
				t.Errorf("got %s, %s", got, wave.Verdict)
			}
		})
	}
}

// In a rack of which one node is alone with a replica of what is down, the others
// still go together.
func TestNextWaveLeavesOutWhoDoesNotFit(t *testing.T) {
	r := ringOf(t, "a1 dc1/a 0", "b1 dc1/b 1", "c1 dc1/c 2", "a2 dc1/a 30", "b2 dc1/b 31", "c2 dc1/c 32", "a3 dc1/a 60",
		"b3 dc1/b 61", "c3 dc1/c 62")
	p := protectionOf(t, r, LocalQuorum, Keyspace{"three", topology(t, "dc1=3")})
	wave, err := p.NextWave([]string{"a1", "a2", "a3"}, []string{"b1"}, 9, Block)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(wave.Nodes); got != "[a3]" {
		t.Errorf("got %s", got)
	}
	// Why nobody may go is the verdict on the first.
	wave, err = p.NextWave([]string{"a2", "a1"}, []string{"b1"}, 9, Block)
	if err != nil {
		t.Fatal(err)
	}
	if len(wave.Nodes) != 0 || wave.Verdict.Safe || !slices.Contains(wave.Verdict.Broken.Worst.Taken, "a2") {
		t.Errorf("got %v, %s", wave.Nodes, wave.Verdict)
	}
}

// A wave is what trying node after node with Check gives.
func TestNextWaveIsTriedByCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRing(t)
		p, err := NewProtection(r, drawKeyspaces(t), rapid.SampledFrom(consistencies).Draw(t, "level"))
		if err != nil {
			t.Fatal(err)
		}
		pending, down := rapid.Permutation(drawIDs(t, r, "pending")).Draw(t, "order"), drawIDs(t, r, "down")
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		policy := rapid.SampledFrom([]UnprotectedPolicy{Proceed, Block}).Draw(t, "policy")
		wave, err := p.NextWave(pending, down, limit, policy)
		if err != nil {
			t.Fatal(err)
		}
		var tried []Place
		for _, first := range pending {
			lead, _ := r.Node(first)
			place := Place{lead.Datacenter, lead.Rack}
			if slices.Contains(tried, place) {
				continue
			}
			tried = append(tried, place)
			var want []string
			for _, id := range pending {
				node, _ := r.Node(id)
				if (Place{node.Datacenter, node.Rack}) != place || len(want) == limit {
					continue
				}
				v, err := p.Check(append(slices.Clone(want), id), down)
				if err != nil {
					t.Fatal(err)
				}
				if v.Permits(policy) || slices.Contains(down, id) {
					want = append(want, id)
				}
			}
			if len(want) == 0 {
				continue
			}
			if !slices.Equal(wave.Nodes, want) || wave.Datacenter != place.Datacenter || wave.Rack != place.Rack ||
				!wave.Verdict.Safe {
				t.Fatalf("got %+v, want %v of %v", wave, want, place)
			}
			return
		}
		if len(wave.Nodes) != 0 {
			t.Fatalf("got %+v, want nobody", wave)
		}
	})
}
