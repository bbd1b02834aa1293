package assess

import (
	"maps"
	"slices"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
)

// seenMembers are the host ids and addresses of every member in the view of any node.
type seenMembers struct{ hostIDs, addresses map[string]bool }

func (v *View) membersInViews() *seenMembers {
	if v.seen != nil {
		return v.seen
	}
	v.seen = &seenMembers{map[string]bool{}, map[string]bool{}}
	var rings []*facts.Ring
	for _, n := range v.Records() {
		if agent := n.CurrentAgent(); agent != nil && agent.Ring != nil {
			rings = append(rings, agent.Ring)
		}
	}
	for i, first := range facts.SameViews(rings) {
		if first != i {
			continue
		}
		for _, e := range rings[i].Endpoints {
			if e.Member() {
				v.seen.hostIDs[e.HostID], v.seen.addresses[e.Address] = true, true
			}
		}
	}
	return v.seen
}

// seeAlive are, by host id, the first two nodes in whose rings it is alive: one may be its own.
func (v *View) seeAlive() map[string][]string {
	if v.alive != nil {
		return v.alive
	}
	v.alive = map[string][]string{}
	var names []string
	var rings []*facts.Ring
	for _, name := range v.Names() {
		if agent := v.Nodes[name].Agent; agent != nil && agent.Ring != nil {
			names, rings = append(names, name), append(rings, agent.Ring)
		}
	}
	alike := map[int][]string{} // by the first ring that is the same
	same := facts.SameViews(rings)
	for i, first := range same {
		if len(alike[first]) < 2 {
			alike[first] = append(alike[first], names[i])
		}
	}
	for i, first := range same {
		if first != i {
			continue
		}
		for _, e := range rings[i].Endpoints {
			switch had := v.alive[e.HostID]; {
			case !e.Live || e.HostID == "":
			case had == nil:
				v.alive[e.HostID] = alike[i]
			default:
				both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(had, alike[i]))))
				v.alive[e.HostID] = both[:min(len(both), 2)]
			}
		}
	}
	return v.alive
}

// AnyRing is the ring as a member sees it; nil if none answers. Guards see to it that all see the
// same.
func (v *View) AnyRing() *facts.Ring {
	for _, name := range v.Members() {
		if r := v.normalRing(name); r != nil {
			return r
		}
	}
	return nil
}

func (v *View) normalRing(name string) *facts.Ring {
	agent := v.Nodes[name].CurrentAgent()
	if agent == nil || agent.Ring == nil || agent.Ring.Mode != facts.ModeNormal {
		return nil
	}
	return agent.Ring
}

// UpAmong are those of the nodes that answer and are NORMAL.
func (v *View) UpAmong(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return v.normalRing(name) == nil })
}

// KeyspacesOf a ring. One whose replication is not understood is left out: no change of the
// topology begins beside it (guard ReplicationNotUnderstood), and no cleanup touches it.
func KeyspacesOf(r *facts.Ring) []ring.Keyspace {
	out, _ := r.Replicated()
	return out
}

// SystemReplication is how many replicas the system keyspaces are to have, by the datacenter's name
// in Cassandra: as many as keyspaces of the user will have, with fewer members their number. Those
// that are to leave do not count.
func (v *View) SystemReplication() map[string]int32 { return v.systemReplication(v.Leaves) }

// FormedReplication is that of a ring that has just formed: those that are to leave count, since a
// leave lowers it, and nothing would raise it if they are to stay after all.
func (v *View) FormedReplication() map[string]int32 {
	return v.systemReplication(func(string) bool { return false })
}

func (v *View) systemReplication(but func(name string) bool) map[string]int32 {
	members := v.membersByDatacenter(but)
	out := map[string]int32{}
	for i := range v.Cluster.Spec.Datacenters {
		dc := &v.Cluster.Spec.Datacenters[i]
		if n := members[dc.Name]; n > 0 && v.Ledger.IsFormed(dc.Name) {
			out[render.DatacenterName(dc)] = min(dc.PlannedReplicationFactor, n)
		}
	}
	return out
}

// OneReplica is one in each of those datacenters: what is to have that at least is not altered.
func (v *View) OneReplica() map[string]int32 {
	out := v.SystemReplication()
	for dc := range out {
		out[dc] = 1
	}
	return out
}

func (v *View) membersByDatacenter(but func(name string) bool) map[string]int32 {
	out := map[string]int32{}
	for name := range v.Ledger.Members {
		if !but(name) {
			out[v.DatacenterOf(name)]++
		}
	}
	return out
}

// PlannedReplication is the planned replication factor by datacenter.
func (v *View) PlannedReplication() map[string]int32 {
	out := map[string]int32{}
	for i := range v.Cluster.Spec.Datacenters {
		out[v.Cluster.Spec.Datacenters[i].Name] = v.Cluster.Spec.Datacenters[i].PlannedReplicationFactor
	}
	return out
}

// UsedReplication is how much of the planned replication factor of each datacenter of the ring is
// made use of: what it was formed with, and what its members allow since. A factor that was only
// written down can be taken back.
func (v *View) UsedReplication() map[string]int32 {
	members := v.membersByDatacenter(v.Leaves)
	out := v.PlannedReplication()
	maps.DeleteFunc(out, func(dc string, _ int32) bool { return !v.Ledger.IsFormed(dc) })
	for dc, factor := range out {
		out[dc] = max(v.Ledger.Replication[dc], min(factor, members[dc]))
	}
	return out
}

// Seeds chooses two or three of the given nodes in each datacenter, on different racks, and keeps
// those that are seeds already.
func (v *View) Seeds(names, present []string) []string {
	candidates := make([]ring.SeedCandidate, 0, len(names))
	for _, name := range names {
		n := v.Nodes[name]
		if n == nil || n.Record == nil {
			continue
		}
		candidates = append(candidates, ring.SeedCandidate{
			ID: name, Datacenter: n.Record.Spec.Datacenter, Rack: n.Record.Spec.Rack, Suspect: Address(n) == "",
		})
	}
	chosen, err := ring.Seeds(candidates, present)
	if err != nil {
		return nil // there is nobody to choose from: the last list stays
	}
	return chosen
}

// PublishedSeeds are the addresses that the nodes use as seeds now.
func (v *View) PublishedSeeds() []string {
	return render.SeedsIn(v.Shared.ConfigMaps[render.Seeds(v.Owner(), nil, nil).Name])
}

// PresentSeeds are the nodes whose addresses are published now.
func (v *View) PresentSeeds() []string {
	published := v.PublishedSeeds()
	var names []string
	for _, n := range v.Records() {
		if a := Address(n); a != "" && slices.Contains(published, a) {
			names = append(names, n.Name)
		}
	}
	return names
}
