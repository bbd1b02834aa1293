package tokens

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"helenus.io/helenus/internal/core/ring"
)

// Join describes a node that is to join a datacenter.
type Join struct {
	// ID names the node as the other nodes are named; it is none of theirs.
	ID string
	// Datacenter and Rack are the names that the node has in Cassandra.
	Datacenter string
	Rack       string
	// Racks are the racks that the datacenter is meant to have; those that have
	// nodes, and Rack, need not be named.
	Racks []string
	// Tokens is how many it gets: num_tokens, at least 1.
	Tokens int
	// ReplicationFactor is what keyspaces use in the datacenter, at least 1; the
	// data is evened out for it.
	ReplicationFactor int
	// Start is the first token of a node that is the first of its allocation
	// ring. It may be any, for instance a hash of its name: nothing follows from
	// it for the balance. Cassandra takes a random one.
	Start ring.Token
}

// Allocate chooses the tokens of a joining node, ascending. nodes are all members of the ring and
// all holders of open tickets, of every datacenter, and r their ring: the result has none of their
// tokens.
//
// It follows Cassandra's token allocation (TokenAllocation#createStrategy), with
// the number of racks, the joining one included, against the replication factor:
//   - a factor of 1: primary ranges are evened out over the datacenter;
//   - as many racks as the factor: each rack holds every range once, so primary
//     ranges are evened out within the rack;
//   - more racks: what is replicated is evened out, grouped by rack;
//   - one rack: the same with each node a group.
//   - More than one rack but fewer than the factor: Cassandra refuses and takes
//     random tokens if it is forced. Here the second and the last way are both
//     tried, and the one is taken that leaves the fullest node with less: the
//     last is better for racks of about the same size, the second for others.
//
// Unlike Cassandra, which does not count a rack without nodes, the first node of
// a rack is allocated by the number of racks that there will be.
func Allocate(r *ring.Ring, nodes []ring.Node, join Join) ([]ring.Token, error) {
	if err := join.check(nodes); err != nil {
		return nil, fmt.Errorf("allocate tokens: %w", err)
	}
	var options [][]ring.Node
	for _, w := range waysFor(join.rackCount(nodes), join.ReplicationFactor) {
		taken := takenIn(r)
		chosen := taken.claimAll(allocate(nodes, join, w, taken.free(join.Start)))
		options = append(options, append(nodes[:len(nodes):len(nodes)], ring.Node{
			ID: join.ID, Datacenter: join.Datacenter, Rack: join.Rack, Tokens: chosen,
		}))
	}
	best := evenest(options, join.Datacenter, join.ReplicationFactor)
	return best[len(nodes)].Tokens, nil
}

func (j Join) check(nodes []ring.Node) error {
	switch {
	case j.ID == "":
		return errors.New("the joining node has no id")
	case slices.ContainsFunc(nodes, func(node ring.Node) bool { return node.ID == j.ID }):
		return fmt.Errorf("node %s has tokens already", j.ID)
	case j.Datacenter == "":
		return errors.New("node " + j.ID + " has no datacenter")
	case j.Rack == "":
		return errors.New("node " + j.ID + " has no rack")
	case j.Tokens < 1:
		return fmt.Errorf("%d tokens: want 1 or more", j.Tokens)
	case j.ReplicationFactor < 1:
		return fmt.Errorf("replication factor %d: want 1 or more", j.ReplicationFactor)
	}
	return nil
}

// rackCount is how many racks the datacenter will have.
func (j Join) rackCount(nodes []ring.Node) int {
	racks := append([]string{j.Rack}, j.Racks...)
	for _, node := range nodes {
		if node.Datacenter == j.Datacenter {
			racks = append(racks, node.Rack)
		}
	}
	slices.Sort(racks)
	return len(slices.Compact(racks))
}

// way is what an allocation evens out, and within which part of the ring.
type way int

const (
	primaryInDatacenter way = iota
	primaryInRack
	replicatedByRack
	replicatedByNode
)

// waysFor are the ways to try.
func waysFor(racks, factor int) []way {
	switch {
	case factor == 1:
		return []way{primaryInDatacenter}
	case racks == factor:
		return []way{primaryInRack}
	case racks > factor:
		return []way{replicatedByRack}
	case racks == 1:
		return []way{replicatedByNode}
	}
	return []way{replicatedByNode, primaryInRack}
}

// allocate chooses tokens in one way. They may clash with those of other parts of the ring.
func allocate(nodes []ring.Node, join Join, w way, start ring.Token) []ring.Token {
	total := 0
	for _, node := range nodes {
		total += len(node.Tokens)
	}
	c := make(circle, 0, total)
	for i, node := range nodes {
		if node.Datacenter == join.Datacenter && (w != primaryInRack || node.Rack == join.Rack) {
			for _, token := range node.Tokens {
				c = append(c, place{token, i})
			}
		}
	}
	slices.SortFunc(c, comparePlaces)
	owner := len(nodes)
	switch w {
	case replicatedByRack:
		return spread(c, owner, join.Tokens, join.ReplicationFactor, func(of int) string {
			if of == owner {
				return join.Rack
			}
			return nodes[of].Rack
		}, start)
	case replicatedByNode:
		return spread(c, owner, join.Tokens, join.ReplicationFactor, strconv.Itoa, start)
	case primaryInDatacenter, primaryInRack:
	}
	return takeOver(c, owner, join.Tokens, start)
}

// evenest is the option in which the fullest node of a datacenter holds the
// least; the first of them if several do.
func evenest(options [][]ring.Node, datacenter string, factor int) []ring.Node {
	if len(options) == 1 {
		return options[0]
	}
	best, least := options[0], math.Inf(1)
	for _, nodes := range options {
		if fullest := fullestShare(nodes, datacenter, factor); fullest < least-evenEnough {
			best, least = nodes, fullest
		}
	}
	return best
}

// evenEnough is the difference between shares that may come from rounding.
const evenEnough = 1e-9

// fullestShare is the greatest part of the data that a node of the datacenter
// holds; infinite if the nodes make no ring, which Form reports in the end.
func fullestShare(nodes []ring.Node, datacenter string, factor int) float64 {
	local := slices.DeleteFunc(slices.Clone(nodes), func(node ring.Node) bool { return node.Datacenter != datacenter })
	r, faulty := ring.New(local)
	replication, unnamed := ring.NetworkTopology(map[string]int{datacenter: factor})
	if faulty != nil || unnamed != nil {
		return math.Inf(1)
	}
	fullest := 0.0
	for _, share := range r.EffectiveShares(replication) {
		fullest = max(fullest, share)
	}
	return fullest
}

// taken is the tokens that nobody else may get.
type taken struct {
	before  []ring.Token // ascending, and never changed
	claimed map[ring.Token]bool
}

// takenIn are the tokens of a ring.
func takenIn(r *ring.Ring) taken { return taken{r.Tokens(), map[ring.Token]bool{}} }

// clone can be claimed from without anything being taken here.
func (t taken) clone() taken { return taken{t.before, maps.Clone(t.claimed)} }

func (t taken) has(token ring.Token) bool {
	_, before := slices.BinarySearch(t.before, token)
	return before || t.claimed[token]
}

// free is the token itself or the next that nobody has
// (TokenAllocation.StrategyAdapter#adjustForCrossDatacenterClashes). It is never
// the ring's minimum, which no key hashes to.
func (t taken) free(token ring.Token) ring.Token {
	for t.has(token) || token == ring.MinToken {
		token++ // from the greatest token to the least: overflow is wanted
	}
	return token
}

// claim takes the token that free finds.
func (t taken) claim(token ring.Token) ring.Token {
	token = t.free(token)
	t.claimed[token] = true
	return token
}

// claimAll claims tokens and returns what it got, ascending.
func (t taken) claimAll(tokens []ring.Token) []ring.Token {
	claimed := slices.Sorted(slices.Values(tokens))
	for i, token := range claimed {
		claimed[i] = t.claim(token)
	}
	slices.Sort(claimed)
	return claimed
}
