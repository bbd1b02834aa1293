package facts

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Peer is what the agent of a node tells another before that one starts its JVM or takes it down:
// who it is, which addresses it had, whom it knows as replaced, what its ring knows of an address
// and a host id, and whether it goes down itself.
type Peer struct {
	// Asked is the address it answered at.
	Asked string `json:"-"`

	ClusterUID types.UID `json:"clusterUID"`
	Node       string    `json:"node"`
	// Datacenter of the node as the cluster's spec names it; empty while its agent does not know.
	Datacenter string    `json:"datacenter,omitempty"`
	PodUID     types.UID `json:"podUID"`
	// HostID of the node, empty before it is a member.
	HostID string `json:"hostID,omitempty"`
	// Addresses the node has and had, with the time of the last use.
	Addresses []AddressUse `json:"addresses,omitempty"`
	// Replaced are host ids that must never start again.
	Replaced []string `json:"replaced,omitempty"`
	// TrafficOpened says that the native transport of this node is or was open to anybody.
	TrafficOpened bool `json:"trafficOpened"`
	// GCGrace is the smallest gc_grace of a replicated table of users, in nanoseconds, 0 if there
	// is none; nil while the node does not know it.
	GCGrace *time.Duration `json:"gcGrace,omitempty"`
	// AtAddress is the member that this node's ring has at the address asked for, and OfHostID the
	// one with the host id, each as Sighting gives it; nil if none, or if no JVM answers.
	AtAddress *Endpoint `json:"atAddress,omitempty"`
	OfHostID  *Endpoint `json:"ofHostID,omitempty"`
	// Up are the host ids of the members that it sees up. Told by a NORMAL node to one that asks
	// about a member.
	Up []string `json:"up,omitempty"`
	// Down are the host ids of the members that it sees down. Told by a NORMAL node.
	Down []string `json:"down,omitempty"`
	// GoingDown says that the JVM of this node is being taken down, or soon will be unless another
	// node goes down at the same time.
	GoingDown bool `json:"goingDown,omitempty"`
	// Ring says that the JVM of this node answered, and so that absent sightings mean something.
	Ring bool `json:"ring"`
	// JVM tells the one that answered from those before and after it.
	JVM string `json:"jvm,omitempty"`
}

// Sighting is what of an endpoint a peer is told.
func (e Endpoint) Sighting() *Endpoint {
	return &Endpoint{Address: e.Address, HostID: e.HostID, Live: e.Live, Status: e.Status}
}
