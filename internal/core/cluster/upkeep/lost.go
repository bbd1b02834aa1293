package upkeep

import (
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// judgeReplace says what becomes of an exception that has a node replaced, or accepts what is lost
// with it.
func (k *Keeper) judgeReplace(e *v1alpha1.Exception) (v1alpha1.ExceptionState, string) {
	switch s := k.Ledger.Step; {
	case s.Has(e.Node) &&
		slices.Contains([]ledger.Kind{ledger.RenewNode, ledger.ReplaceNode, ledger.ReplaceTask, ledger.RemoveTask},
			s.Kind):
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s is being replaced", e.Node)
	case slices.ContainsFunc(k.Ledger.Lost, func(l ledger.Lost) bool { return l.Node == e.Node }):
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s is to be replaced", e.Node)
	default:
		return v1alpha1.ExceptionWaiting,
			fmt.Sprintf("node %s is not lost: this counts once its disk or host is", e.Node)
	}
}

// takesPlace says that a node has a ticket to replace a member whose claims are out of reach: it
// gets others.
func takesPlace(n *facts.Node) bool {
	t := n.Record.Spec.Join
	return t != nil && t.Replace != nil && slices.ContainsFunc(n.Record.Spec.Replaced,
		func(r v1alpha1.ReplacedMember) bool { return r.HostID == t.Replace.HostID && r.ClaimUID != "" })
}

// isOlder says that the pod of a node was made before the claims that its record pins: it uses
// others.
func isOlder(n *facts.Node) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(n.Claims)), func(c *facts.Claim) bool {
		return c.Claim != nil && n.Pod.CreationTimestamp.Before(&c.Claim.CreationTimestamp)
	})
}
