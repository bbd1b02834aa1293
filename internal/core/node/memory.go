package node

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
	"helenus.io/helenus/internal/core/words"
)

// Memory is what must survive the end of the agent, the pod and the host: it lies in the journal on
// the data volume. What it says was true when it was written down, and was written down before the
// effect it speaks of.
type Memory struct {
	// ClusterUID and Node say whose journal it is; empty in a new one.
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	Node       string    `json:"node,omitempty"`

	// Record and Seeds as they were last seen, so that a member starts while the API server is
	// away.
	Record *RecordMemory `json:"record,omitempty"`
	Seeds  []string      `json:"seeds,omitempty"`

	// Member is set when the node was first seen NORMAL with the tokens of its ticket.
	Member *Member `json:"member,omitempty"`
	// LeftAt is when it was seen to have left the ring for good.
	LeftAt *time.Time `json:"leftAt,omitempty"`
	// TrafficOpenedAt is when the native transport was first about to be opened to anybody.
	TrafficOpenedAt *time.Time `json:"trafficOpenedAt,omitempty"`

	Join    *JoinMemory    `json:"join,omitempty"`
	Restart *RestartMemory `json:"restart,omitempty"`
	// Operations that were begun or withdrawn, in this order: those that run, those that the record
	// wants, and the last ones before them.
	Operations []OperationMemory `json:"operations,omitempty"`

	// Start is the last start of a JVM on this disk.
	Start *StartMemory `json:"start,omitempty"`
	// Proven is what the node was last NORMAL with.
	Proven *ProvenMemory `json:"proven,omitempty"`
	// Release is that of Cassandra with which the node was last NORMAL: none of an earlier line
	// reads what is on this disk.
	Release string `json:"release,omitempty"`
	// Stop is an ordered stop of that JVM.
	Stop *StopMemory `json:"stop,omitempty"`
	// Deaths are the ends of JVMs that nobody asked for.
	Deaths *Deaths `json:"deaths,omitempty"`

	// Addresses the node had, the last sixteen, with the time of the last use.
	Addresses []facts.AddressUse `json:"addresses,omitempty"`
	// Replaced are the host ids that are known to be replaced.
	Replaced []string `json:"replaced,omitempty"`
	// Neighbours are the addresses of the other members when the ring was last seen, so that they
	// can be asked without API server and seeds.
	Neighbours []string `json:"neighbours,omitempty"`
	// NormalAt is when the node was last known to be NORMAL, to some minutes.
	NormalAt *time.Time `json:"normalAt,omitempty"`
	// Normal are the times in which the node was NORMAL: the present JVM's has no end.
	Normal []facts.Stretch `json:"normal,omitempty"`
	// RepairDue says why the node's data must be repaired, until a full repair of it has finished.
	RepairDue []v1alpha1.RepairDue `json:"repairDue,omitempty"`
	// ContactAt is when the API server or a peer's agent was last heard, to some minutes.
	ContactAt *time.Time `json:"contactAt,omitempty"`
	// GCGrace is the smallest gc_grace of a replicated table of users while the node was NORMAL;
	// zero if it is not known.
	GCGrace time.Duration `json:"gcGrace,omitempty"`
}

// RecordMemory is a CassandraNode as far as a start needs it.
type RecordMemory struct {
	UID        types.UID                  `json:"uid"`
	Generation int64                      `json:"generation"`
	Spec       v1alpha1.CassandraNodeSpec `json:"spec"`
}

// Object is the record that was remembered, without a status; nil if none was.
func (r *RecordMemory) Object(name string) *v1alpha1.CassandraNode {
	if r == nil {
		return nil
	}
	record := &v1alpha1.CassandraNode{Spec: *r.Spec.DeepCopy()}
	record.Name, record.UID, record.Generation = name, r.UID, r.Generation
	return record
}

// Member is the identity of a member.
type Member struct {
	HostID string    `json:"hostID"`
	Tokens []string  `json:"tokens"`
	Since  time.Time `json:"since"`
}

// IntentMemory is how far a one-shot intent has come.
type IntentMemory struct {
	ID          string     `json:"id"`
	BegunAt     *time.Time `json:"begunAt,omitempty"`
	FinishedAt  *time.Time `json:"finishedAt,omitempty"`
	WithdrawnAt *time.Time `json:"withdrawnAt,omitempty"`
	Message     string     `json:"message,omitempty"`
}

// over says that the id never takes effect again.
func (m *IntentMemory) over() bool { return m.FinishedAt != nil || m.WithdrawnAt != nil }

// JoinMemory is a ticket that was taken or given back.
type JoinMemory struct {
	IntentMemory `json:",inline"`
	Mode         v1alpha1.JoinMode `json:"mode,omitempty"`
	Tokens       []string          `json:"tokens,omitempty"`
	// Replace is the member whose place the node takes; nil for other modes.
	Replace *v1alpha1.ReplaceTarget `json:"replace,omitempty"`
	// SystemAuthReplicationFactor of the ticket.
	SystemAuthReplicationFactor int32 `json:"systemAuthReplicationFactor,omitempty"`
	// Restore is what the disk is filled with before the first start, and Restored says that it is.
	Restore  *v1alpha1.DiskRestore `json:"restore,omitempty"`
	Restored bool                  `json:"restored,omitempty"`
	// Heard is the last try by this ticket of which the ring may have heard; nil if there was none
	// before the present start.
	Heard *HeardMemory `json:"heard,omitempty"`
	// Attempts counts the JVMs that were started by this ticket.
	Attempts int32 `json:"attempts,omitempty"`
	// Wipe is the last removal of what these have streamed; nil if there was none.
	Wipe *WipeMemory `json:"wipe,omitempty"`
}

// WipeMemory is a removal of what a join has streamed, by an id of the ticket.
type WipeMemory struct {
	ID      string    `json:"id"`
	BegunAt time.Time `json:"begunAt"`
	Done    bool      `json:"done,omitempty"`
}

// HeardMemory is a try to join of which the ring may have heard: its last word came between From
// and Until, which differ where its end was not seen.
type HeardMemory struct {
	Address string    `json:"address"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
}

// RestartMemory is a restart that was begun: of the JVM that ran then.
type RestartMemory struct {
	IntentMemory `json:",inline"`
	Incarnation  string `json:"incarnation,omitempty"`
	// StartID of the JVM that is to end; 0 if none ran.
	StartID uint64 `json:"startID,omitempty"`
}

// OperationMemory is an operation that was begun.
type OperationMemory struct {
	ID string `json:"id"`
	// Type decides what may not run beside it; empty for one that was withdrawn. Arguments are
	// those that it was begun with, whatever becomes of the record.
	Type      v1alpha1.OperationType       `json:"type,omitempty"`
	Arguments *v1alpha1.OperationArguments `json:"arguments,omitempty"`
	// Incarnation and StartID name the JVM that it runs on, and Handle what of it runs there.
	Incarnation string           `json:"incarnation,omitempty"`
	StartID     uint64           `json:"startID,omitempty"`
	Handle      operation.Handle `json:"handle,omitzero"`

	Phase      v1alpha1.OperationPhase `json:"phase"`
	BegunAt    *time.Time              `json:"begunAt,omitempty"`
	FinishedAt *time.Time              `json:"finishedAt,omitempty"`
	Message    string                  `json:"message,omitempty"`
}

// keptMessage bounds what is remembered of the words of an operation: as many as a status shows.
const keptMessage = 4096

// Operation is what is remembered of the one with an id; nil for nothing.
func (m *Memory) Operation(id string) *OperationMemory {
	i := slices.IndexFunc(m.Operations, func(o OperationMemory) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &m.Operations[i]
}

// EndedBy are the ids of the operations that had ended at a time.
func (m *Memory) EndedBy(at time.Time) (ids []string) {
	for _, o := range m.Operations {
		if o.FinishedAt != nil && !o.FinishedAt.After(at) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// WithHandle is the memory with another handle of an operation that runs.
func (m Memory) WithHandle(id string, h operation.Handle) Memory {
	m.Operations = slices.Clone(m.Operations)
	if o := m.Operation(id); o != nil {
		o.Handle = h
	}
	return m
}

// noteOperation remembers what has become of an operation. The oldest ones are dropped beyond what
// a status can show, but never one that runs, nor one that the record wants: it would begin again.
// At most four are of each of these two kinds, so there is always room.
func (m *Memory) noteOperation(record *v1alpha1.CassandraNode, now OperationMemory) {
	now.Message = words.Shorten(now.Message, keptMessage)
	operations := slices.Clone(m.Operations)
	if i := slices.IndexFunc(operations, func(o OperationMemory) bool { return o.ID == now.ID }); i >= 0 {
		operations[i] = now
	} else {
		operations = append(operations, now)
	}
	for i := 0; len(operations) > v1alpha1.MaxOperationStatuses && i < len(operations); {
		if o := operations[i]; o.Phase.Final() && (record == nil || record.Spec.Operation(o.ID) == nil) {
			operations = slices.Delete(operations, i, i+1)
		} else {
			i++
		}
	}
	m.Operations = operations
}

// StartMemory is a start of a JVM, written before it is asked of init.
type StartMemory struct {
	PodUID      types.UID `json:"podUID"`
	Incarnation string    `json:"incarnation"`
	StartID     uint64    `json:"startID"`
	At          time.Time `json:"at"`
	// Configuration it was rendered from, with its hash.
	Configuration v1alpha1.NodeConfiguration `json:"configuration"`
	Hash          string                     `json:"hash"`
	// Seeds in its cassandra.yaml.
	Seeds []string `json:"seeds"`
	// Joined says that before this start the disk already said that the node had completed its
	// join.
	Joined bool `json:"joined,omitempty"`
	// Generation of gossip that the disk had before this start.
	Generation int32 `json:"generation,omitempty"`
	// NormalAt is when this JVM was first seen NORMAL.
	NormalAt *time.Time `json:"normalAt,omitempty"`
	// Blind says why it did not see its peers when it was opened to clients; empty if it did, and
	// as soon as it does.
	Blind string `json:"blind,omitempty"`
	// EndedAt is when its end was noted, expected or not. Lost says that it came at any time
	// before.
	EndedAt *time.Time `json:"endedAt,omitempty"`
	Lost    bool       `json:"lost,omitempty"`
}

// ProvenMemory is what a node was NORMAL with: the hashes of its pod's template and of its
// configuration.
type ProvenMemory struct {
	PodTemplate   string `json:"podTemplate"`
	Configuration string `json:"configuration"`
}

// Is says whether the start is that of a process.
func (s *StartMemory) Is(incarnation string, startID uint64) bool {
	return s != nil && s.Incarnation == incarnation && s.StartID == startID
}

// StopMemory is an ordered stop, written before its first effect: the end of that JVM is then
// expected.
type StopMemory struct {
	Incarnation string    `json:"incarnation"`
	StartID     uint64    `json:"startID"`
	Why         string    `json:"why"`
	BegunAt     time.Time `json:"begunAt"`
	// ClosedAt, DrainAt and TermAt are when the steps were begun. Each is begun once.
	ClosedAt *time.Time `json:"closedAt,omitempty"`
	DrainAt  *time.Time `json:"drainAt,omitempty"`
	TermAt   *time.Time `json:"termAt,omitempty"`
	KillAt   *time.Time `json:"killAt,omitempty"`
	// Reason is set where the stop is not an ordered one but the end of a JVM that is frozen or has
	// given up: it counts as a death.
	Reason v1alpha1.RestartReason `json:"reason,omitempty"`
}

func (s *StopMemory) of(incarnation string, startID uint64) bool {
	return s != nil && s.Incarnation == incarnation && s.StartID == startID
}

// Deaths are the ends of JVMs that nobody asked for.
type Deaths struct {
	// PodUID in which they are counted.
	PodUID types.UID `json:"podUID"`
	Count  int32     `json:"count"`
	// Row is how many came one after the other without a JVM that stayed up in between, in whatever
	// pod. It decides the back-off.
	Row          int                    `json:"row"`
	LastAt       time.Time              `json:"lastAt"`
	LastReason   v1alpha1.RestartReason `json:"lastReason"`
	Message      string                 `json:"message"`
	BackOffUntil time.Time              `json:"backOffUntil"`
}

// keptAddresses bounds the list of former addresses.
const keptAddresses = 16

// useAddress returns the addresses with one used at a time.
func useAddress(uses []facts.AddressUse, address string, at time.Time) []facts.AddressUse {
	out := []facts.AddressUse{{Address: address, LastUsed: at}}
	for _, use := range uses {
		if use.Address != address && len(out) < keptAddresses {
			out = append(out, use)
		}
	}
	return out
}

// EveryReplaced are the host ids that are replaced by any word.
func (f *Facts) EveryReplaced() []string {
	ids := slices.Concat(f.Memory.Replaced, f.Replaced)
	if f.Record != nil {
		for _, r := range f.Record.Spec.Replaced {
			ids = append(ids, r.HostID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
