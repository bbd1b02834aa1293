package upkeep

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// removeLeft removes what there is of nodes that have left the ring: the pod, then the claims if
// the user has said so, then the record. The ledger has forgotten them: every member that was up
// knew that they have left.
func (k *Keeper) removeLeft() {
	for _, n := range k.Records() {
		_, member := k.Ledger.HostID(n.Name)
		if n.Record.Spec.State != v1alpha1.StateDecommissioned || member || k.LedgerLost ||
			k.Ledger.Step.Has(n.Name) {
			continue
		}
		switch {
		case n.Pod != nil && n.Pod.DeletionTimestamp == nil:
			k.draft.Write(plan.DeletePod(n.Pod, "its node has left the ring"))
		case n.Pod != nil || k.deleteClaimsOfLeft(n):
		case n.Record.DeletionTimestamp == nil: // otherwise it is let go already
			k.removeRecord(n, "its node has left the ring")
		}
	}
}

// deleteClaimsOfLeft deletes the claims that the record of a node which has left names by their
// uids, if the user wants that, and says whether any had to be.
func (k *Keeper) deleteClaimsOfLeft(n *facts.Node) bool {
	if k.Cluster.Spec.Volumes.OnScaleIn != v1alpha1.ClaimDelete {
		return false
	}
	written := false
	for _, pin := range n.Record.Spec.Claims {
		c := n.Claims[pin.Volume]
		if c == nil || c.Claim == nil || c.Claim.UID != pin.UID || c.Claim.DeletionTimestamp != nil {
			continue
		}
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(c.Claim), UID: c.Claim.UID,
			Why: "its node has left the ring, and volumes.onScaleIn is Delete"})
		written = true
	}
	return written
}
