package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Ledger is what the operator must not forget about a cluster and what status may lose: the open step, which datacenters are formed, who is a member.
// It is written by compare-and-swap on the resourceVersion it was read with, so two operators never have two steps open.
type Ledger struct {
	// UID and ResourceVersion of the ConfigMap it was read from; empty for one that does not exist yet.
	UID             types.UID `json:"-"`
	ResourceVersion string    `json:"-"`

	ClusterUID types.UID `json:"clusterUID"`
	// Steps is the number of steps that were ever opened. It makes the ids of steps unique.
	Steps int64 `json:"steps"`
	// Formed are the names of the datacenters whose ring exists: New is never issued for them again.
	Formed []string `json:"formed,omitempty"`
	// TrafficAllowed says that client traffic of any kind was allowed to a node. From then on a datacenter only forms without data of the user.
	TrafficAllowed bool `json:"trafficAllowed,omitempty"`
	// Members are the host ids by node name.
	Members map[string]string `json:"members,omitempty"`
	// Replication is the plannedReplicationFactor by datacenter that tokens and system keyspaces were made for; unknown in a ledger that was rebuilt.
	Replication map[string]int32 `json:"replication,omitempty"`
	// Adopted is the uid of the cluster whose disks were taken over.
	Adopted types.UID `json:"adopted,omitempty"`
	// Replaced are host ids that must never start again.
	Replaced []string `json:"replaced,omitempty"`
	// LeftBehind are nodes that had a part in a formation and were left out of it. The spec describes them, and the ring waits for none of them.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Cleanup are members that hold data which they no longer own, since others have joined.
	Cleanup []string `json:"cleanup,omitempty"`
	// SystemKeyspaces says that nodes have joined since the system keyspaces were set.
	SystemKeyspaces bool `json:"systemKeyspaces,omitempty"`
	// Step that is open; nil if none is.
	Step *Step `json:"step,omitempty"`
}

// Kind names the kinds of steps that are written down before they begin.
type Kind string

const (
	// FormRing forms the ring of the first datacenters of a cluster.
	FormRing Kind = "FormRing"
	// AdoptRing takes over the disks of an earlier cluster.
	AdoptRing Kind = "AdoptRing"
	// JoinNode has one node join a ring that serves clients.
	JoinNode Kind = "JoinNode"
	// RaiseSystemKeyspaces gives the system keyspaces as many replicas as there are nodes for, and fills them.
	RaiseSystemKeyspaces Kind = "RaiseSystemKeyspaces"
	// AddDatacenter adds a datacenter to a ring that has data.
	AddDatacenter Kind = "AddDatacenter"
	// ForgetJoin has the members forget a join that is over and that they tell each other of again and again.
	ForgetJoin Kind = "ForgetJoin"
	// Cleanup has the nodes of a rack drop what they no longer own.
	Cleanup Kind = "Cleanup"
)

// MovesRanges says that a step of this kind changes who holds what: no pod is evicted meanwhile.
func (k Kind) MovesRanges() bool {
	return k == FormRing || k == AdoptRing || k == JoinNode || k == AddDatacenter
}

// Stage of an open step. Stages only go forward, each by a write of the ledger.
type Stage string

// The stages of FormRing, in this order. AdoptRing has only Formed and Open, JoinNode Tickets and Open, RaiseSystemKeyspaces Keyspaces and Operations, Cleanup
// and ForgetJoin Operations, AddDatacenter all of them.
const (
	// StageTickets: tickets are issued, and the nodes find each other.
	StageTickets Stage = "Tickets"
	// StageFormed: the ring stands. Records learn their host ids and lose their tickets; no client was served yet.
	StageFormed Stage = "Formed"
	// StageKeyspaces: one node is open for administration and sets the system keyspaces.
	StageKeyspaces Stage = "Keyspaces"
	// StageOpen: clients are let in everywhere.
	StageOpen Stage = "Open"
	// StageExtend: keyspaces of the user get replicas in a new datacenter.
	StageExtend Stage = "Extend"
	// StageRebuild: the nodes of a new datacenter copy what they are to hold.
	StageRebuild Stage = "Rebuild"
	// StageOperations: the nodes carry out an operation each.
	StageOperations Stage = "Operations"
)

// Step is a step that was begun. It is continued, never computed anew.
type Step struct {
	// ID is unique in the life of the cluster: the ids of its intents are <id>/<node>.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Stage it is in.
	Stage Stage `json:"stage"`
	// Generation of the cluster's spec that it was decided for.
	Generation int64     `json:"generation"`
	OpenedAt   time.Time `json:"openedAt"`
	// StageSince is when the present stage began.
	StageSince time.Time `json:"stageSince"`
	// Datacenters it is about.
	Datacenters []string `json:"datacenters,omitempty"`
	// Tickets by node.
	Tickets map[string]Ticket `json:"tickets,omitempty"`
	// Withdrawn are the nodes of the wave that were taken out again.
	Withdrawn []string `json:"withdrawn,omitempty"`
	// Seeds are the nodes whose addresses are given to all as seeds while the ring forms.
	Seeds []string `json:"seeds,omitempty"`
	// Extension is what the datacenter gets that is added.
	Extension *Extension `json:"extension,omitempty"`
	// Tries counts the tries of a node's operation that failed, by node.
	Tries map[string]int `json:"tries,omitempty"`
	// Attempt counts the tries of the present stage's operation, from 0. Each try has an intent of its own.
	Attempt int `json:"attempt,omitempty"`
}

// Extension is what a datacenter gets that is added to a ring, as the spec had it when the step was opened: an edit on the way changes nothing of it.
type Extension struct {
	// Datacenter that is added, and Source that it is rebuilt from, by their names inside Cassandra.
	Datacenter string `json:"datacenter"`
	Source     string `json:"source"`
	// Keyspaces that are extended, with the replicas that they get, and Replicas of the system
	// keyspaces; of both at most one on each node.
	Keyspaces map[string]int32 `json:"keyspaces,omitempty"`
	Replicas  int32            `json:"replicas"`
}

// Ticket is what a step has for one node of its wave, and what must not be computed twice.
type Ticket struct {
	// Tokens that the node takes.
	Tokens []string `json:"tokens,omitempty"`
	// HostID that was found on its disk, of a step that adopts.
	HostID string `json:"hostID,omitempty"`
}

// Wave are the nodes the step works on, sorted: those with a ticket that were not withdrawn.
func (s *Step) Wave() []string {
	if s == nil {
		return nil
	}
	var names []string
	for name := range s.Tickets {
		if !slices.Contains(s.Withdrawn, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// IntentID is the id of the step's intent for one node. A step has at most one intent of a purpose for a node.
func (s *Step) IntentID(purpose, node string) string {
	return s.ID + "/" + purpose + "/" + node
}

// IsFormed says that the datacenter's ring exists.
func (l *Ledger) IsFormed(datacenter string) bool {
	return l != nil && slices.Contains(l.Formed, datacenter)
}

// HasRing says that any datacenter's ring exists.
func (l *Ledger) HasRing() bool { return l != nil && len(l.Formed) > 0 }

// Adds says that a datacenter is being added to the ring: no client is let into it yet.
func (l *Ledger) Adds(datacenter string) bool {
	return l != nil && l.Step != nil && l.Step.Kind == AddDatacenter && slices.Contains(l.Step.Datacenters, datacenter)
}

// Copy is a deep copy.
func (l *Ledger) Copy() *Ledger {
	if l == nil {
		return nil
	}
	out := *l
	out.Formed, out.Replaced, out.LeftBehind, out.Cleanup = slices.Clone(l.Formed), slices.Clone(l.Replaced), slices.Clone(l.LeftBehind), slices.Clone(l.Cleanup)
	out.Members, out.Replication = maps.Clone(l.Members), maps.Clone(l.Replication)
	out.Step = l.Step.copy()
	return &out
}

func (s *Step) copy() *Step {
	if s == nil {
		return nil
	}
	out := *s
	out.Datacenters, out.Withdrawn, out.Seeds = slices.Clone(s.Datacenters), slices.Clone(s.Withdrawn), slices.Clone(s.Seeds)
	out.Tickets, out.Tries = maps.Clone(s.Tickets), maps.Clone(s.Tries)
	for name, t := range out.Tickets {
		t.Tokens = slices.Clone(t.Tokens)
		out.Tickets[name] = t
	}
	if s.Extension != nil {
		extension := *s.Extension
		extension.Keyspaces = maps.Clone(s.Extension.Keyspaces)
		out.Extension = &extension
	}
	return &out
}

// Key is the key of the ledger's text in its ConfigMap.
const Key = "ledger.json"

// Encode writes a ledger as the data of its ConfigMap.
func Encode(l *Ledger) (map[string]string, error) {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode ledger: %w", err)
	}
	return map[string]string{Key: string(text)}, nil
}

// Decode reads the data of a ConfigMap. A ledger of another cluster, or one without text, is an error: it is never taken for an empty one.
func Decode(data map[string]string, cluster types.UID) (*Ledger, error) {
	text, ok := data[Key]
	if !ok {
		return nil, fmt.Errorf("read ledger: no key %q", Key)
	}
	l := &Ledger{}
	if err := json.Unmarshal([]byte(text), l); err != nil {
		return nil, fmt.Errorf("decode ledger: %w", err)
	}
	if l.ClusterUID != cluster {
		return nil, fmt.Errorf("read ledger: it belongs to the cluster with uid %q, not %q", l.ClusterUID, cluster)
	}
	return l, nil
}
