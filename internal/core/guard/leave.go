package guard

import (
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// beforeLeave are the guards on the ring that a node is to leave: the given nodes are its members.
var beforeLeave = []Guard[Nodes]{
	{v1alpha1.BlockedMemberDown, "every member is up",
		everyMemberIsUp("every member takes a part over of what a node holds that leaves")},
	{v1alpha1.BlockedTopologyChangeInProgress, "no other topology change is in progress", noTopologyChange},
	{v1alpha1.BlockedMemberSeenDown, "every member sees every other as up", everyMemberSeesEveryOther},
	{v1alpha1.BlockedRingViewsDiffer, "all members see the same ring", everyViewIsTheSame},
	{v1alpha1.BlockedUnknownRingMember, "every member of the ring has a CassandraNode", everyHostIDIsKnown},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members have the same schema version", oneSchema},
	{v1alpha1.BlockedReplicationNotUnderstood, "the replication of every keyspace is understood",
		everyReplicationIsKnown},
}

// Leaving are members that are to leave, one after the other.
type Leaving struct {
	*facts.Snapshot
	// Leavers by name, the first that leaves first, and Stay the other members.
	Leavers, Stay []string
	// View is the ring as a member sees it, and Ring the same with its ranges.
	View *facts.Ring
	Ring *ring.Ring
	// Keyspaces that count.
	Keyspaces []ring.Keyspace
	// RepairByHand are nodes that are not repaired before a person asks for it.
	RepairByHand []string
}

// leaving are the guards on what the ring will be, after each of the nodes that leave.
var leaving = []Guard[Leaving]{
	{v1alpha1.BlockedDatacenterInUse, "no keyspace has replicas in a datacenter that goes", datacenterIsUnused},
	{v1alpha1.BlockedTooManyReplicas, "no keyspace has more replicas than nodes will be left", replicasFit},
	{v1alpha1.BlockedTooFewRacks, "no keyspace has more replicas than racks will be left", racksFit},
	{v1alpha1.BlockedTooLittleDisk, "the data fits on the nodes that stay", dataFits},
	{v1alpha1.BlockedCleanupDue, "the nodes that stay are cleaned up", noCleanupIsDue},
	{v1alpha1.BlockedRepairDue, "the nodes that stay are repaired", noRepairIsDue},
	{v1alpha1.BlockedHostCordoned, "no member that stays is on a cordoned host",
		func(of Leaving) []Finding { return noHostIsCordoned(Nodes{of.Snapshot, of.Stay}) }},
}

// going are the datacenters, by their names in Cassandra, of which no node stays.
func (l *Leaving) going() []string {
	stay := map[string]bool{}
	for _, name := range l.Stay {
		e, _ := l.View.ByHostID(l.Ledger.Members[name])
		stay[e.Datacenter] = true
	}
	var out []string
	for _, name := range l.Leavers {
		e, _ := l.View.ByHostID(l.Ledger.Members[name])
		if !stay[e.Datacenter] && !slices.Contains(out, e.Datacenter) {
			out = append(out, e.Datacenter)
		}
	}
	return out
}

// datacenterIsUnused: what is written there at LOCAL_QUORUM may be nowhere else before it was
// repaired. The system keyspaces are repaired, and lose their replicas, before the first node
// leaves.
func datacenterIsUnused(of Leaving) []Finding {
	var out []Finding
	for _, dc := range of.going() {
		if used := using(dc, of.Keyspaces); len(used) > 0 {
			out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("the spec lacks "+
				"datacenter %s, and keyspace %s has replicas there, some of which may be the only ones: put it back, "+
				"name the keyspace in its withdraw.keyspaces, and take the datacenter out once it has none", dc,
				words.List(used, 3))})
		}
	}
	return out
}

// using are the keyspaces of users that have replicas in a datacenter of their own.
func using(dc string, keyspaces []ring.Keyspace) []string {
	var out []string
	for _, k := range keyspaces {
		if k.Replication.Strategy() == ring.NetworkTopologyStrategy && k.Replication.Factor(dc) > 0 &&
			!slices.Contains(ring.SystemKeyspaces(), k.Name) {
			out = append(out, k.Name)
		}
	}
	return out
}

// replicasFit finds the first node with which a keyspace loses its last spare node: Cassandra
// refuses to let it leave (StorageService#decommission, 4.1 and 5.0). The system keyspaces get
// fewer replicas before.
func replicasFit(of Leaving) []Finding {
	in := map[string]int{} // nodes of each datacenter
	for _, n := range of.Ring.Nodes() {
		in[n.Datacenter]++
	}
	total, going := of.Ring.Len(), of.going()
	for _, name := range of.Leavers {
		e, _ := of.View.ByHostID(of.Ledger.Members[name])
		total--
		in[e.Datacenter]--
		var out []Finding
		for _, k := range of.Keyspaces {
			factor, left, where := k.Replication.TotalFactor(), total, "the ring"
			if k.Replication.Strategy() == ring.NetworkTopologyStrategy {
				if slices.Contains(ring.SystemKeyspaces(), k.Name) || slices.Contains(going, e.Datacenter) {
					continue
				}
				factor, left, where = k.Replication.Factor(e.Datacenter), in[e.Datacenter], "datacenter "+e.Datacenter
			}
			if factor > left {
				out = append(out, Finding{Nodes: []string{name}, Stalled: v1alpha1.ReasonInvalidSpec,
					Message: fmt.Sprintf("keyspace %s has %d replicas in %s, which would have %s left once node %s "+
						"has left: alter the keyspace, or describe more nodes", k.Name, factor, where,
						words.Plural(left, "node"), name)})
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// racksFit finds the first node with which the last one of a rack leaves that a keyspace needs for
// its replicas to be in as many racks as they can be now: those of a row that are in one rack are
// down with it. The system keyspaces get fewer replicas before, where fewer nodes are left.
func racksFit(of Leaving) []Finding {
	in, stay := map[[2]string]int{}, map[string]int{} // nodes of each rack, and of each datacenter in the end
	racks := map[string]int{}
	for _, n := range of.Ring.Nodes() {
		if in[[2]string{n.Datacenter, n.Rack}]++; in[[2]string{n.Datacenter, n.Rack}] == 1 {
			racks[n.Datacenter]++
		}
		stay[n.Datacenter]++
	}
	for _, name := range of.Leavers {
		e, _ := of.View.ByHostID(of.Ledger.Members[name])
		stay[e.Datacenter]--
	}
	now, going := maps.Clone(racks), of.going()
	for _, name := range of.Leavers {
		e, _ := of.View.ByHostID(of.Ledger.Members[name])
		dc, rack := e.Datacenter, [2]string{e.Datacenter, e.Rack}
		if in[rack]--; in[rack] > 0 || slices.Contains(going, dc) || of.allowsFewerRacks(dc) {
			continue
		}
		racks[dc]--
		var out []Finding
		for _, k := range of.Keyspaces {
			factor := k.Replication.Factor(dc)
			if racks[dc] >= min(factor, stay[dc], now[dc]) {
				continue
			}
			out = append(out, Finding{Nodes: []string{name}, Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
				"keyspace %s has %d replicas in datacenter %s, which would have %s left once node %s has left, the "+
					"last of rack %s, so that nodes of one rack would hold two replicas of a row: put the rack back; "+
					"add a datacenter with the racks that you want, and remove this one; or set allowFewerRacks of "+
					"the datacenter, if both may be down together", k.Name, factor, dc, words.Plural(racks[dc], "rack"),
				name, e.Rack)})
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// allowsFewerRacks says that the spec does of a datacenter, by its name in Cassandra.
func (l *Leaving) allowsFewerRacks(name string) bool {
	return slices.ContainsFunc(l.Cluster.Spec.Datacenters, func(dc v1alpha1.Datacenter) bool {
		return render.DatacenterName(&dc) == name && dc.AllowFewerRacks
	})
}

// dataFits finds the first ring on the way in which a node that takes something over would fill too
// much of its data volume: what is on it now, snapshots among it, and its data times what its share
// of a keyspace grows by, the largest of all keyspaces, since nobody knows how data is spread over
// them.
func dataFits(of Leaving) []Finding {
	keyspaces := slices.DeleteFunc(slices.Clone(of.Keyspaces),
		func(k ring.Keyspace) bool { return slices.Contains(ring.SystemKeyspaces(), k.Name) })
	if len(keyspaces) == 0 {
		keyspaces = of.Keyspaces
	}
	grown := of.Ring
	for _, name := range of.Leavers {
		grown = grown.Without(of.Ledger.Members[name])
		var out []Finding
		shares := sharesGrow(of.Ring, grown, keyspaces)
		for _, other := range inOrder(slices.Concat(of.Stay, of.Leavers)) {
			share, grows := shares[of.Ledger.Members[other]]
			if !grows {
				continue
			}
			why, stalled := tooFull(of.Nodes[other], share.by)
			if why != "" {
				out = append(out, Finding{Nodes: []string{other}, Stalled: stalled, Message: fmt.Sprintf("once node "+
					"%s has left, node %s %s, as it holds %.2f times as much of keyspace %s: remove its snapshots, "+
					"give the nodes larger volumes, describe more nodes, or add a datacenter as you want it and "+
					"remove this one", name, other, why, share.by,
					words.List(share.of, 3))})
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// growth is by how much a node holds more of some keyspaces.
type growth struct {
	by float64
	of []string
}

// sharesGrow are the nodes by host id that hold more of a keyspace in a ring than in the one
// before.
func sharesGrow(before, after *ring.Ring, keyspaces []ring.Keyspace) map[string]growth {
	const same = 1e-9
	out := map[string]growth{}
	alike := map[string][]string{}
	for _, k := range keyspaces {
		text := k.Replication.String()
		if alike[text] = append(alike[text], k.Name); len(alike[text]) > 1 {
			continue
		}
		then := before.EffectiveShares(k.Replication)
		for id, share := range after.EffectiveShares(k.Replication) {
			if share <= then[id]+same {
				continue
			}
			by := share / max(then[id], share/float64(before.Len()))
			if by > out[id].by {
				out[id] = growth{by, []string{text}}
			}
		}
	}
	for id, g := range out {
		g.of = alike[g.of[0]]
		out[id] = g
	}
	return out
}

// tooFull says what a data volume would be like if the node held so many times its data, and of
// that which only the user can resolve why; empty if there is room. That a node does not answer is
// said by another guard.
func tooFull(n *facts.Node, times float64) (why, stalled string) {
	agent := n.CurrentAgent()
	switch {
	case agent == nil:
		return "", ""
	case agent.Space == nil || agent.Space.Capacity <= 0:
		return "may have too little room, and does not say how full its data volume is", ""
	}
	s := agent.Space
	more, used, capacity := float64(s.Data)*(times-1), float64(s.Capacity-s.Free), float64(s.Capacity)
	inPod := n.Record != nil && n.Record.Spec.Pod.Storage.Ephemeral != nil
	if own := limit(n); own > 0 && (inPod || capacity > sharedFrom*own) { // others fill the file system, too
		used, capacity = float64(s.Data), own
	}
	if used+more <= mostOfDisk*capacity && more <= float64(s.Free) {
		return "", ""
	}
	return fmt.Sprintf("would fill %s of its data volume of %s, which is more than %d %%, or than is free",
		bytes(used+more), bytes(capacity), int(100*mostOfDisk)), v1alpha1.ReasonInvalidSpec
}

// sharedFrom is how many times larger than its claim the file system of a volume is that other
// volumes are on, too: one that is a directory of its host.
const sharedFrom = 2

// limit is the size of a node's data volume as its claim, or its pod, has it; 0 if that is not
// known.
func limit(n *facts.Node) float64 {
	if n.Record != nil && n.Record.Spec.Pod.Storage.Ephemeral != nil {
		return float64(n.Record.Spec.Pod.Storage.Ephemeral.SizeLimit.Value())
	}
	c := n.Claims[v1alpha1.VolumeData]
	if c == nil || c.Claim == nil {
		return 0
	}
	return float64(c.Claim.Status.Capacity.Storage().Value())
}

// noCleanupIsDue: what a node still holds of ranges that it does not own any more may be older than
// deletions are kept, and would count again if it got them back.
func noCleanupIsDue(of Leaving) []Finding {
	var out []Finding
	for _, name := range of.Ledger.Cleanup {
		if slices.Contains(of.Stay, name) {
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("node %s holds rows that it does "+
				"not own any more, and would own some of them again: it is cleaned up first", name)})
		}
	}
	return out
}

// noRepairIsDue: a node that must be repaired takes the place of one that is in order.
func noRepairIsDue(of Leaving) []Finding {
	var out []Finding
	for _, d := range of.Ledger.RepairDue {
		if slices.Contains(of.Stay, d.Node) {
			out = append(out, Finding{Nodes: []string{d.Node}, Message: fmt.Sprintf("node %s must be repaired before "+
				"it takes anything over%s", d.Node, RepairBy([]string{d.Node}, of.RepairByHand))})
		}
	}
	return out
}

// RepairBy says how nodes get repaired of which some are not before a person asks for it.
func RepairBy(nodes, byHand []string) string {
	var asks []string
	for _, n := range nodes {
		if slices.Contains(byHand, n) {
			asks = append(asks, "kubectl helenus repair "+n+" --reason '...'")
		}
	}
	if len(asks) > 0 {
		return ": " + words.List(asks, 3)
	}
	return ". The operator repairs it by itself: wait for that, and bring up the nodes that are down"
}
