package ring

import (
	"fmt"
	"slices"
)

// UnknownNodeError says that a node which is to be taken down is not in the
// ring, so that nothing can be said of it.
type UnknownNodeError struct{ ID string }

// Error names the node.
func (e *UnknownNodeError) Error() string { return fmt.Sprintf("node %s is not in the ring", e.ID) }

// Check judges taking nodes down together while others are down. Ids that are down but not in the
// ring are ignored: a node that has left still shows as unreachable for days. An id that is to be
// taken down and is not in the ring is an *UnknownNodeError. A node may be in both lists; as it is
// down already, nothing changes.
func (p *Protection) Check(take, down []string) (Verdict, error) {
	nodes, err := p.ring.find(take)
	if err != nil {
		return Verdict{}, err
	}
	o := p.outage(down)
	for _, node := range nodes {
		o.take(node)
	}
	return o.verdict(), nil
}

// Unserved are the ranges that are below the level while nodes are down, those that no schedule
// protects among them; ids that are not in the ring are ignored. Of a range of which neither a
// replica is down nor one pending nothing is said, however few there are. With is nil, or made of
// the same keyspaces for the ring with nodes beside that are joining it and are down: a write
// needs one more answer for each of them of which its range is pending (ReplicaPlans#forWrite). By
// counts them for each datacenter whose replicas serve them, and under "" those that all serve
// together.
func (p *Protection) Unserved(down []string, with *Protection) (f Finding, by map[string]int) {
	o := p.outage(down)
	by = map[string]int{}
	for i := range o.demands {
		d := &o.demands[i]
		pending := d.pending(p.ring, with)
		for at, lost := range o.lost[i] {
			lost, more := int(lost), 0
			if pending != nil {
				more = pending[at]
			}
			if lost+more <= max(0, d.spare()) {
				continue
			}
			by[d.datacenter]++
			if o.note(&f, d, at, lost+more); f.Worst.Range == d.circle.rangeAt(at) {
				f.Worst.Pending = more
			}
		}
	}
	return f, by
}

// At is what the level demands of the range that a token is in while nodes are down: one Risk where
// all replicas count together, else one for each datacenter. Down and with are those of Unserved.
func (p *Protection) At(token Token, down []string, with *Protection) []*Risk {
	o := p.outage(down)
	var out []*Risk //nolint:prealloc // one or two
	for i := range o.demands {
		d := &o.demands[i]
		if d.ranges() == 0 { // EACH_QUORUM waits for a datacenter without members
			out = append(out, &Risk{Keyspaces: d.keyspaces, Datacenter: d.datacenter, Consistency: p.consistency,
				Required: d.required})
			continue
		}
		at := d.circle.holding(token)
		risk := o.risk(d, at)
		if pending := d.pending(p.ring, with); pending != nil {
			risk.Pending = pending[at]
		}
		out = append(out, risk)
	}
	return out
}

// pending says how many nodes join each range that are in the ring of another protection alone; nil
// if that has no such demand.
func (d *demand) pending(r *Ring, with *Protection) []int {
	if with == nil {
		return nil
	}
	i := slices.IndexFunc(with.demands, func(other demand) bool {
		return other.keyspaces[0] == d.keyspaces[0] && other.datacenter == d.datacenter
	})
	if i < 0 || d.ranges() == 0 {
		return nil
	}
	out, then := make([]int, d.ranges()), &with.demands[i]
	for at, end := range then.circle.tokens {
		joining := 0
		for _, node := range then.row(at) {
			if _, member := r.index[with.ring.nodes[node].ID]; !member {
				joining++
			}
		}
		now := d.circle.holding(end)
		out[now] = max(out[now], joining)
	}
	return out
}

// Wave is a set of nodes of one rack that may be taken down together.
type Wave struct {
	Datacenter string
	Rack       string
	// Nodes are in the order in which they were asked for; empty if none of the
	// nodes may be taken down now.
	Nodes []string
	// Verdict is that of Check on the nodes; if there are none, on the first node
	// that was asked for, which is why there is no wave.
	Verdict Verdict
}

// NextWave chooses, among nodes that are still to be taken down, those to take down next while
// others are down: at most limit nodes (less than 1 gives none), all of one rack, such that the
// policy permits them together. It takes the first rack, in the order in which the nodes are given,
// of which at least one node may go, and of it every node that still fits in, in that order. With
// at least as many racks as replicas a whole rack fits (NetworkTopologyStrategy has no range twice
// in it); no larger set is looked for.
//
// Nodes that are down already fit in always, and count towards the limit. An id
// that is not in the ring is an *UnknownNodeError.
func (p *Protection) NextWave(pending, down []string, limit int, policy UnprotectedPolicy) (Wave, error) {
	nodes, err := p.ring.find(pending)
	if err != nil {
		return Wave{}, err
	}
	o := p.outage(down)
	for _, rack := range p.ring.splitByRack(nodes) {
		var fitting []int32
		for _, node := range rack {
			if len(fitting) < limit && o.fits(node, policy) {
				fitting = append(fitting, node)
			}
		}
		if len(fitting) > 0 {
			first := p.ring.nodes[fitting[0]]
			return Wave{first.Datacenter, first.Rack, p.ring.ids(fitting), o.verdict()}, nil
		}
	}
	if len(nodes) > 0 {
		o.take(nodes[0])
	}
	return Wave{Verdict: o.verdict()}, nil
}

// fits takes a node down if that is permitted along with those taken before, all of one rack. As
// every node has a replica of the range that its own token ends, the nodes of a datacenter hold
// ranges that no schedule protects all or none, so it is enough to look at this one.
func (o *outage) fits(node int32, policy UnprotectedPolicy) bool {
	if o.down[node] {
		return true
	}
	o.take(node)
	permitted := !o.breaks(node)
	if down := o.exposes(node); down > 0 {
		permitted = permitted && policy == Proceed && o.count == 1 && down == 1
	}
	if !permitted {
		o.giveBack(node)
	}
	return permitted
}

// splitByRack divides nodes by rack, keeping their order and that in which the
// racks first appear. A node that is there twice is taken once.
func (r *Ring) splitByRack(nodes []int32) [][]int32 {
	var racks [][]int32
	at := map[Place]int{}
	for _, node := range nodes {
		place := Place{r.nodes[node].Datacenter, r.nodes[node].Rack}
		i, ok := at[place]
		if !ok {
			i = len(racks)
			at[place] = i
			racks = append(racks, nil)
		}
		if !slices.Contains(racks[i], node) {
			racks[i] = append(racks[i], node)
		}
	}
	return racks
}

// find turns ids into nodes.
func (r *Ring) find(ids []string) ([]int32, error) {
	nodes := make([]int32, 0, len(ids))
	for _, id := range ids {
		node, ok := r.index[id]
		if !ok {
			return nil, &UnknownNodeError{id}
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// ids turns nodes into their ids.
func (r *Ring) ids(nodes []int32) []string {
	ids := make([]string, len(nodes))
	for i, node := range nodes {
		ids[i] = r.nodes[node].ID
	}
	return ids
}
