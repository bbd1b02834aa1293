package journal

import (
	"encoding/json"
	"fmt"
	"time"
)

// Content is one version of the journal. All times are UTC.
type Content struct {
	Sequence  uint64    `json:"sequence"` // of the write, from 1
	WrittenAt time.Time `json:"writtenAt"`

	Identity Identity `json:"identity"`
	Join     *Join    `json:"join,omitempty"`
	// Withdrawn are the ids of join tickets that will never begin here, oldest first.
	Withdrawn []string `json:"withdrawn,omitempty"`
	// TrafficOpened: the native transport is, or at some time was, open to anybody.
	TrafficOpened bool `json:"trafficOpened"`
	// Formed: this node was told that the formation of its datacenter is complete.
	Formed bool `json:"formed"`

	// LastStartID is the highest id with which a JVM was, or may have been, started.
	LastStartID uint64 `json:"lastStartID"`
	// ConfigurationHash is that of the last start.
	ConfigurationHash string `json:"configurationHash,omitempty"`
	// Restarts are the last ends of the JVM, oldest first.
	Restarts []Restart `json:"restarts,omitempty"`
	// Intents that began, ended or were withdrawn, in the order in which they were first heard of.
	Intents []Intent `json:"intents,omitempty"`

	// Addresses this node had, oldest first; the last one is the present one.
	Addresses []AddressUse `json:"addresses,omitempty"`
	// Peers as they were last seen.
	Peers []Peer `json:"peers,omitempty"`
	// Replaced are host ids that were replaced and must never start again, sorted.
	Replaced []string `json:"replaced,omitempty"`

	// AliveUntil is when the JVM was last known to be NORMAL, at most AliveInterval too early.
	AliveUntil time.Time `json:"aliveUntil,omitzero"`
	// SmallestGCGraceSeconds is the smallest positive gc_grace_seconds of a replicated user table, while NORMAL; 0 if not
	// known.
	SmallestGCGraceSeconds int64 `json:"smallestGCGraceSeconds,omitempty"`
	// HintWindowSeconds is max_hint_window of the cluster; 0 if not known.
	HintWindowSeconds int64 `json:"hintWindowSeconds,omitempty"`
}

// Identity is who the node is. A field that was set is never set to something else, but by Adopt.
type Identity struct {
	ClusterUID  string `json:"clusterUID"`
	ClusterName string `json:"clusterName,omitempty"` // Cassandra's cluster_name
	Node        string `json:"node"`
	HostID      string `json:"hostID,omitempty"`
	Datacenter  string `json:"datacenter,omitempty"`
	Rack        string `json:"rack,omitempty"`
}

// JoinMode is how a ticket lets a node into the ring.
type JoinMode string

// The modes of a join ticket.
const (
	JoinNew       JoinMode = "New"
	JoinBootstrap JoinMode = "Bootstrap"
	JoinReplace   JoinMode = "Replace"
)

// Join is the ticket on which this node began to join.
type Join struct {
	ID         string    `json:"id"`
	Mode       JoinMode  `json:"mode"`
	Tokens     []int64   `json:"tokens,omitempty"`
	Replace    string    `json:"replace,omitempty"`        // host id of the node it takes the place of
	Address    string    `json:"replaceAddress,omitempty"` // and the address that one had
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt,omitzero"` // NORMAL with the tokens of the ticket
}

// Restart is an end of the JVM.
type Restart struct {
	StartID   uint64    `json:"startID"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	Code      int       `json:"code"`             // as of a shell: 128 + number after a signal
	Reason    string    `json:"reason,omitempty"` // in words: asked for, last fatal line of the log
	Asked     bool      `json:"asked"`            // the agent or the kubelet stopped it
}

// Outcome is how an intent ended.
type Outcome string

// The outcomes of an intent.
const (
	Succeeded   Outcome = "Succeeded"
	Failed      Outcome = "Failed"
	Interrupted Outcome = "Interrupted" // whether it took effect is not known
	Withdrawn   Outcome = "Withdrawn"   // it never began and will not
)

// Intent is a step that takes effect at most once per id.
type Intent struct {
	Slot       string    `json:"slot"` // the place in the record that holds one intent at a time: restart, operation, …
	ID         string    `json:"id"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Outcome    Outcome   `json:"outcome,omitempty"` // empty while it runs
	Message    string    `json:"message,omitempty"`
}

// Done says that the intent has ended.
func (i Intent) Done() bool { return i.Outcome != "" }

// AddressUse is an address of this node, From until Until, or until now if Until is zero.
type AddressUse struct {
	Address string    `json:"address"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until,omitzero"`
}

// Peer is a use of an address by another member: Since until Until, or, as far as is known, until now if Until is zero.
type Peer struct {
	Node    string    `json:"node"`
	HostID  string    `json:"hostID"`
	Address string    `json:"address"`         // its broadcast address
	Agent   string    `json:"agent,omitempty"` // host and port of its agent
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`
}

// Bounds of what is kept.
const (
	KeptRestarts      = 32
	KeptAddresses     = 16
	KeptWithdrawn     = 64
	KeptDonePerSlot   = 16
	MaxRunningIntents = 16
	MaxPeers          = 4096

	// AliveInterval is how often AliveUntil is written at most.
	AliveInterval = 5 * time.Minute
	// AddressMemory is how long a ring keeps an address for a member that has left it (measured: a freed address is refused
	// for a minute and ignored for another).
	AddressMemory = 130 * time.Second

	maxMessageBytes = 2048
)

// clone copies content through its durable form: what differs afterwards would not survive a restart either.
func (c Content) clone() (Content, error) {
	var copied Content
	data, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(data, &copied)
	}
	if err != nil {
		return Content{}, fmt.Errorf("copy journal: %w", err)
	}
	return copied, nil
}
