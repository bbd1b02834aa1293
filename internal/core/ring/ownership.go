package ring

// EffectiveShares is the fraction of a keyspace's data, from 0 to 1, of which
// each node holds a replica, by node id; nodes without any are in it with 0. In
// a datacenter to which NetworkTopologyStrategy gives f replicas the shares add
// up to f, or to the number of nodes if that is less. This is what nodetool
// status prints as "Owns (effective)" (StorageService#effectiveOwnership). Of
// LocalStrategy nobody holds a share: it replicates nothing.
func (r *Ring) EffectiveShares(replication Replication) map[string]float64 {
	held := make([]float64, len(r.nodes))
	for _, t := range r.tables(replication) {
		for i := range t.ranges() {
			size := t.circle.rangeAt(i).Size()
			for _, node := range t.row(i) {
				held[node] += size
			}
		}
	}
	shares := make(map[string]float64, len(r.nodes))
	for i, node := range r.nodes {
		shares[node.ID] = held[i]
	}
	return shares
}

// tables are the tables that together hold every replica once.
func (r *Ring) tables(replication Replication) []*table {
	switch replication.strategy {
	case NetworkTopologyStrategy:
		var tables []*table
		for i := range r.datacenters {
			if factor := replication.Factor(r.datacenters[i].name); factor > 0 {
				tables = append(tables, r.datacenterTable(&r.datacenters[i], factor))
			}
		}
		return tables
	case SimpleStrategy:
		return []*table{r.simpleTable(replication.factor)}
	case EverywhereStrategy:
		return []*table{r.everywhereTable()}
	case LocalStrategy:
	}
	return nil
}

// Place is a rack of a datacenter; racks of two datacenters may share a name.
type Place struct {
	Datacenter string
	Rack       string
}

// ByDatacenter adds shares up over datacenters. Shares of ids that are not members are left out.
func (r *Ring) ByDatacenter(shares map[string]float64) map[string]float64 {
	sums := map[string]float64{}
	for _, node := range r.nodes {
		sums[node.Datacenter] += shares[node.ID]
	}
	return sums
}

// Load says how much of the bytes that a datacenter stores one node stores, as far as that follows
// from the ring: every range is taken to hold data in proportion to its size.
type Load struct {
	// Share is the fraction, from 0 to 1, of the datacenter's stored bytes (all
	// replicas counted) that the node holds. Times the sum of the loads which the
	// nodes report, it is the bytes to expect on the node.
	Share float64
	// Average is that fraction if all nodes of the datacenter held the same.
	Average float64
	// Keyspaces are those for which the share is so large; the share is the
	// largest over all keyspaces, since nobody knows how data is spread over them.
	Keyspaces []string
}

// Loads is the load of every node, by id, for a set of keyspaces. Where no
// keyspace has replicas in a datacenter its nodes have a share of 0.
//
// For the effect of a join ask the ring With the joining node; of a decommission,
// the ring Without the leaving one. A rack that is new, or small, while there
// are not more racks than replicas shows here: NetworkTopologyStrategy gives each
// rack a replica of every range, so the only node of such a rack holds everything.
func (r *Ring) Loads(keyspaces []Keyspace) map[string]Load {
	loads := make(map[string]Load, len(r.nodes))
	for i, node := range r.nodes {
		loads[node.ID] = Load{Average: 1 / float64(len(r.datacenters[r.datacenter[i]].nodes))}
	}
	for _, group := range groupByReplication(keyspaces) {
		shares := r.EffectiveShares(group.replication)
		totals := r.ByDatacenter(shares)
		for id, load := range loads {
			node := r.nodes[r.index[id]]
			if total := totals[node.Datacenter]; total > 0 && shares[id]/total > load.Share {
				load.Share, load.Keyspaces = shares[id]/total, group.names
				loads[id] = load
			}
		}
	}
	return loads
}
