package ring

import "slices"

// NaturalEndpoints are the ids of the nodes that hold the replicas of a token, in Cassandra's
// order: the first is the primary replica. The strategies are followed exactly
// (NetworkTopologyStrategy#calculateNaturalReplicas, SimpleStrategy#calculateNaturalReplicas).
// LocalStrategy replicates nothing, so it has none; EverywhereStrategy has all nodes, by id.
//
// It walks the ring for one token. For all ranges at once use a Protection or EffectiveShares.
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

// everyone is every node.
func (r *Ring) everyone() []int32 {
	all := make([]int32, len(r.nodes))
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// ids turns nodes into their ids.
func (r *Ring) ids(nodes []int32) []string {
	ids := make([]string, len(nodes))
	for i, node := range nodes {
		ids[i] = r.nodes[node].ID
	}
	return ids
}
