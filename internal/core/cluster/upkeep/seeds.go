package upkeep

import (
	"slices"
	"strings"

	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// PublishSeeds publishes the addresses that the nodes use as seeds: while the ring forms those of
// the ticket holders that the open step names, afterwards those of two or three members in each
// datacenter. Without any address to give, and while the ring is stopped as a whole, the last list
// stays.
func (k *Keeper) PublishSeeds() plan.Result {
	names := k.seedNodes()
	var addresses []string
	for _, name := range names {
		if a := assess.Address(k.Nodes[name]); a != "" {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	k.draft.Seeds = addresses
	if len(addresses) == 0 || k.Ledger.KeepsDown("") && !k.Ledger.Starts("") {
		k.draft.Seeds = k.PublishedSeeds()
		return plan.Nothing()
	}
	k.publishSeeds(addresses)
	return plan.Nothing()
}

func (k *Keeper) publishSeeds(addresses []string) {
	ensure(k, k.Shared.ConfigMaps, render.Seeds(k.Owner(), addresses, k.Ledger.Replaced), repairConfig,
		"seeds: "+strings.Join(addresses, ", "))
}

// seedNodes are the names of the nodes that are seeds now.
func (k *Keeper) seedNodes() []string {
	if s := k.Ledger.Step; s != nil && s.Stage == ledger.StageTickets && len(ticket.Of(s).Seeds) > 0 {
		return slices.DeleteFunc(ticket.Of(s).Seeds,
			func(name string) bool { return slices.Contains(s.Withdrawn, name) })
	}
	if len(k.Ledger.Members) == 0 {
		return nil
	}
	members := slices.Clone(k.Members())
	switch s := k.Ledger.Step; {
	case s == nil:
	case len(members) > 1 &&
		slices.Contains([]ledger.Kind{ledger.LeaveNode, ledger.RenewNode, ledger.ReplaceTask, ledger.RemoveTask},
			s.Kind):
		members = slices.DeleteFunc(members, s.Has)
	case s.Kind == ledger.ReplaceNode && s.Stage == ledger.StageTickets:
		members = slices.DeleteFunc(members, s.Has) // it is on its way into the ring
	}
	return k.Seeds(members, k.PresentSeeds())
}
