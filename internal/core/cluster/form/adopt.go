package form

import (
	"fmt"

	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/words"
)

// Adopt takes over the disks of an earlier cluster: when every node has reported, live, a disk of
// that cluster, each with a host id of its own, all become members at once and start on what they
// have. With one disk missing nothing starts.
func Adopt(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.AdoptRing, Class: ledger.Topology, MovesRanges: true, AsksLast: true,
		Understands: procedure.Understands[ticket.State],
		Due: func(v *assess.View) *procedure.Proposal {
			if v.Adopts() == "" {
				return nil
			}
			return &procedure.Proposal{
				What:     "the disks of an earlier cluster are to be adopted",
				Refusals: guard.Check(procedure.TheseNodes(v, v.WantedNames()...), rules.Adoption...),
				Open:     func() (*procedure.Opening, []guard.Refusal) { return adopt(v), nil },
			}
		},
		Stages: []procedure.Stage{
			// A ledger that is rebuilt before the first node opens has the system keyspaces set
			// again.
			{Name: ledger.StageTickets, Run: ticket.AwaitRing},
			{Name: ledger.StageFormed, Run: recordMembers},
			{Name: ledger.StageKeyspaces, Run: setSystemKeyspaces},
			{Name: ledger.StageOpen, Run: openTraffic},
		},
	}
}

func adopt(v *assess.View) *procedure.Opening {
	names := v.WantedNames()
	earlier := v.Adopts()
	disks := words.Plural(len(names), "disk")
	return &procedure.Opening{
		Stage: ledger.StageFormed, Datacenters: v.WantedDatacenters(), Nodes: names,
		Change: func(r *ledger.Ring) {
			r.Formed, r.Members, r.TrafficAllowed, r.Adopted = v.WantedDatacenters(), map[string]string{}, true, earlier
			r.MadeWith = v.MadeWith()
			for _, name := range names {
				r.Members[name] = v.Nodes[name].Agent.HostID
			}
		},
		Why: "all disks are there", Event: "AdoptingRing",
		EventMessage:  fmt.Sprintf("%s of the cluster with uid %s are adopted", disks, earlier),
		ResultMessage: disks + " are adopted",
	}
}
