package ring

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Node is a member of the ring, or one that is to become a member.
type Node struct {
	// ID names the node: its host id, or, before it has one, the name of its
	// record. One caller must keep to one of the two.
	ID string
	// Datacenter and Rack are the names that Cassandra's snitch gives it.
	Datacenter string
	Rack       string
	// Tokens are the ends of the ranges that it owns, in any order, at least one.
	Tokens []Token
}

// DuplicateTokenError says that two nodes claim one token. Cassandra does not
// refuse this when both start at once: the node with the newer gossip generation
// silently takes the token (StorageService#handleStateNormal).
type DuplicateTokenError struct {
	Token Token
	// Nodes are the ids of the two claimants; equal if one node lists it twice.
	Nodes [2]string
}

// Error names the token and its claimants.
func (e *DuplicateTokenError) Error() string {
	return fmt.Sprintf("token %s belongs to both %s and %s", e.Token, e.Nodes[0], e.Nodes[1])
}

// Ring is a set of nodes and the order of their tokens. It counts every member,
// whether up or down, as Cassandra's TokenMetadata does. A Ring never changes.
type Ring struct {
	nodes       []Node           // by ID
	index       map[string]int32 // of nodes, by ID
	datacenters []datacenter     // by name
	datacenter  []int32          // of each node, into datacenters
	rack        []int32          // of each node, into its datacenter's racks
	circle                       // of all datacenters
}

// datacenter is the part of the ring that NetworkTopologyStrategy looks at when
// it places replicas in one datacenter.
type datacenter struct {
	name  string
	racks []string // by name
	nodes []int32
	circle
}

// circle is an ascending list of tokens and, in parallel, the nodes owning them.
type circle struct {
	tokens []Token
	owners []int32
}

// New makes a ring. Every fault is reported, not only the first: an empty or
// repeated id, an empty datacenter or rack, a node without tokens, and, as
// *DuplicateTokenError, a token that has two owners. A ring of no nodes is valid.
func New(nodes []Node) (*Ring, error) {
	r := &Ring{nodes: byID(nodes), index: make(map[string]int32, len(nodes))}
	var faults []error //nolint:prealloc // most often there are none
	total := 0
	for i, node := range r.nodes {
		faults = append(faults, r.checkNode(node)...)
		r.index[node.ID] = int32(i)
		total += len(node.Tokens)
	}
	faults = append(faults, r.sortTokens(total)...)
	if len(faults) > 0 {
		return nil, fmt.Errorf("make ring: %w", errors.Join(faults...))
	}
	r.divide()
	return r, nil
}

// byID sorts nodes. Their places are sorted, since nodes are large to move about.
func byID(nodes []Node) []Node {
	order := make([]int32, len(nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(nodes[a].ID, nodes[b].ID), cmp.Compare(a, b))
	})
	sorted := make([]Node, len(nodes))
	for i, at := range order {
		sorted[i] = nodes[at]
	}
	return sorted
}

// checkNode finds the faults of one node; r.index holds the nodes before it.
func (r *Ring) checkNode(node Node) []error {
	var faults []error
	if node.ID == "" {
		return []error{errors.New("a node has no id")}
	}
	if _, ok := r.index[node.ID]; ok {
		faults = append(faults, fmt.Errorf("node %s is there twice", node.ID))
	}
	if node.Datacenter == "" {
		faults = append(faults, fmt.Errorf("node %s has no datacenter", node.ID))
	}
	if node.Rack == "" {
		faults = append(faults, fmt.Errorf("node %s has no rack", node.ID))
	}
	if len(node.Tokens) == 0 {
		faults = append(faults, fmt.Errorf("node %s has no tokens", node.ID))
	}
	return faults
}

// sortTokens fills the ring's circle and finds tokens with two owners.
func (r *Ring) sortTokens(total int) []error {
	all := make([]owned, 0, total)
	for i, node := range r.nodes {
		for _, token := range node.Tokens {
			all = append(all, owned{token, int32(i)})
		}
	}
	all = sortByToken(all)
	var faults []error
	r.circle = newCircle(total)
	for i, o := range all {
		if i > 0 && all[i-1].token == o.token {
			faults = append(faults, &DuplicateTokenError{
				Token: o.token,
				Nodes: [2]string{r.nodes[all[i-1].owner].ID, r.nodes[o.owner].ID},
			})
		}
		r.add(o.token, o.owner)
	}
	return faults
}

// divide sorts nodes and tokens into datacenters and racks.
func (r *Ring) divide() {
	racks := map[string][]string{}
	var names []string
	for _, node := range r.nodes {
		if _, ok := racks[node.Datacenter]; !ok {
			names = append(names, node.Datacenter)
		}
		if !slices.Contains(racks[node.Datacenter], node.Rack) {
			racks[node.Datacenter] = append(racks[node.Datacenter], node.Rack)
		}
	}
	slices.Sort(names)
	r.datacenters = make([]datacenter, len(names))
	for i, name := range names {
		slices.Sort(racks[name])
		r.datacenters[i] = datacenter{name: name, racks: racks[name]}
	}
	r.datacenter = make([]int32, len(r.nodes))
	r.rack = make([]int32, len(r.nodes))
	for i, node := range r.nodes {
		at, _ := slices.BinarySearch(names, node.Datacenter)
		dc := &r.datacenters[at]
		rack, _ := slices.BinarySearch(dc.racks, node.Rack)
		dc.nodes = append(dc.nodes, int32(i))
		r.datacenter[i], r.rack[i] = int32(at), int32(rack)
	}
	if len(names) == 1 {
		r.datacenters[0].circle = r.circle // neither is ever changed
		return
	}
	counts := make([]int, len(names))
	for i, node := range r.nodes {
		counts[r.datacenter[i]] += len(node.Tokens)
	}
	for i := range r.datacenters {
		r.datacenters[i].circle = newCircle(counts[i])
	}
	for i, token := range r.tokens {
		owner := r.owners[i]
		r.datacenters[r.datacenter[owner]].add(token, owner)
	}
}

func newCircle(capacity int) circle {
	return circle{tokens: make([]Token, 0, capacity), owners: make([]int32, 0, capacity)}
}

func (c *circle) add(token Token, owner int32) {
	c.tokens = append(c.tokens, token)
	c.owners = append(c.owners, owner)
}

// rangeAt is the range that ends with the i-th token.
func (c *circle) rangeAt(i int) Range {
	return Range{Start: c.tokens[(i+len(c.tokens)-1)%len(c.tokens)], End: c.tokens[i]}
}

// holding is the place of the range that a token is in.
func (c *circle) holding(token Token) int {
	i, _ := slices.BinarySearch(c.tokens, token)
	return i % len(c.tokens)
}

// Len is the number of nodes.
func (r *Ring) Len() int { return len(r.nodes) }

// Nodes are the members, by id. The tokens are shared with the ring: read only.
func (r *Ring) Nodes() []Node { return slices.Clone(r.nodes) }

// Tokens are all tokens in ascending order.
func (r *Ring) Tokens() []Token { return slices.Clone(r.tokens) }

// findDatacenter is nil for a datacenter without members.
func (r *Ring) findDatacenter(name string) *datacenter {
	i, found := slices.BinarySearchFunc(r.datacenters, name, func(dc datacenter, name string) int {
		return cmp.Compare(dc.name, name)
	})
	if !found {
		return nil
	}
	return &r.datacenters[i]
}

// With is the ring after more nodes joined. It fails as New does.
func (r *Ring) With(nodes ...Node) (*Ring, error) {
	if !r.admits(nodes) {
		return New(slices.Concat(r.nodes, nodes))
	}
	larger := &Ring{nodes: byID(slices.Concat(r.nodes, nodes)), index: make(map[string]int32, len(r.nodes)+len(nodes))}
	for i, node := range larger.nodes {
		larger.index[node.ID] = int32(i)
	}
	moved := make([]int32, len(r.nodes)) // where in the larger ring
	for i, node := range r.nodes {
		moved[i] = larger.index[node.ID]
	}
	var added []owned
	for _, node := range nodes {
		for _, token := range node.Tokens {
			added = append(added, owned{token, larger.index[node.ID]})
		}
	}
	added = sortByToken(added)
	larger.circle = newCircle(len(r.tokens) + len(added))
	for i, token := range r.tokens {
		for len(added) > 0 && added[0].token < token {
			larger.add(added[0].token, added[0].owner)
			added = added[1:]
		}
		larger.add(token, moved[r.owners[i]])
	}
	for _, o := range added {
		larger.add(o.token, o.owner)
	}
	larger.divide()
	return larger, nil
}

// admits says that nodes have no fault and nothing that another one has, so that
// the order of what is there needs no second look.
func (r *Ring) admits(nodes []Node) bool {
	others, err := New(nodes)
	if err != nil {
		return false
	}
	for _, node := range nodes {
		if _, there := r.index[node.ID]; there {
			return false
		}
	}
	return !slices.ContainsFunc(others.tokens, func(token Token) bool {
		_, taken := slices.BinarySearch(r.tokens, token)
		return taken
	})
}

// Without is the ring after nodes left. Ids that are not members are ignored:
// they have left already.
func (r *Ring) Without(ids ...string) *Ring {
	smaller := &Ring{nodes: make([]Node, 0, len(r.nodes)), index: make(map[string]int32, len(r.nodes)),
		circle: newCircle(len(r.tokens))}
	stays := make([]int32, len(r.nodes)) // where in the smaller ring; -1 for one that left
	for i, node := range r.nodes {
		if stays[i] = -1; !slices.Contains(ids, node.ID) {
			stays[i] = int32(len(smaller.nodes))
			smaller.index[node.ID] = stays[i]
			smaller.nodes = append(smaller.nodes, node)
		}
	}
	// The tokens are in order already, and a part of a faultless ring is faultless.
	for i, token := range r.tokens {
		if owner := stays[r.owners[i]]; owner >= 0 {
			smaller.add(token, owner)
		}
	}
	smaller.divide()
	return smaller
}
