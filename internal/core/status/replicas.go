package status

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// ErrNoKeyspace means that the ring replicates no keyspace of that name.
var ErrNoKeyspace = errors.New("no such keyspace")

// mostNames of keyspaces are in an error.
const mostNames = 20

// Replicas says who holds a keyspace or one key of it, and whether it is served at the configured
// consistency.
type Replicas struct {
	Keyspace string `json:"keyspace"`
	// Replication as Cassandra writes it.
	Replication string `json:"replication"`
	// Token of the key in decimal digits; empty if the whole keyspace was asked for.
	Token string `json:"token,omitempty"`
	// Served has an entry for each datacenter whose replicas of the key count alone; one if all
	// count together, or if no key was asked for.
	Served []Served `json:"served"`
	// Nodes that hold replicas, by datacenter and rack.
	Nodes []Replica `json:"nodes"`
}

// Served says in words whether replicas meet the configured consistency.
type Served struct {
	Datacenter string `json:"datacenter,omitempty"`
	Served     bool   `json:"served"`
	Message    string `json:"message"`
}

// Replica is a node that holds replicas.
type Replica struct {
	// Node is the name of its record; its host id if it has none.
	Node       string `json:"node"`
	Datacenter string `json:"datacenter"`
	Rack       string `json:"rack"`
	Up         bool   `json:"up"`
	// Share of the keyspace's data that it holds, from 0 to 1; 0 for a key.
	Share float64 `json:"share,omitempty"`
}

// ReplicasOf a keyspace, or of a key by its token. An error that is not ErrNoKeyspace says that the
// ring is not known well enough now.
func ReplicasOf(s *facts.Snapshot, keyspace string, token *ring.Token) (*Replicas, error) {
	if !s.Ledger.HasRing() {
		return nil, errors.New("the members are unknown: there is no ledger of a formed ring")
	}
	g, err := sightOf(s)
	if err != nil {
		return nil, err
	}
	replication, known := g.view.Keyspaces[keyspace]
	if !known {
		names := slices.Sorted(maps.Keys(g.view.Keyspaces))
		return nil, fmt.Errorf("%w: %q; the ring replicates %s", ErrNoKeyspace, keyspace,
			strings.Join(names[:min(mostNames, len(names))], ", "))
	}
	members := map[string]string{}
	for name, hostID := range s.Ledger.Members {
		members[hostID] = name
	}
	// What joins holds nothing that is read; one that is up answers the writes that wait for it.
	g.view = g.view.Without(func(e facts.Endpoint) bool {
		return e.Live && (e.Status == facts.StatusBootstrap || e.Status == facts.StatusReplacing)
	})
	g.view.Keyspaces = map[string]string{keyspace: replication}
	level := s.Cluster.Spec.Disruption.Consistency
	protection, with, err := g.protections(level)
	if err != nil {
		return nil, err
	}
	out := &Replicas{Keyspace: keyspace, Replication: replication}
	shares := map[string]float64{}
	if token != nil {
		out.Token = token.String()
		for _, risk := range protection.At(*token, g.down, with) {
			out.Served = append(out.Served, Served{risk.Datacenter, risk.Served(), s.Named(risk.String())})
			for _, id := range risk.Replicas {
				shares[id] = 0
			}
		}
	} else {
		f, _ := protection.Unserved(g.down, with)
		said := Served{Served: f.Ranges == 0, Message: fmt.Sprintf("every range is served at %s", level)}
		if f.Ranges > 0 {
			said.Message = s.Named(fmt.Sprintf("%d ranges are not served at %s: %s", f.Ranges, level, f.Worst))
		}
		out.Served = []Served{said}
		if shares, err = g.shares(); err != nil {
			return nil, err
		}
	}
	for id, share := range shares {
		e, _ := g.view.ByHostID(id)
		r := Replica{Node: cmp.Or(members[id], id), Datacenter: e.Datacenter, Rack: e.Rack, Up: e.Live, Share: share}
		if n := s.Nodes[members[id]]; n != nil && n.Record != nil {
			r.Up = isUp(n, id, g.view)
		}
		out.Nodes = append(out.Nodes, r)
	}
	slices.SortFunc(out.Nodes, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(a.Datacenter, b.Datacenter), cmp.Compare(a.Rack, b.Rack), cmp.Compare(a.Node, b.Node))
	})
	return out, nil
}

// shares of the data of the one keyspace of a view, by host id.
func (g sight) shares() (map[string]float64, error) {
	members, err := ring.New(g.view.Without(g.joins).Nodes())
	if err != nil {
		return nil, fmt.Errorf("read the ring: %w", err)
	}
	keyspaces, err := g.view.Replicated()
	if err != nil {
		return nil, fmt.Errorf("read the replication: %w", err)
	}
	out := members.EffectiveShares(keyspaces[0].Replication)
	maps.DeleteFunc(out, func(_ string, share float64) bool { return share == 0 })
	return out, nil
}
