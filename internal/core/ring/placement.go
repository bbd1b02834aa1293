package ring

import "slices"

// Placement is who holds the replicas of every range of the ring, for one replication.
type Placement struct {
	*table
	ring *Ring
}

// Place works out who holds what. A keyspace that is not replicated has no ranges.
func (r *Ring) Place(replication Replication) Placement {
	whole := &table{circle: &circle{}}
	switch parts := r.tables(replication); {
	case replication.strategy == NetworkTopologyStrategy && len(parts) > 0:
		whole = r.topologyTable(parts)
	case len(parts) > 0:
		whole = parts[0]
	}
	return Placement{whole, r}
}

// Len is the number of ranges.
func (p Placement) Len() int { return p.ranges() }

// Range i.
func (p Placement) Range(i int) Range { return p.circle.rangeAt(i) }

// Replicas of range i are indices of nodes, in no particular order.
func (p Placement) Replicas(i int) []int32 { return p.row(i) }

// Node is the id of a node by its index.
func (p Placement) Node(i int32) string { return p.ring.nodes[i].ID }

// After is the first range that ends after a token; Len if the last one does not.
func (p Placement) After(token Token) int {
	i, found := slices.BinarySearch(p.circle.tokens, token)
	if found {
		i++
	}
	return i
}
