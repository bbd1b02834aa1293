package guard

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// Withdrawing is a datacenter in which keyspaces are to lose their replicas.
type Withdrawing struct {
	// Datacenter by its name in the spec, and the Others that keep theirs by their names in
	// Cassandra.
	Datacenter string
	Others     []string
	// Keyspaces that lose replicas.
	Keyspaces []ring.Keyspace
}

// withdrawing is the guard on what keyspaces will have.
var withdrawing = []Guard[Withdrawing]{
	{v1alpha1.BlockedOnlyReplicas, "every keyspace has replicas in a datacenter that keeps them", othersHaveReplicas},
}

func othersHaveReplicas(of Withdrawing) []Finding {
	var alone []string
	for _, k := range of.Keyspaces {
		if !slices.ContainsFunc(of.Others, func(dc string) bool { return k.Replication.Factor(dc) > 0 }) {
			alone = append(alone, k.Name)
		}
	}
	if len(alone) == 0 {
		return nil
	}
	return []Finding{{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("keyspace %s has replicas in "+
		"datacenter %s, and in none that keeps its own: alter it to have some there, and rebuild those nodes, or "+
		"drop it",
		words.List(alone, 3), of.Datacenter)}}
}

// Withdrawn are the keyspaces of users that a datacenter gives up by its spec, and still has.
func Withdrawn(w *v1alpha1.Withdraw, dc string, keyspaces []ring.Keyspace) []ring.Keyspace {
	var out []ring.Keyspace
	used := using(dc, keyspaces)
	for _, k := range keyspaces {
		if slices.Contains(used, k.Name) && (w.All || slices.Contains(w.Keyspaces, k.Name)) {
			out = append(out, k)
		}
	}
	return out
}
