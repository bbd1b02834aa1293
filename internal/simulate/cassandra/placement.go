package cassandra

import (
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/twmb/murmur3"

	"helenus.io/helenus/internal/core/ring"
)

// tokenOf is the token of a key: any good hash does, since all nodes use the same.
func tokenOf(key string) ring.Token {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return ring.Token(x ^ x>>33) //nolint:gosec // the whole range is wanted
}

// roleToken is the token of a role by Cassandra's Murmur3Partitioner.
func roleToken(name string) ring.Token {
	h, _ := murmur3.StringSum128(name)
	return ring.Token(h) //nolint:gosec // as above
}

// rings are what a node places replicas by: the present ring and those that are to come. They are
// recreated when the picture has changed.
type rings struct {
	version int
	entries int
	present *circle
	// joined is the present ring with one node that joins, by that node; left the one without those
	// that leave, nil if none does.
	joined map[netip.Addr]*circle
	left   *circle
}

// ringNode is a member as placement sees it.
func (p *Process) ringNode(a netip.Addr, tokens []ring.Token) ring.Node {
	dc, rack := p.locationOf(a)
	return ring.Node{ID: a.String(), Datacenter: dc, Rack: rack, Tokens: tokens}
}

// locationOf is where the snitch sees a node: by gossip, else by what the disk remembers.
func (p *Process) locationOf(a netip.Addr) (dc, rack string) {
	if a == p.address {
		return p.settings.datacenter, p.settings.rack
	}
	if e := p.gossip.find(a); e != nil && e.state.dc != "" {
		return e.state.dc, e.state.rack
	}
	if saved, found := p.disk.peers[a]; found && saved.dc != "" {
		return saved.dc, saved.rack
	}
	return "UNKNOWN_DC", "UNKNOWN_RACK"
}

// rings of this node.
func (p *Process) ringsNow() *rings {
	m := &p.metadata
	if r := &p.placement; r.present != nil && r.version == m.version && r.entries == p.version {
		return r
	}
	byNode := map[netip.Addr][]ring.Token{}
	for t, a := range m.tokens {
		byNode[a] = append(byNode[a], t)
	}
	var nodes []ring.Node
	for _, a := range sortedKeys(byNode) {
		nodes = append(nodes, p.ringNode(a, byNode[a]))
	}
	r := rings{version: m.version, entries: p.version, joined: map[netip.Addr]*circle{}}
	r.present = mustRing(nodes)
	joining := map[netip.Addr][]ring.Token{}
	for t, a := range m.joining {
		joining[a] = append(joining[a], t)
	}
	for _, a := range sortedKeys(joining) {
		// One that replaces takes the place of the other; any other is added, also to those that
		// are to leave.
		base, tokens := r.present, joining[a]
		if old, replaces := m.replacing[a]; replaces {
			base = circleOf(base.Without(old.String()))
		}
		tokens = slices.DeleteFunc(slices.Clone(tokens),
			func(t ring.Token) bool { return slices.Contains(base.tokens, t) })
		if len(tokens) == 0 {
			continue
		}
		if with, err := base.With(p.ringNode(a, tokens)); err == nil {
			r.joined[a] = circleOf(with)
		}
	}
	if len(m.leaving) > 0 {
		var ids []string
		for _, a := range sortedKeys(m.leaving) {
			ids = append(ids, a.String())
		}
		r.left = circleOf(r.present.Without(ids...))
	}
	p.placement = r
	return &p.placement
}

// mustRing makes a ring of what the tokens' map holds, which cannot have a fault.
func mustRing(nodes []ring.Node) *circle {
	r, err := ring.New(nodes)
	if err != nil {
		panic("a picture of the ring contradicts itself: " + err.Error())
	}
	return circleOf(r)
}

// natural are the replicas of a token by this node's view.
func (p *Process) natural(replication ring.Replication, t ring.Token) []netip.Addr {
	return p.ringsNow().present.endpoints(replication, t)
}

// pendingOf are the nodes on their way to be replicas of a token: they get every write beside the
// replicas.
func (p *Process) pendingOf(replication ring.Replication, t ring.Token) []netip.Addr {
	r := p.ringsNow()
	if len(r.joined) == 0 && r.left == nil {
		return nil
	}
	natural := r.present.endpoints(replication, t)
	var out []netip.Addr
	add := func(a netip.Addr) {
		if !slices.Contains(natural, a) && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, a := range sortedKeys(r.joined) {
		if slices.Contains(r.joined[a].endpoints(replication, t), a) {
			add(a)
		}
	}
	if r.left != nil {
		for _, a := range r.left.endpoints(replication, t) {
			add(a)
		}
	}
	return out
}

// pendingRange is a range on its way to new owners.
type pendingRange struct {
	of ring.Range
	to []netip.Addr
}

// pending are the ranges of a keyspace on their way to new owners.
func (p *Process) pending(replication ring.Replication) []pendingRange {
	r := p.ringsNow()
	if len(r.joined) == 0 && r.left == nil {
		return nil
	}
	ends := r.present.Tokens()
	for _, a := range sortedKeys(r.joined) {
		for _, t := range r.joined[a].Tokens() {
			if !slices.Contains(ends, t) {
				ends = append(ends, t)
			}
		}
	}
	slices.Sort(ends)
	var out []pendingRange
	for i, end := range ends {
		if to := p.pendingOf(replication, end); len(to) > 0 {
			out = append(out, pendingRange{ring.Range{Start: ends[(i+len(ends)-1)%len(ends)], End: end}, to})
		}
	}
	return out
}
