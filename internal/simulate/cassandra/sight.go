package cassandra

import (
	"maps"
	"slices"

	"helenus.io/helenus/internal/core/ring"
)

// Sight is what a node sees of its ring that matters to whoever is about to change it.
type Sight struct {
	// Name is the node's own, as others see it.
	Name string
	// Members are the host ids of those that own tokens.
	Members []string
	// Changing are the names of those that join, leave or take another's place, and Down those of
	// the members that it cannot reach.
	Changing, Down []string
	// Strange are the keyspaces of which nobody else knows where their replicas are.
	Strange []string
}

// Sight of the ring as the node has it now, past its answers.
func (p *Process) Sight() Sight {
	s := Sight{Name: p.net.name(p.address)}
	m := &p.metadata
	for _, a := range sortedKeys(m.hosts) {
		if !m.isMember(a) {
			continue
		}
		s.Members = append(s.Members, m.hosts[a])
		if a != p.address && !slices.ContainsFunc(p.gossip.entries,
			func(e *entry) bool { return e.address == a && e.listed == listedLive }) {
			s.Down = append(s.Down, p.net.name(a))
		}
	}
	for _, name := range p.schema.names() {
		if p.schema[name].words != "" {
			s.Strange = append(s.Strange, name)
		}
	}
	changing := p.joiningNodes()
	changing = append(changing, sortedKeys(m.leaving)...)
	changing = append(changing, sortedKeys(m.replacing)...)
	for _, a := range changing {
		s.Changing = append(s.Changing, p.net.name(a))
	}
	return s
}

// Replicas of each keyspace that has some by datacenter.
func (p *Process) Replicas() map[string]map[string]int {
	out := map[string]map[string]int{}
	for name, k := range p.schema {
		if k.replication.Strategy() != ring.NetworkTopologyStrategy {
			continue
		}
		out[name] = map[string]int{}
		for _, dc := range k.replication.Datacenters() {
			out[name][dc] = k.replication.Factor(dc)
		}
	}
	return out
}

// Stray is a row on the disk of the node that others are to hold, and not this one; empty if there
// is none.
func (p *Process) Stray() string {
	for _, name := range slices.Sorted(maps.Keys(p.disk.data)) {
		for _, key := range p.disk.keys(name) {
			if k, exists := p.schema[name]; exists && !slices.Contains(p.natural(k.replication, tokenOf(key)), p.address) {
				return name + "." + key
			}
		}
	}
	return ""
}

// Encrypts says whether the node encrypts towards others, and whether it takes what is not.
func (p *Process) Encrypts() (encrypts, optional bool) {
	return p.settings.encryption.encrypts, p.settings.encryption.optional
}
