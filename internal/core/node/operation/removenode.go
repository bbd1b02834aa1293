package operation

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A removal streams as a decommission does, and conflicts with the same operations.
var removeNode = Kind{
	Type: v1alpha1.OperationRemoveNode,
	ConflictsWith: append([]v1alpha1.OperationType{v1alpha1.OperationRemoveNode},
		decommission.ConflictsWith...),
	FreshView: true,
	Check: func(r Request) *Refusal {
		hostID := r.Arguments.HostID
		switch known, address := MemberAt(r.View, hostID); {
		case !known:
			return refuse(v1alpha1.BlockedRingViewsDiffer, "this node sees no member with host id %s", hostID)
		case address != "":
			return refuse(v1alpha1.BlockedMemberNotNormal, "host id %s is up at %s: a member that is removed is down",
				hostID, address)
		}
		others := r.View.Without(func(e facts.Endpoint) bool { return e.HostID == hostID })
		others.Pending = 0 // those of the removed member; any other topology change has a status
		return leaveRefused(others)
	},
}

// MemberAt says whether a view has a member with a host id, and at which address it is up; empty if
// it is down. After a change of address its stale endpoint may be a member, too.
func MemberAt(view *facts.Ring, hostID string) (known bool, up string) {
	for _, e := range view.Endpoints {
		if e.HostID == hostID && e.Member() {
			known = true
			if e.Live {
				up = e.Address
			}
		}
	}
	return known, up
}
