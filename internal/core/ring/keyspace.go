package ring

import (
	"cmp"
	"slices"
)

// Keyspace is a keyspace as far as the ring is concerned.
type Keyspace struct {
	Name        string
	Replication Replication
}

// replicationGroup is all keyspaces that are replicated alike.
type replicationGroup struct {
	names       []string // sorted
	replication Replication
}

// groupByReplication puts keyspaces that are replicated alike together, since whatever follows from
// the ring is the same for them. Groups are in the order of their first names.
func groupByReplication(keyspaces []Keyspace) []replicationGroup {
	sorted := slices.Clone(keyspaces)
	slices.SortStableFunc(sorted, func(a, b Keyspace) int { return cmp.Compare(a.Name, b.Name) })
	var groups []replicationGroup
	at := map[string]int{}
	for _, keyspace := range sorted {
		key := keyspace.Replication.String()
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, replicationGroup{replication: keyspace.Replication})
		}
		groups[i].names = append(groups[i].names, keyspace.Name)
	}
	return groups
}
