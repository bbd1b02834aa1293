package operation

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

var assassinate = Kind{
	Type:          v1alpha1.OperationAssassinate,
	ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationAssassinate},
}

// GossipState is how a member sees the stale endpoint of a failed join.
type GossipState string

// How a member sees it.
const (
	// GossipPresent: as one that joins and is down. The member forgets it after some minutes.
	GossipPresent GossipState = "Present"
	// GossipAbsent: not at all.
	GossipAbsent GossipState = "Absent"
	// GossipLeft: as one that has left.
	GossipLeft GossipState = "Left"
	// GossipAlive: it is no stale endpoint, but a node that is up, or a member, or the agent of a
	// node is there, whatever the ring knows of it.
	GossipAlive GossipState = "Alive"
)

// GossipStateAt says how a member with this view sees what was at an address, and why it is alive.
// There are the nodes whose agents answer at the address now: nobody would hear what starts there
// within a minute of an assassination.
func GossipStateAt(view *facts.Ring, address string, there []string) (GossipState, string) {
	e, found := view.ByAddress(address)
	switch {
	case len(there) > 0:
		return GossipAlive, fmt.Sprintf("%s is the address of node %s now", address, there[0])
	case !found:
		return GossipAbsent, ""
	case e.Status == facts.StatusLeft || e.Status == facts.StatusRemoved:
		return GossipLeft, ""
	case e.Live || e.Status != facts.StatusBootstrap:
		return GossipAlive, fmt.Sprintf("%s is no join that is over: it is %s, up: %v, with %d tokens",
			address, e.Status, e.Live, len(e.Tokens))
	}
	return GossipPresent, ""
}
