package facts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
)

// Agent is what the agent of one pod answers when it is asked: the state of its node and, while the
// JVM answers, the ring as that node sees it. An answer is about the present only; what must
// survive is in the record, the ledger and the journal.
type Agent struct {
	// Who answers. An answer counts only if it comes from the present pod of the node.
	ClusterUID types.UID `json:"clusterUID"`
	Node       string    `json:"node"`
	PodUID     types.UID `json:"podUID"`
	Version    string    `json:"version"`

	// ObservedAt is the agent's clock when it looked.
	ObservedAt time.Time `json:"observedAt"`
	// Clock is that of the agent's host; nil if the agent does not say what it shows.
	Clock *Clock `json:"clock,omitempty"`
	// RecordGeneration of the CassandraNode that the agent last acted on.
	RecordGeneration int64 `json:"recordGeneration"`

	Address string                 `json:"address"`
	Disk    v1alpha1.DiskState     `json:"disk"`
	Owner   *v1alpha1.DiskOwner    `json:"owner,omitempty"`
	HostID  string                 `json:"hostID,omitempty"`
	Phase   v1alpha1.NodePhase     `json:"phase"`
	Message string                 `json:"message,omitempty"`
	Process ProcessState           `json:"process"`
	Ready   bool                   `json:"ready"`
	Join    *v1alpha1.IntentStatus `json:"join,omitempty"`
	// Revision of the rules by which the files of the running JVM were rendered; 0 if none runs.
	Revision int32 `json:"revision,omitempty"`

	// TrafficOpened says that the native transport of this node is, or at any time was, open to
	// anybody (from the journal).
	TrafficOpened bool `json:"trafficOpened"`
	// Traffic is for whom it is open now.
	Traffic v1alpha1.ClientTraffic `json:"traffic"`
	// Addresses this node had, with the time it was last known to have it; the present one
	// included.
	Addresses []AddressUse `json:"addresses,omitempty"`
	// Replaced are the host ids that the agent knows to be replaced.
	Replaced []string `json:"replaced,omitempty"`

	// DiskRelease is the release of Cassandra with which the node was last NORMAL on its disk;
	// empty if it never was.
	DiskRelease string `json:"diskRelease,omitempty"`
	// Normal are the times in which the node was NORMAL, oldest first; empty if that is not known.
	Normal []Stretch `json:"normal,omitempty"`
	// GCGrace is the smallest gc_grace of a replicated table of users while the node was NORMAL; 0
	// if it is not known.
	GCGrace time.Duration `json:"gcGrace,omitempty"`

	// Tables of users and of roles that have more than one replica, by their names; nil if they are
	// not known.
	Tables []Table `json:"tables,omitempty"`

	// Space on the data volume; nil if it is not known.
	Space *Space `json:"space,omitempty"`

	// DiskFailing says in words how the data volume, or that of the commit log, fails; empty if it
	// does not, as far as is known.
	DiskFailing string `json:"diskFailing,omitempty"`

	// Ring is nil while no JVM answers.
	Ring *Ring `json:"ring,omitempty"`
	// Ended are the ids of the operations that had ended when the JVM was asked for Ring, which
	// shows what they have changed.
	Ended []string `json:"ended,omitempty"`
}

// Table is one that has more than one replica, and what the node holds of it.
type Table struct {
	ID       string `json:"id"`
	Keyspace string `json:"keyspace"`
	Name     string `json:"name"`
	// GCGrace is how long it keeps deletions, in nanoseconds.
	GCGrace time.Duration `json:"gcGrace"`
	// Compaction is the class of its strategy.
	Compaction string `json:"compaction,omitempty"`
	// Bytes are the size of its SSTables here, as the next power of two; 0 if it has none.
	Bytes int64 `json:"bytes,omitempty"`
}

// Space is what a data volume has room for, in bytes.
type Space struct {
	// Free is what Cassandra may still write, Capacity the size of the file system.
	Free     int64 `json:"free"`
	Capacity int64 `json:"capacity"`
	// Data is the size of the node's own data as its JVM gossips it, at most a minute old; 0 while
	// none answers.
	Data int64 `json:"data,omitempty"`
}

// Full says that more than 90 % of the file system are in use; false if nothing is known of it.
func (s *Space) Full() bool { return s != nil && 10*s.Free < s.Capacity }

// ProcessState is what init says of the JVM.
type ProcessState string

// The states of the JVM's process.
const (
	ProcessAbsent  ProcessState = "Absent"
	ProcessRunning ProcessState = "Running"
	// ProcessUnknown: init does not answer.
	ProcessUnknown ProcessState = "Unknown"
)

// AddressUse is an address and until when it was used.
type AddressUse struct {
	Address  string    `json:"address"`
	LastUsed time.Time `json:"lastUsed"`
}

// Mode is Cassandra's OperationMode.
type Mode string

// The modes of StorageService; the FAILED ones exist since 5.0.
const (
	ModeStarting           Mode = "STARTING"
	ModeNormal             Mode = "NORMAL"
	ModeJoining            Mode = "JOINING"
	ModeJoiningFailed      Mode = "JOINING_FAILED"
	ModeLeaving            Mode = "LEAVING"
	ModeDecommissioned     Mode = "DECOMMISSIONED"
	ModeDecommissionFailed Mode = "DECOMMISSION_FAILED"
	ModeMoving             Mode = "MOVING"
	ModeDraining           Mode = "DRAINING"
	ModeDrained            Mode = "DRAINED"
)

// Ring is the ring as one node sees it.
type Ring struct {
	Mode           Mode   `json:"mode"`
	HostID         string `json:"hostID"`
	ReleaseVersion string `json:"releaseVersion"`
	SchemaVersion  string `json:"schemaVersion"`
	GossipRunning  bool   `json:"gossipRunning"`
	NativeRunning  bool   `json:"nativeRunning"`

	// Pending is the number of ranges, of all keyspaces that are replicated, which are on their way
	// to new owners.
	Pending int `json:"pending,omitempty"`
	// Streaming says that this node takes part in a stream, or did so some seconds ago.
	Streaming bool `json:"streaming,omitempty"`
	// Hints are the files of hints that this node keeps, by the host id that they are for; nil if
	// unknown. A file counts until all of it was sent.
	Hints map[string]int `json:"hints,omitzero"`
	// Unfinished is what another release would find unfinished, when it was last counted; nil if
	// unknown.
	Unfinished *Unfinished `json:"unfinished,omitempty"`

	// PlainClients are clients of other pods that are connected without encryption, a minute ago at
	// most, with their drivers: the first few of them; nil if unknown.
	PlainClients []string `json:"plainClients,omitzero"`

	// Endpoints that this node knows by gossip, itself included, sorted by address. Nodes that left
	// stay among them for three days.
	Endpoints []Endpoint `json:"endpoints"`
	// Keyspaces that are replicated, by name, with their replication as Cassandra writes it:
	// "NetworkTopologyStrategy {dc1=3}".
	Keyspaces map[string]string `json:"keyspaces,omitempty"`

	// view is what View answers of these endpoints.
	view keptView
}

// Transfer is the sum over the streams of one node. Sums rise and fall while one operation runs, as
// streams begin and end.
type Transfer struct {
	// Plans is the number of stream plans.
	Plans int
	// Received and Sent are bytes, of so many known by now.
	Received, ToReceive int64
	Sent, ToSend        int64
}

// String is for people: "streams: received 1.2 of 3.4 GiB".
func (t Transfer) String() string {
	var parts []string
	if t.ToReceive > 0 {
		parts = append(parts, "received "+Share(t.Received, t.ToReceive))
	}
	if t.ToSend > 0 {
		parts = append(parts, "sent "+Share(t.Sent, t.ToSend))
	}
	if len(parts) == 0 {
		return "streams begin"
	}
	return "streams: " + strings.Join(parts, ", ")
}

// Share is a part of so many bytes, in the unit of the whole.
func Share(part, whole int64) string {
	unit, divisor := "B", int64(1)
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if whole/divisor < 1024 {
			break
		}
		unit, divisor = u, divisor*1024
	}
	if divisor == 1 {
		return fmt.Sprintf("%d of %d B", part, whole)
	}
	return fmt.Sprintf("%.1f of %.1f %s", float64(part)/float64(divisor), float64(whole)/float64(divisor), unit)
}

// GossipStatus is the STATUS of an endpoint in gossip, in upper case.
type GossipStatus string

// The values of STATUS that mean something to us; the rest are passed on as they are.
const (
	StatusUnknown   GossipStatus = ""
	StatusNormal    GossipStatus = "NORMAL"
	StatusBootstrap GossipStatus = "BOOT"
	StatusReplacing GossipStatus = "BOOT_REPLACE"
	StatusLeaving   GossipStatus = "LEAVING"
	StatusLeft      GossipStatus = "LEFT"
	StatusMoving    GossipStatus = "MOVING"
	StatusRemoving  GossipStatus = "REMOVING"
	StatusRemoved   GossipStatus = "REMOVED"
	StatusHibernate GossipStatus = "HIBERNATE"
	StatusShutdown  GossipStatus = "SHUTDOWN"
)

// Endpoint is one node as another sees it.
type Endpoint struct {
	Address       string       `json:"address"`
	HostID        string       `json:"hostID,omitempty"`
	Datacenter    string       `json:"datacenter,omitempty"`
	Rack          string       `json:"rack,omitempty"`
	Status        GossipStatus `json:"status,omitempty"`
	Live          bool         `json:"live"`
	Release       string       `json:"release,omitempty"`
	SchemaVersion string       `json:"schemaVersion,omitempty"`
	// Tokens it owns in this view, ascending; empty for one that owns none (yet).
	Tokens []int64 `json:"tokens,omitempty"`
	// Load is the size of its data in bytes, 0 if not known.
	Load int64 `json:"load,omitempty"`
}

// InFlight says that a topology change of this endpoint is under way: its STATUS is none of NORMAL,
// LEFT, REMOVED and SHUTDOWN. An endpoint without a STATUS has only been heard of and is not
// counted.
func (e Endpoint) InFlight() bool {
	switch e.Status {
	case StatusUnknown, StatusNormal, StatusLeft, StatusRemoved, StatusShutdown:
		return false
	default:
		return true
	}
}

// Member says that the endpoint owns tokens in the view, up or down.
func (e Endpoint) Member() bool {
	return len(e.Tokens) > 0 && e.Status != StatusLeft && e.Status != StatusRemoved
}

// Unfinished is work that one release has begun and another would have to read.
type Unfinished struct {
	// Batches are those in the node's batchlog, those that have only just begun among them.
	Batches int `json:"batches,omitempty"`
	// IncrementalRepairs in which the node participates, whichever node coordinates them.
	IncrementalRepairs int `json:"incrementalRepairs,omitempty"`
}

// Delivers says that the node keeps hints for a member that it sees up.
func (r *Ring) Delivers() bool {
	if r == nil || len(r.Hints) == 0 {
		return false
	}
	return slices.ContainsFunc(r.Endpoints, func(e Endpoint) bool { return e.Live && r.Hints[e.HostID] > 0 })
}

// Repairs says that the node takes part in an incremental repair.
func (r *Ring) Repairs() bool {
	return r != nil && r.Unfinished != nil && r.Unfinished.IncrementalRepairs > 0
}

// OtherSchema says which member has another schema than this node, or none that gossip knows of;
// empty if none has.
func (r *Ring) OtherSchema() string {
	for _, e := range r.Endpoints {
		if e.Member() && e.SchemaVersion != r.SchemaVersion {
			return fmt.Sprintf("the schema of %s is %q, and here %q", e.Address, e.SchemaVersion, r.SchemaVersion)
		}
	}
	return ""
}

// Changing are the members whose place in the ring changes, in words.
func (r *Ring) Changing() []string {
	var out []string
	for _, e := range r.Endpoints {
		if e.InFlight() {
			out = append(out, fmt.Sprintf("%s is %s", e.Address, e.Status))
		}
	}
	return out
}

// Nodes are the members in the view, as core/ring wants them: by host id.
func (r *Ring) Nodes() []ring.Node {
	members, total := 0, 0
	for i := range r.Endpoints {
		if r.Endpoints[i].Member() {
			members, total = members+1, total+len(r.Endpoints[i].Tokens)
		}
	}
	out := make([]ring.Node, 0, members)
	tokens := make([]ring.Token, 0, total) // of all of them: a list for each costs more than the rest
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if !e.Member() {
			continue
		}
		begin := len(tokens)
		for _, t := range e.Tokens {
			tokens = append(tokens, ring.Token(t))
		}
		out = append(out, ring.Node{ID: e.HostID, Datacenter: e.Datacenter, Rack: e.Rack,
			Tokens: tokens[begin:len(tokens):len(tokens)]})
	}
	return out
}

// OwnerOf is the member that owns a token: the first whose own token is not less, else the first of
// all. Nil if the view has no member.
func (r *Ring) OwnerOf(token int64) *Endpoint {
	var next, first *Endpoint
	var nextAt, firstAt int64
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if !e.Member() {
			continue
		}
		if first == nil || e.Tokens[0] < firstAt { // they ascend
			first, firstAt = e, e.Tokens[0]
		}
		at, _ := slices.BinarySearch(e.Tokens, token)
		if at < len(e.Tokens) && (next == nil || e.Tokens[at] < nextAt) {
			next, nextAt = e, e.Tokens[at]
		}
	}
	if next == nil {
		return first
	}
	return next
}

// RingTokens are the tokens that the endpoint owns.
func (e Endpoint) RingTokens() []ring.Token {
	out := make([]ring.Token, len(e.Tokens))
	for i, t := range e.Tokens {
		out[i] = ring.Token(t)
	}
	return out
}

// Replicated are the keyspaces in the view, by name. The error says of which the replication cannot
// be read; the others are returned all the same.
func (r *Ring) Replicated() ([]ring.Keyspace, error) {
	var out []ring.Keyspace
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.Keyspaces)) {
		replication, err := ring.ParseReplication(r.Keyspaces[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("keyspace %s: %w", name, err))
			continue
		}
		out = append(out, ring.Keyspace{Name: name, Replication: replication})
	}
	return out, errors.Join(errs...)
}

// Without is the ring in the view without some of its endpoints.
func (r *Ring) Without(these func(Endpoint) bool) *Ring {
	out := *r
	out.Endpoints = slices.DeleteFunc(slices.Clone(r.Endpoints), these)
	return &out
}

// Protection of the ring in the view at a consistency level of the API.
func (r *Ring) Protection(level v1alpha1.ConsistencyLevel) (*ring.Protection, error) {
	members, err := ring.New(slices.DeleteFunc(r.Nodes(), func(n ring.Node) bool { return n.ID == "" }))
	if err != nil {
		return nil, fmt.Errorf("read the ring: %w", err)
	}
	keyspaces, err := r.Replicated()
	if err != nil {
		return nil, fmt.Errorf("read the replication: %w", err)
	}
	consistency, err := ring.ParseConsistency(string(level))
	if err != nil {
		return nil, err
	}
	protection, err := ring.NewProtection(members, keyspaces, consistency)
	if err != nil {
		return nil, fmt.Errorf("judge the ring: %w", err)
	}
	return protection, nil
}

// ByHostID finds an endpoint by its host id. After a change of address the one that is live wins.
func (r *Ring) ByHostID(id string) (Endpoint, bool) {
	var found Endpoint
	ok := false
	if r == nil || id == "" {
		return found, false
	}
	for _, e := range r.Endpoints {
		if e.HostID == id && (!ok || e.Live) {
			found, ok = e, true
		}
	}
	return found, ok
}

// ByAddress finds an endpoint by its address.
func (r *Ring) ByAddress(address string) (Endpoint, bool) {
	if r == nil || address == "" {
		return Endpoint{}, false
	}
	for _, e := range r.Endpoints {
		if e.Address == address {
			return e, true
		}
	}
	return Endpoint{}, false
}
