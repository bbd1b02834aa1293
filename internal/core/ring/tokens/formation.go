package tokens

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"helenus.io/helenus/internal/core/ring"
)

// Formation describes a datacenter whose first nodes start together.
type Formation struct {
	// Datacenter is its name in Cassandra.
	Datacenter string
	// Tokens is how many each node gets: num_tokens, at least 1.
	Tokens int
	// ReplicationFactor is what keyspaces will use there, at least 1.
	ReplicationFactor int
	// Racks are in any order that does not change; those without nodes are ignored.
	Racks []Rack
}

// Rack is a rack and the ids of its nodes, in any order that does not change.
type Rack struct {
	Name  string
	Nodes []string
}

// Form chooses the tokens of datacenters that form together. existing are all members of the ring
// and holders of open tickets, none of them in these datacenters. The result lists the nodes as
// they are given, tokens ascending; no token is in it twice or in existing.
//
// Where the racks of a datacenter have equally many nodes, or the replication factor is 1, the
// tokens of all its nodes are evenly spaced, with the racks taking turns. Every range then has the
// same size and, whatever the factor, every node holds the same share. A node shares ranges with
// few others only, which makes it unlikely that two that fail at once in different racks have a
// range in common.
//
// With unequal racks:
//   - as many as the factor: the tokens of each rack are evenly spaced for
//     themselves. Each rack holds every range once, and within it all nodes hold
//     the same;
//   - fewer: both of these are tried;
//   - more: the first is tried, and that nodes are allocated one after the other,
//     the racks taking turns, as if they joined (see Allocate).
//
// Of two that are tried, the one is taken in which the fullest node has less.
//
// The datacenters' tokens are shifted against each other, so that they also mix
// for a strategy that does not look at datacenters.
func Form(formations []Formation, existing []ring.Node) ([]ring.Node, error) {
	before, err := ring.New(existing)
	if err != nil {
		return nil, fmt.Errorf("form datacenters: %w", err)
	}
	datacenters := map[string]bool{}
	for _, node := range existing {
		datacenters[node.Datacenter] = true
	}
	all := slices.Clone(existing)
	taken := takenIn(before)
	var faults []error
	for _, formation := range formations {
		if err := formation.check(datacenters); err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, formation.place(all, taken, fractionOf(len(datacenters)))...)
		datacenters[formation.Datacenter] = true
	}
	if _, err := ring.New(all); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("form datacenters: %w", errors.Join(faults...))
	}
	return all[len(existing):], nil
}

func (f Formation) check(datacenters map[string]bool) error {
	switch {
	case datacenters[f.Datacenter]:
		return fmt.Errorf("datacenter %s has nodes already: further ones join one by one", f.Datacenter)
	case f.Tokens < 1:
		return fmt.Errorf("datacenter %s: %d tokens: want 1 or more", f.Datacenter, f.Tokens)
	case f.ReplicationFactor < 1:
		return fmt.Errorf("datacenter %s: replication factor %d: want 1 or more", f.Datacenter, f.ReplicationFactor)
	case len(f.nodes()) == 0:
		return fmt.Errorf("datacenter %s has no nodes", f.Datacenter)
	}
	names := map[string]bool{}
	for _, rack := range f.Racks {
		if names[rack.Name] {
			return fmt.Errorf("datacenter %s: rack %s is there twice", f.Datacenter, rack.Name)
		}
		names[rack.Name] = true
	}
	return nil
}

// place tries the ways that suit the sizes of the racks.
func (f Formation) place(existing []ring.Node, taken taken, shift uint64) []ring.Node {
	f.Racks = slices.DeleteFunc(slices.Clone(f.Racks), func(r Rack) bool { return len(r.Nodes) == 0 })
	size := len(f.Racks[0].Nodes)
	equal := !slices.ContainsFunc(f.Racks, func(r Rack) bool { return len(r.Nodes) != size })
	inTurns := func() []ring.Node { return f.spaceInTurns(taken.clone(), shift) }
	byRack := func() []ring.Node { return f.spaceByRack(taken.clone(), shift) }
	oneByOne := func() []ring.Node { return f.joinOneByOne(existing, taken.clone(), shift) }
	var options [][]ring.Node
	switch racks := len(f.Racks); {
	case equal || f.ReplicationFactor == 1:
		options = [][]ring.Node{inTurns()}
	case racks == f.ReplicationFactor:
		options = [][]ring.Node{byRack()}
	case racks < f.ReplicationFactor:
		options = [][]ring.Node{inTurns(), byRack()}
	default:
		options = [][]ring.Node{inTurns(), oneByOne()}
	}
	best := evenest(options, f.Datacenter, f.ReplicationFactor)
	for _, node := range best {
		for _, token := range node.Tokens {
			taken.claimed[token] = true
		}
	}
	return best
}

// spaceInTurns spaces the tokens of all nodes evenly.
func (f Formation) spaceInTurns(taken taken, shift uint64) []ring.Node {
	nodes := f.nodes()
	order := make([]*ring.Node, len(nodes))
	for i, at := range f.turns() {
		order[i] = &nodes[at]
	}
	f.space(order, 0, 1, taken, shift)
	return nodes
}

// spaceByRack spaces the tokens of each rack evenly.
func (f Formation) spaceByRack(taken taken, shift uint64) []ring.Node {
	nodes := f.nodes()
	at := 0
	for part, rack := range f.Racks {
		order := make([]*ring.Node, len(rack.Nodes))
		for i := range order {
			order[i] = &nodes[at]
			at++
		}
		f.space(order, part, len(f.Racks), taken, shift)
	}
	return nodes
}

// space gives nodes evenly spaced tokens in turns: the j-th of the i-th of n is
// at the position j·n+i of n·Tokens. part of parts says by which part of a
// distance the rack is moved, shift by which part of that part the datacenter is.
func (f Formation) space(nodes []*ring.Node, part, parts int, taken taken, shift uint64) {
	count := uint64(len(nodes) * f.Tokens)
	distance := math.MaxUint64 / count / uint64(parts)
	offset, _ := bits.Mul64(distance, shift)
	offset += distance * uint64(part)
	for j := range f.Tokens {
		for i, node := range nodes {
			at, _ := bits.Div64(uint64(j*len(nodes)+i), 0, count)
			node.Tokens = append(node.Tokens, taken.claim(position(at+offset)))
		}
	}
	for _, node := range nodes {
		slices.Sort(node.Tokens)
	}
}

// joinOneByOne lets the nodes join one after the other.
func (f Formation) joinOneByOne(existing []ring.Node, taken taken, shift uint64) []ring.Node {
	nodes := f.nodes()
	placed := slices.Clone(existing)
	w := waysFor(len(f.Racks), f.ReplicationFactor)[0]
	for _, at := range f.turns() {
		node := &nodes[at]
		join := Join{ID: node.ID, Datacenter: f.Datacenter, Rack: node.Rack, Tokens: f.Tokens,
			ReplicationFactor: f.ReplicationFactor}
		node.Tokens = taken.claimAll(allocate(placed, join, w, taken.free(position(shift))))
		placed = append(placed, *node)
	}
	return nodes
}

// turns is the indices of all nodes with the racks taking turns, as long as they have nodes.
func (f Formation) turns() []int {
	type turn struct{ round, at int }
	var turns []turn
	for _, rack := range f.Racks {
		for round := range rack.Nodes {
			turns = append(turns, turn{round, len(turns)})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.round, b.round) })
	order := make([]int, len(turns))
	for i, t := range turns {
		order[i] = t.at
	}
	return order
}

// nodes are all nodes as they are given, without tokens.
func (f Formation) nodes() []ring.Node {
	var nodes []ring.Node
	for _, rack := range f.Racks {
		for _, id := range rack.Nodes {
			nodes = append(nodes, ring.Node{ID: id, Datacenter: f.Datacenter, Rack: rack.Name})
		}
	}
	return nodes
}

// position is the token at a distance from the ring's least token.
func position(distance uint64) ring.Token { return ring.Token(int64(1<<63 + distance)) }

// fractionOf is where, as a fraction of 2^64, the i-th datacenter starts between
// two tokens of an evenly spaced one: multiples of the golden ratio, which keep
// away from each other however many there are, and from 0.
func fractionOf(i int) uint64 { return uint64(i+1) * 0x9E3779B97F4A7C15 }
