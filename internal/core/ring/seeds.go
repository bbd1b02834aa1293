package ring

import (
	"cmp"
	"errors"
	"slices"
)

const (
	// seedsPerDatacenter is one for each of three racks. More cost gossip
	// traffic; with a single one every start hangs on that node.
	seedsPerDatacenter = 3
	// maxSeeds is above which Cassandra warns at each start (SimpleSeedProvider#getSeeds). Clusters
	// with more datacenters than fit get fewerSeeds per datacenter.
	maxSeeds   = 20
	fewerSeeds = 2
)

// ErrNoSeeds says that there is no node that could be a seed.
var ErrNoSeeds = errors.New("no seeds: there is no member and no ticket holder")

// SeedCandidate is a node that may be listed as a seed: a member of the ring,
// or, while a datacenter forms, a holder of a ticket. A node that is neither
// must not be offered: with itself in its list it would join without data.
type SeedCandidate struct {
	ID         string
	Datacenter string
	Rack       string
	// Suspect marks a node that is not expected to answer soon. It is listed only if its datacenter
	// has no other: a listed seed that does not answer costs each starting node up to the ring
	// delay (Gossiper#doShadowRound). A node that merely restarts should not be marked, or the list
	// changes with each restart.
	Suspect bool
}

// Seeds chooses the seeds of all datacenters: three in each, or two if there are more than six
// datacenters, or all if it has fewer nodes; on different racks while there are racks. Present
// seeds that are still candidates stay, except that a second one on a rack gives way to a rack that
// has none; so choosing again from the result changes nothing. New ones are the first by id. The
// result is sorted by datacenter, rack and id and is never empty: no candidates is ErrNoSeeds.
func Seeds(candidates []SeedCandidate, present []string) ([]string, error) {
	if len(candidates) == 0 {
		return nil, ErrNoSeeds
	}
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b SeedCandidate) int {
		return cmp.Or(cmp.Compare(a.Datacenter, b.Datacenter), cmp.Compare(a.Rack, b.Rack), cmp.Compare(a.ID, b.ID))
	})
	var datacenters [][]SeedCandidate
	for i, candidate := range sorted {
		if i == 0 || sorted[i-1].Datacenter != candidate.Datacenter {
			datacenters = append(datacenters, nil)
		}
		last := len(datacenters) - 1
		datacenters[last] = append(datacenters[last], candidate)
	}
	want := seedsPerDatacenter
	if len(datacenters)*want > maxSeeds {
		want = fewerSeeds
	}
	var seeds []string
	for _, datacenter := range datacenters {
		seeds = append(seeds, datacenterSeeds(datacenter, present, want)...)
	}
	return seeds, nil
}

// datacenterSeeds chooses among the sorted candidates of one datacenter. Round
// by round each rack gives one node, present seeds first; in a round racks with a
// present seed come first, then racks by name.
func datacenterSeeds(candidates []SeedCandidate, present []string, want int) []string {
	usable := slices.DeleteFunc(slices.Clone(candidates), func(c SeedCandidate) bool { return c.Suspect })
	if len(usable) == 0 {
		usable = candidates
	}
	type ranked struct {
		SeedCandidate
		round   int // how many of its rack come before it
		present bool
	}
	order := make([]ranked, len(usable))
	for i, candidate := range usable {
		order[i] = ranked{SeedCandidate: candidate, present: slices.Contains(present, candidate.ID)}
	}
	presentFirst := func(a, b ranked) int {
		switch {
		case a.present == b.present:
			return 0
		case a.present:
			return -1
		}
		return 1
	}
	slices.SortStableFunc(order, presentFirst)
	members := map[string]int{}
	few := order[:0]
	for _, candidate := range order {
		candidate.round = members[candidate.Rack]
		members[candidate.Rack]++
		if candidate.round < want { // by then as many as are wanted have been chosen
			few = append(few, candidate)
		}
	}
	order = few
	slices.SortStableFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.round, b.round), presentFirst(a, b))
	})
	order = order[:min(want, len(order))]
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.Rack, b.Rack), cmp.Compare(a.ID, b.ID))
	})
	seeds := make([]string, len(order))
	for i, seed := range order {
		seeds[i] = seed.ID
	}
	return seeds
}
