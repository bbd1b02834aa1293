package cluster

import (
	"slices"
	"strings"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
)

// seeds publishes the addresses that the nodes use as seeds: while the ring forms those of the ticket holders that the open step names, afterwards those
// of two or three members in each datacenter. Without any address to give, the last list stays.
func seeds(p *pass) result {
	names := p.seedNodes()
	var addresses []string
	for _, name := range names {
		if a := address(p.Nodes[name]); a != "" {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses)
	p.plan.Seeds = addresses
	if len(addresses) == 0 {
		p.plan.Seeds = p.publishedSeeds()
		return done()
	}
	p.publishSeeds(addresses)
	return done()
}

func (p *pass) publishSeeds(addresses []string) {
	ensure(p, p.Shared.ConfigMaps, render.Seeds(p.owner(), addresses), rightConfig, "seeds: "+strings.Join(addresses, ", "))
}

func (p *pass) publishedSeeds() []string {
	have, ok := p.Shared.ConfigMaps[render.Seeds(p.owner(), nil).Name]
	if !ok || have.Data[layout.SeedsKey] == "" {
		return nil
	}
	return strings.Split(have.Data[layout.SeedsKey], ",")
}

// seedNodes are the names of the nodes that are seeds now.
func (p *pass) seedNodes() []string {
	if s := p.Ledger.Step; s != nil && len(s.Seeds) > 0 && s.Stage == ledger.StageTickets {
		return slices.DeleteFunc(slices.Clone(s.Seeds), func(name string) bool { return slices.Contains(s.Withdrawn, name) })
	}
	if len(p.Ledger.Members) == 0 {
		return nil
	}
	return p.chooseSeeds(p.members(), p.presentSeeds())
}

// presentSeeds are the nodes whose addresses are published now.
func (p *pass) presentSeeds() []string {
	published := p.publishedSeeds()
	var names []string
	for _, n := range p.Records() {
		if a := address(n); a != "" && slices.Contains(published, a) {
			names = append(names, n.Name)
		}
	}
	return names
}

// chooseSeeds chooses two or three nodes of each datacenter out of the given ones, on different racks, and keeps those that are seeds already.
func (p *pass) chooseSeeds(names, present []string) []string {
	var candidates []ring.SeedCandidate
	for _, name := range names {
		n := p.Nodes[name]
		if n == nil || n.Record == nil {
			continue
		}
		candidates = append(candidates, ring.SeedCandidate{
			ID: name, Datacenter: n.Record.Spec.Datacenter, Rack: n.Record.Spec.Rack, Suspect: address(n) == "",
		})
	}
	chosen, err := ring.Seeds(candidates, present)
	if err != nil {
		return nil // there is nobody to choose from: the last list stays
	}
	return chosen
}

// address of a node's present pod; empty while it has none or the pod is on its way out.
func address(n *facts.Node) string {
	if n == nil || n.Pod == nil || n.Pod.DeletionTimestamp != nil {
		return ""
	}
	return n.Pod.Status.PodIP
}
