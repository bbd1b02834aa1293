package ring

import (
	"cmp"
	"slices"
)

// Protection knows, for one ring, the keyspaces on it and a consistency level,
// which nodes may be down together. It is made once for a view of the ring and
// asked many times; work is done once for keyspaces that are replicated alike.
//
// What a level demands of a keyspace:
//   - LocalOne, LocalQuorum and EachQuorum, with NetworkTopologyStrategy: enough
//     replicas in every datacenter in which the keyspace has any, since clients
//     may be in any of them.
//   - The other levels: enough replicas in all datacenters together.
//   - With SimpleStrategy and EverywhereStrategy every level counts all
//     datacenters together. Cassandra counts a LOCAL level's answers in one
//     datacenter there but asks for as many as over all of them
//     (ConsistencyLevel#localQuorumFor), which in more than one datacenter no
//     schedule can ensure.
//   - With LocalStrategy: nothing.
//
// Replicas of joining nodes are not counted. While a node joins or leaves, writes need one more
// answer for each pending replica (ConsistencyLevel#blockForWrite); other guards keep disruptions
// out of that time.
type Protection struct {
	ring        *Ring
	consistency Consistency
	demands     []demand
}

// demand is what one level asks of one table.
type demand struct {
	keyspaces  []string
	datacenter string // "" if all count together
	required   int
	*table
	nodes nodeRanges
}

// spare is how many replicas of each range may be down. Less than 1 means that
// no schedule protects them.
func (d *demand) spare() int { return d.width - d.required }

// nodeRanges says of which ranges of a table each node is a replica.
type nodeRanges struct {
	ranges []int32
	start  []int32 // of each node's part of ranges, and one more for the end
}

func (n *nodeRanges) of(node int32) []int32 { return n.ranges[n.start[node]:n.start[node+1]] }

// NewProtection prepares the answers. The only error is an unknown consistency level.
func NewProtection(r *Ring, keyspaces []Keyspace, consistency Consistency) (*Protection, error) {
	if err := consistency.check(); err != nil {
		return nil, err
	}
	p := &Protection{ring: r, consistency: consistency}
	if r.Len() == 0 {
		return p, nil
	}
	builder := demandBuilder{Protection: p, local: map[localPart]int{}, tables: map[localPart]*table{}}
	for _, group := range groupByReplication(keyspaces) {
		builder.add(group)
	}
	for i := range p.demands {
		d := &p.demands[i]
		slices.Sort(d.keyspaces)
		d.nodes = indexNodes(d.table, r.Len())
	}
	slices.SortFunc(p.demands, func(a, b demand) int {
		return cmp.Or(cmp.Compare(a.keyspaces[0], b.keyspaces[0]), cmp.Compare(a.datacenter, b.datacenter))
	})
	return p, nil
}

// localPart is what NetworkTopologyStrategy does in one datacenter.
type localPart struct {
	datacenter string
	factor     int
}

// demandBuilder collects demands and shares what is alike among them.
type demandBuilder struct {
	*Protection
	local  map[localPart]int // index of a demand
	tables map[localPart]*table
}

func (b *demandBuilder) add(group replicationGroup) {
	switch group.replication.strategy {
	case NetworkTopologyStrategy:
		if b.consistency.byDatacenter() {
			b.addLocal(group)
		} else {
			b.addTopology(group)
		}
	case SimpleStrategy:
		b.append(group.names, "", group.replication.factor, b.ring.simpleTable(group.replication.factor))
	case EverywhereStrategy:
		b.append(group.names, "", b.ring.Len(), b.ring.everywhereTable())
	case LocalStrategy: // demands nothing
	}
}

func (b *demandBuilder) append(keyspaces []string, datacenter string, factor int, t *table) {
	b.demands = append(b.demands, demand{
		keyspaces:  slices.Clone(keyspaces),
		datacenter: datacenter,
		required:   b.consistency.required(factor),
		table:      t,
	})
}

// addLocal makes one demand per datacenter, shared by all keyspaces with the same factor there. A
// datacenter without members has no clients to serve, but EACH_QUORUM waits for it all the same.
func (b *demandBuilder) addLocal(group replicationGroup) {
	for _, f := range group.replication.factors {
		part := localPart(f)
		if i, ok := b.local[part]; ok {
			b.demands[i].keyspaces = append(b.demands[i].keyspaces, group.names...)
			continue
		}
		t := b.table(part)
		if t == nil && b.consistency != EachQuorum {
			continue
		}
		if t == nil {
			t = &table{circle: &circle{}}
		}
		b.local[part] = len(b.demands)
		b.append(group.names, part.datacenter, part.factor, t)
	}
}

// addTopology makes one demand over all datacenters.
func (b *demandBuilder) addTopology(group replicationGroup) {
	var parts []*table
	for _, f := range group.replication.factors {
		if t := b.table(localPart(f)); t != nil {
			parts = append(parts, t)
		}
	}
	b.append(group.names, "", group.replication.TotalFactor(), b.ring.topologyTable(parts))
}

// table is nil for a datacenter without members.
func (b *demandBuilder) table(part localPart) *table {
	if t, ok := b.tables[part]; ok {
		return t
	}
	dc := b.ring.findDatacenter(part.datacenter)
	if dc == nil {
		return nil
	}
	t := b.ring.datacenterTable(dc, part.factor)
	b.tables[part] = t
	return t
}

func indexNodes(t *table, nodes int) nodeRanges {
	index := nodeRanges{ranges: make([]int32, len(t.replicas)), start: make([]int32, nodes+1)}
	for _, node := range t.replicas {
		index.start[node+1]++
	}
	for node := range nodes {
		index.start[node+1] += index.start[node]
	}
	at := slices.Clone(index.start)
	for i := range t.ranges() {
		for _, node := range t.row(i) {
			index.ranges[at[node]] = int32(i)
			at[node]++
		}
	}
	return index
}
