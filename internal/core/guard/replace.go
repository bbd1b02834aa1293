package guard

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// Replacing is a member that is lost, and is to be replaced.
type Replacing struct {
	// Nodes are the other members.
	Nodes
	// Node is its name, and HostID its host id.
	Node, HostID string
	// Accepted are the keyspaces of which a person accepts that writes are lost with it.
	Accepted []string
}

// replace are the guards before a lost member is replaced.
var replace = []Guard[Replacing]{
	{v1alpha1.BlockedReplacedMemberSeenUp, "no member sees it up", nobodySeesItUp},
	{v1alpha1.BlockedTopologyChangeInProgress, "no other topology change is in progress", others(noTopologyChange)},
	{v1alpha1.BlockedRingViewsDiffer, "all members see the same ring", others(everyViewIsTheSame)},
	{v1alpha1.BlockedUnknownRingMember, "every member of the ring has a CassandraNode", others(everyHostIDIsKnown)},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members have the same schema version", others(oneSchema)},
	{v1alpha1.BlockedReplicationNotUnderstood, "the replication of every keyspace is understood",
		others(everyReplicationIsKnown)},
	{v1alpha1.BlockedHostCordoned, "no member is on a cordoned host", others(noHostIsCordoned)},
	{v1alpha1.BlockedSecondRackDown, "the other member is up, or the loss is accepted for the keyspace",
		func(r Replacing) []Finding { return r.losses(true) }},
	{v1alpha1.BlockedLossNotAccepted, "other replicas are up, or the loss is accepted for the keyspace",
		func(r Replacing) []Finding { return r.losses(false) }},
}

// others asks a guard on members about those that are not lost.
func others(check func(Nodes) []Finding) func(Replacing) []Finding {
	return func(r Replacing) []Finding { return check(r.Nodes) }
}

func nobodySeesItUp(r Replacing) []Finding {
	names, rings := r.views()
	var out []Finding
	for i, view := range rings {
		if e, known := view.ByHostID(r.HostID); known && e.Live {
			out = append(out, Finding{Nodes: []string{r.Node, names[i]},
				Message: fmt.Sprintf("node %s sees node %s up, whose disk or host is said to be lost", names[i],
					r.Node)})
		}
	}
	return out
}

// Down are the members, by name, that are not up by their own word, or that another one sees down.
func (of Nodes) Down() []string {
	up, rings := of.views()
	first := facts.SameViews(rings)
	var out []string
	for _, name := range inOrder(of.Names) {
		down := !slices.Contains(up, name)
		for i, r := range rings {
			if first[i] != i || down {
				continue
			}
			e, known := r.ByHostID(of.Ledger.Members[name])
			down = known && !e.Live
		}
		if down {
			out = append(out, name)
		}
	}
	return out
}

// losses are the keyspaces of which the replicas that are left and up may lack a write that a
// quorum has acknowledged: those where a member of another rack is down, or the others. A
// replacement would make of them a quorum that has never seen it.
func (r Replacing) losses(secondRack bool) []Finding {
	_, rings := r.views()
	if len(rings) == 0 {
		if secondRack {
			return nil
		}
		return []Finding{{Nodes: []string{r.Node}, Message: "no other member is up"}}
	}
	view := rings[0]
	lost, known := view.ByHostID(r.HostID)
	if !known {
		return nil // it is removed from the ring already
	}
	down := make(map[string]string) // by host id
	var ids []string
	for _, name := range r.Down() {
		id := r.Ledger.Members[name]
		down[id] = name
		ids = append(ids, id)
	}
	p, err := view.Protection(v1alpha1.ConsistencyLocalQuorum)
	if err != nil {
		return []Finding{{Nodes: []string{r.Node}, Message: err.Error()}}
	}
	shortages, err := p.Shortages(r.HostID, ids)
	if err != nil {
		return []Finding{{Nodes: []string{r.Node}, Message: err.Error()}}
	}
	var out []Finding
	for _, s := range shortages {
		names := slices.DeleteFunc(slices.Clone(s.Keyspaces),
			func(k string) bool { return slices.Contains(r.Accepted, k) })
		var elsewhere, beside []string
		for _, id := range s.Down {
			beside = append(beside, down[id])
			if e, _ := view.ByHostID(id); e.Rack != lost.Rack || e.Datacenter != lost.Datacenter {
				elsewhere = append(elsewhere, down[id])
			}
		}
		if len(names) == 0 || (len(elsewhere) > 0) != secondRack {
			continue
		}
		what := fmt.Sprintf("keyspace %s: of a range that node %s has a replica of, %d others are up and %d would be "+
			"needed to have every write", words.List(names, 3), r.Node, len(s.Up), s.Needed)
		if len(beside) > 0 {
			what += fmt.Sprintf(" (%s is down)", words.List(beside, 3))
		}
		out = append(out, Finding{Nodes: append([]string{r.Node}, beside...), Message: what + fmt.Sprintf(". To "+
			"replace node %s all the same, without the writes that no other disk has, add an exception of type "+
			"AcceptLoss for the node and each keyspace to spec.exceptions", r.Node)})
	}
	return out
}
