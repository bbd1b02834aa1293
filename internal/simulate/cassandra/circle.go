package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"helenus.io/helenus/internal/core/ring"
)

// circle is a ring with who owns which token. Replicas are placed by a walk along it, as Cassandra
// does, and not by the tables of the product.
type circle struct {
	*ring.Ring
	nodes  []ring.Node
	tokens []ring.Token
	owners []int // of each token, into nodes
}

func circleOf(r *ring.Ring) *circle {
	c := &circle{Ring: r, nodes: r.Nodes(), tokens: r.Tokens()}
	c.owners = make([]int, len(c.tokens))
	for i, n := range c.nodes {
		for _, t := range n.Tokens {
			at, _ := slices.BinarySearch(c.tokens, t)
			c.owners[at] = i
		}
	}
	return c
}

// datacenters that have members, sorted.
func (c *circle) datacenters() []string {
	var names []string
	for _, n := range c.nodes {
		names = append(names, n.Datacenter)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// endpoints are the replicas of a token, the first one first (NetworkTopologyStrategy and
// SimpleStrategy, calculateNaturalReplicas).
func (c *circle) endpoints(replication ring.Replication, t ring.Token) []netip.Addr {
	var chosen []int
	switch replication.Strategy() {
	case ring.NetworkTopologyStrategy:
		chosen = c.walk(t, topologyQuotas(c.nodes, replication))
	case ring.SimpleStrategy:
		chosen = c.walk(t, map[string]*quota{"": {left: min(replication.TotalFactor(), len(c.nodes)), anyRack: true}})
	case ring.EverywhereStrategy:
		for i := range c.nodes {
			chosen = append(chosen, i)
		}
	case ring.LocalStrategy:
	}
	out := make([]netip.Addr, len(chosen))
	for i, node := range chosen {
		out[i] = netip.MustParseAddr(c.nodes[node].ID)
	}
	return out
}

// quota is what a strategy still wants of one datacenter, or, under the name "", of all.
type quota struct {
	left, repeats int
	anyRack       bool
	racks         map[string]bool
}

// topologyQuotas are those of NetworkTopologyStrategy: as many nodes of a rack that has one already
// as there are too few racks for the factor.
func topologyQuotas(nodes []ring.Node, replication ring.Replication) map[string]*quota {
	racks, count := map[string]map[string]bool{}, map[string]int{}
	for _, n := range nodes {
		if racks[n.Datacenter] == nil {
			racks[n.Datacenter] = map[string]bool{}
		}
		racks[n.Datacenter][n.Rack] = true
		count[n.Datacenter]++
	}
	quotas := map[string]*quota{}
	for dc := range racks {
		if factor := replication.Factor(dc); factor > 0 {
			quotas[dc] = &quota{left: min(factor, count[dc]), repeats: factor - len(racks[dc]),
				racks: map[string]bool{}}
		}
	}
	return quotas
}

// walk takes the owners of the next tokens for as long as their datacenter wants them.
func (c *circle) walk(t ring.Token, quotas map[string]*quota) []int {
	var chosen []int
	start, _ := slices.BinarySearch(c.tokens, t)
	for step := range c.tokens {
		node := c.owners[(start+step)%len(c.tokens)]
		q := quotas[c.nodes[node].Datacenter]
		if q == nil {
			q = quotas[""]
		}
		if q == nil || q.left == 0 || slices.Contains(chosen, node) {
			continue
		}
		rack := c.nodes[node].Rack
		switch {
		case q.anyRack:
		case !q.racks[rack]:
			q.racks[rack] = true
		case q.repeats > 0:
			q.repeats--
		default:
			continue
		}
		q.left--
		chosen = append(chosen, node)
	}
	return chosen
}

// parseTokens reads a list of tokens as DatabaseDescriptor#tokensFromString does.
func parseTokens(text string) ([]ring.Token, error) {
	var tokens []ring.Token
	for part := range strings.SplitSeq(text, ",") {
		t, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse token %q: want a decimal integer", part)
		}
		tokens = append(tokens, ring.Token(t))
	}
	return tokens, nil
}

// within says whether a range holds a token (Range#contains).
func within(r ring.Range, t ring.Token) bool {
	if r.Start < r.End {
		return r.Start < t && t <= r.End
	}
	return r.Start < t || t <= r.End
}
