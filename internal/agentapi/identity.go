package agentapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
)

// Identity is what an agent tells another before that one starts its JVM: who it is, which
// addresses it had, whom it knows as replaced.
type Identity struct {
	ClusterUID types.UID `json:"clusterUID"`
	Node       string    `json:"node"`
	// Datacenter of the node as the cluster's spec names it; empty while its agent does not know.
	Datacenter string    `json:"datacenter,omitempty"`
	PodUID     types.UID `json:"podUID"`
	// HostID of the node, empty before it is a member.
	HostID string `json:"hostID,omitempty"`
	// Addresses the node has and had, with the time of the last use.
	Addresses []facts.AddressUse `json:"addresses,omitempty"`
	// Replaced are host ids that must never start again.
	Replaced []string `json:"replaced,omitempty"`
	// TrafficOpened says that the native transport of this node is or was open to anybody.
	TrafficOpened bool `json:"trafficOpened"`
	// GCGrace is the smallest gc_grace of a replicated table of users, in nanoseconds, 0 if there
	// is none; nil while the node does not know it.
	GCGrace *time.Duration `json:"gcGrace,omitempty"`

	// AtAddress is the member that this node's ring has at the address asked for; nil if none, or
	// if no JVM answers.
	AtAddress *Sighting `json:"atAddress,omitempty"`
	// OfHostID is the member that this node's ring has with the host id asked for.
	OfHostID *Sighting `json:"ofHostID,omitempty"`
	// Up are the host ids of the members that it sees up. Told by a NORMAL node to one that asks
	// about a member.
	Up []string `json:"up,omitempty"`
	// Down are the host ids of the members that it sees down. Told by a NORMAL node.
	Down []string `json:"down,omitempty"`
	// Ring says that the JVM of this node answered, and so that absent sightings mean something.
	Ring bool `json:"ring"`
	// JVM tells the one that answered from those before and after it.
	JVM string `json:"jvm,omitempty"`
}

// Sighting is a member in the eyes of another.
type Sighting struct {
	Address string             `json:"address"`
	HostID  string             `json:"hostID,omitempty"`
	Live    bool               `json:"live"`
	Status  facts.GossipStatus `json:"status,omitempty"`
}

// SightingOf is what an endpoint of a ring tells a peer.
func SightingOf(e facts.Endpoint) *Sighting {
	return &Sighting{Address: e.Address, HostID: e.HostID, Live: e.Live, Status: e.Status}
}

// MaxWait is the longest wait of a question for facts.
const MaxWait = time.Minute

// Timed is an answer to a question that came at a time, by the clock of the agent's host.
func Timed(answer *facts.Agent, asked, now time.Time) *facts.Agent {
	timed := *answer
	timed.Clock = &facts.Clock{Asked: asked, Answered: now}
	return &timed
}

// Digest of an answer: the same for answers that differ only in the time at which they were given,
// and in the size of the nodes' data, which changes all the time.
func Digest(answer *facts.Agent) string {
	timeless := *answer
	timeless.ObservedAt, timeless.Clock, timeless.Space = time.Time{}, nil, nil
	if answer.Ring != nil {
		ring := *answer.Ring
		ring.Endpoints = slices.Clone(ring.Endpoints)
		for i := range ring.Endpoints {
			ring.Endpoints[i].Load = 0
		}
		timeless.Ring = &ring
	}
	text, err := json.Marshal(&timeless)
	if err != nil {
		panic(fmt.Sprintf("encode facts: %v", err)) // plain data only: cannot happen
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
