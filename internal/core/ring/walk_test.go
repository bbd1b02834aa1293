package ring

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NaturalEndpoints are the ids of the nodes that hold the replicas of a token, in Cassandra's
// order: the first is the primary replica. The strategies are followed exactly
// (NetworkTopologyStrategy#calculateNaturalReplicas, SimpleStrategy#calculateNaturalReplicas).
// LocalStrategy replicates nothing, so it has none; EverywhereStrategy has all nodes, by id.
//
// It walks the ring for one token, as Cassandra does. Tables of all ranges are held to it.
func (r *Ring) NaturalEndpoints(replication Replication, token Token) []string {
	if len(r.tokens) == 0 {
		return nil
	}
	switch replication.strategy {
	case NetworkTopologyStrategy:
		return r.ids(r.walkTopology(replication, token))
	case SimpleStrategy:
		return r.ids(r.walkSimple(replication.factor, token))
	case EverywhereStrategy:
		return r.ids(r.everyone())
	case LocalStrategy:
	}
	return nil
}

// walkSimple takes the owners of the next tokens, each node once.
func (r *Ring) walkSimple(factor int, token Token) []int32 {
	var chosen []int32
	start := r.at(token)
	for step := 0; step < len(r.tokens) && len(chosen) < factor; step++ {
		node := r.owners[(start+step)%len(r.tokens)]
		if !slices.Contains(chosen, node) {
			chosen = append(chosen, node)
		}
	}
	return chosen
}

// topologyQuota is what NetworkTopologyStrategy still wants of one datacenter
// (NetworkTopologyStrategy.DatacenterEndpoints).
type topologyQuota struct {
	left int // replicas
	// repeats is how many replicas may yet share a rack with an earlier one: the
	// factor less the number of racks. It is counted from the configured factor,
	// also where there are fewer nodes than that.
	repeats int
	racks   []bool // taken
}

// walkTopology takes nodes from the ring in token order as long as their datacenter wants them: the
// first node of each rack, and others of the same rack only as far as there are too few racks.
func (r *Ring) walkTopology(replication Replication, token Token) []int32 {
	quotas := make([]topologyQuota, len(r.datacenters))
	wanted := 0
	for i := range r.datacenters {
		dc := &r.datacenters[i]
		if factor := replication.Factor(dc.name); factor > 0 {
			quotas[i] = topologyQuota{
				left:    min(factor, len(dc.nodes)),
				repeats: factor - len(dc.racks),
				racks:   make([]bool, len(dc.racks)),
			}
			wanted += quotas[i].left
		}
	}
	chosen := make([]int32, 0, wanted)
	start := r.at(token)
	for step := 0; len(chosen) < wanted; step++ {
		node := r.owners[(start+step)%len(r.tokens)]
		quota := &quotas[r.datacenter[node]]
		if quota.left == 0 || slices.Contains(chosen, node) {
			continue
		}
		if rack := r.rack[node]; !quota.racks[rack] {
			quota.racks[rack] = true
		} else if quota.repeats > 0 {
			quota.repeats--
		} else {
			continue
		}
		quota.left--
		chosen = append(chosen, node)
	}
	return chosen
}

// PrimaryShares is the fraction of the ring in each node's primary ranges, by
// node id. The shares add up to 1.
func (r *Ring) PrimaryShares() map[string]float64 {
	shares := make(map[string]float64, len(r.nodes))
	for i, owner := range r.owners {
		shares[r.nodes[owner].ID] += r.rangeAt(i).Size()
	}
	return shares
}

// Node finds a member by its id.
func (r *Ring) Node(id string) (Node, bool) {
	i, ok := r.index[id]
	if !ok {
		return Node{}, false
	}
	return r.nodes[i], true
}

// Owner is the id of the node in whose primary range a token lies; "" in a ring of no nodes.
func (r *Ring) Owner(token Token) string {
	if len(r.tokens) == 0 {
		return ""
	}
	return r.nodes[r.owners[r.at(token)]].ID
}

// PrimaryRanges are the ranges that end with a token of the node, in ring order;
// none for a node that is not a member.
func (r *Ring) PrimaryRanges(id string) []Range {
	node, ok := r.index[id]
	if !ok {
		return nil
	}
	var ranges []Range
	for i, owner := range r.owners {
		if owner == node {
			ranges = append(ranges, r.rangeAt(i))
		}
	}
	return ranges
}

// Datacenters are the names of the datacenters that have members, sorted.
func (r *Ring) Datacenters() []string {
	names := make([]string, len(r.datacenters))
	for i := range r.datacenters {
		names[i] = r.datacenters[i].name
	}
	return names
}

// Racks are the names of the racks of a datacenter that have members, sorted.
func (r *Ring) Racks(datacenter string) []string {
	if dc := r.findDatacenter(datacenter); dc != nil {
		return slices.Clone(dc.racks)
	}
	return nil
}

// Contains says whether the range holds a token (Range#contains).
func (r Range) Contains(token Token) bool {
	if r.Start < r.End {
		return r.Start < token && token <= r.End
	}
	return r.Start < token || token <= r.End
}

// Full says whether the range is the whole ring.
func (r Range) Full() bool { return r.Start == r.End }

// ParseToken reads a token as Cassandra prints it: a decimal 64 bit integer
// (Murmur3Partitioner.TokenFactory#fromString).
func ParseToken(text string) (Token, error) {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse token %q: want a decimal integer from %d to %d", text, MinToken, MaxToken)
	}
	return Token(value), nil
}

// ParseTokens reads a comma separated list of tokens, the form of the setting initial_token; blanks
// around a token are ignored, as Cassandra does (DatabaseDescriptor#tokensFromString). An empty
// list is an error: no node has no tokens.
func ParseTokens(text string) ([]Token, error) {
	var tokens []Token
	for part := range strings.SplitSeq(text, ",") {
		token, err := ParseToken(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// at is the index of the range that holds a token: that of the first token not
// less than it, or the first of all (TokenMetadata#firstTokenIndex).
func (c *circle) at(token Token) int {
	i, _ := slices.BinarySearch(c.tokens, token)
	if i == len(c.tokens) {
		return 0
	}
	return i
}
