package cluster

import (
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// keepLedger sees to it that there is one. A cluster without any object gets an empty one. Where it is gone although the cluster has objects it was lost, and
// with it the knowledge of what was begun: nothing is decided until it is rebuilt from the records and from what the disks say.
func keepLedger(p *pass) result {
	if p.LedgerProblem != "" {
		p.stall(v1alpha1.ReasonNameTaken, "ConfigMap %s cannot be used as the ledger of this cluster: %s. Put its content back from a backup; or delete it, and it is rebuilt from the "+
			"records and from what the disks say", v1alpha1.LedgerName(p.Cluster.Name), p.LedgerProblem)
		return stuck("the ledger cannot be read")
	}
	if p.Ledger != nil {
		if m := p.Shared.ConfigMaps[v1alpha1.LedgerName(p.Cluster.Name)]; m != nil && !hasLabels(m, render.Ledger(p.owner(), nil).Labels) {
			p.putLedger(false, "somebody edited its labels", func(*ledger.Ledger) {})
		}
		return done()
	}
	fresh := &ledger.Ledger{ClusterUID: p.Cluster.UID}
	if !p.anyNodeObject() {
		p.Snapshot = withLedger(p.Snapshot, fresh)
		p.write(plan.Write{Verb: plan.PutLedger, Ledger: fresh, Why: "the cluster is new"})
		return done()
	}
	rebuilt, missing := p.rebuildLedger()
	unrecorded := p.unrecorded()
	for _, w := range unrecorded {
		missing = append(missing, w.Name)
	}
	if len(missing) > 0 {
		p.Snapshot, p.lost = withLedger(p.Snapshot, rebuilt), true
		p.letDisksSpeak(unrecorded)
		p.block("Ledger", v1alpha1.BlockedDisksUnknown, missing, "the ledger is lost: waits until every node has reported its disk, then rebuilds it; missing: %s", list(missing, 5))
		return wait("the ledger is lost; waiting for what the disks of %s say", plural(len(missing), "node"))
	}
	p.write(plan.Write{Verb: plan.PutLedger, Ledger: rebuilt, Live: true, Why: "the ledger was lost"},
		plan.Write{Verb: plan.Event, EventType: "Warning", Reason: v1alpha1.ReasonLedgerLost, Why: "the ledger was lost; it was rebuilt from the records and the disks"})
	return act("rebuilding the ledger")
}

// letDisksSpeak makes pods, and what they need: a disk says what it holds through a pod. By a spec that is refused no record is made, changed or let go.
func (p *pass) letDisksSpeak(unrecorded []render.Wanted) {
	sharedObjects(p)
	if p.checkSettings() == nil && p.checkSpec() == nil {
		_ = p.checkNodes() // what is refused is said when the ledger is there again
		p.correct()
		for _, n := range p.Records() {
			if n.Record.DeletionTimestamp != nil && n.Record.Spec.Member == nil { // who is a member is known without its disk
				p.releaseRecord(n)
			}
		}
		for _, w := range unrecorded {
			p.write(plan.Write{Verb: plan.Create, Object: render.Record(p.owner(), w, p.claimsOf(p.Nodes[w.Name], w), p.Cluster.Spec.AdoptedUID()), Why: "its disk is to say what it holds"})
		}
	}
	volumesAndPods(p)
}

// anyNodeObject says whether anything exists that only a cluster which once had a ledger can have.
func (p *pass) anyNodeObject() bool {
	for _, n := range p.Nodes {
		if n.Record != nil || n.Pod != nil {
			return true
		}
		for _, c := range n.Claims {
			if c.Claim != nil && c.Claim.Labels[v1alpha1.LabelClusterUID] == string(p.Cluster.UID) {
				return true
			}
		}
	}
	return false
}

// unrecorded are the nodes of the spec that have a volume or a pod of this cluster and no record: what they are, their disks alone know.
func (p *pass) unrecorded() []render.Wanted {
	var out []render.Wanted
	for _, w := range p.wanted {
		n := p.Nodes[w.Name]
		if n == nil || n.Record != nil {
			continue
		}
		bound := func(c *facts.Claim) bool {
			return c.Bound() && c.Claim.Labels[v1alpha1.LabelClusterUID] == string(p.Cluster.UID)
		}
		if n.Pod != nil || slices.ContainsFunc(slices.Collect(maps.Values(n.Claims)), bound) {
			out = append(out, w)
		}
	}
	return out
}

// rebuildLedger makes a ledger from records and disks. A datacenter is formed if any of its nodes is a member by its record or its disk, or let clients
// in. Tickets that are out, and members that no client was let to, are a formation that goes on. Members by their disks alone are written down as such; their
// datacenter serves clients as openDatacenters says, and is otherwise one that is formed, or added to those that serve. Nodes of which nothing is known
// are returned: an empty disk must have said so itself, unless there never was one.
func (p *pass) rebuildLedger() (*ledger.Ledger, []string) {
	// The number of steps is lost too. Taking the time keeps the ids of steps unique.
	l := &ledger.Ledger{ClusterUID: p.Cluster.UID, Steps: p.now.Unix(), Members: map[string]string{}}
	step := &ledger.Step{
		ID: p.stepID(l.Steps), Kind: ledger.FormRing, Stage: ledger.StageTickets, Generation: p.Cluster.Generation, OpenedAt: p.now, StageSince: p.now,
		Tickets: map[string]ledger.Ticket{},
	}
	formed, datacenters := map[string]bool{}, map[string]bool{}
	var missing []string
	var joining *ledger.Step
	forming, adopted := false, p.adoptionBegun()
	byDisk := map[string][]*facts.Agent{} // of each datacenter, members that no record knows
	for _, n := range p.Records() {
		agent, spec := n.CurrentAgent(), n.Record.Spec
		l.Adopted = orElse(l.Adopted, spec.Cluster.AdoptedUID)
		for _, r := range spec.Replaced {
			l.Replaced = append(l.Replaced, r.HostID)
		}
		switch {
		case spec.Member != nil:
			l.Members[n.Name] = spec.Member.HostID
			formed[spec.Datacenter] = true
			forming = forming || spec.ClientTraffic != v1alpha1.TrafficOpen
			l.TrafficAllowed = l.TrafficAllowed || spec.ClientTraffic != v1alpha1.TrafficClosed
		case agent == nil && p.neverHadDisk(n):
			continue
		case agent == nil:
			missing = append(missing, n.Name)
			continue
		case !adopted && l.Adopted != "" && agent.Owner != nil && agent.Owner.ClusterUID == l.Adopted:
			continue // its disk is still to be taken over
		case gaveBack(n) && agent.Disk != v1alpha1.DiskMember:
			if p.describesNode(n.Name) {
				l.LeftBehind = append(l.LeftBehind, n.Name)
			}
			continue
		case spec.Join != nil && spec.Join.Mode == v1alpha1.JoinBootstrap:
			joining = p.joinOf(n)
			continue
		case spec.Join != nil:
			step.ID = stepOfIntent(spec.Join.ID)
			step.Tickets[n.Name] = ledger.Ticket{Tokens: spec.Join.Tokens}
			datacenters[spec.Datacenter] = true
			forming = true
			continue
		case agent.Disk == v1alpha1.DiskMember || agent.TrafficOpened:
			l.Members[n.Name] = agent.HostID
			formed[spec.Datacenter] = true
			l.TrafficAllowed = l.TrafficAllowed || agent.TrafficOpened
			byDisk[spec.Datacenter] = append(byDisk[spec.Datacenter], agent)
		default:
			continue
		}
		step.Tickets[n.Name] = ledger.Ticket{}
		datacenters[spec.Datacenter] = true
	}
	l.Formed = slices.Sorted(maps.Keys(formed))
	open := p.openDatacenters(byDisk)
	for dc := range byDisk {
		forming = forming || !open[dc]
	}
	closed := slices.DeleteFunc(slices.Sorted(maps.Keys(datacenters)), func(dc string) bool { return open[dc] })
	switch {
	case len(open) > 0 && forming && len(closed) == 1:
		p.rebuildAddition(l, step, closed[0])
	case forming:
		if len(open) > 0 {
			step.Kind = ledger.AdoptRing // the system keyspaces are set before the first node opens
		}
		step.Datacenters = slices.Sorted(maps.Keys(datacenters))
		step.Seeds = p.chooseSeeds(step.Wave(), nil)
		if len(formed) > 0 {
			step.Stage = ledger.StageFormed
			for name := range step.Tickets {
				if l.Members[name] == "" {
					l.Members[name] = p.Nodes[name].Agent.HostID
				}
			}
		}
		l.Step = step
	default:
		l.Step = joining
	}
	if l.Step != step && len(l.Members) > 1 {
		// Whether any of them holds what it no longer owns was written in the lost one.
		l.Cleanup, l.SystemKeyspaces = sortedKeys(l.Members), true
	}
	return l, missing
}

// neverHadDisk says that no JVM of a node can ever have run: the claims that its record pins are there and never had a volume.
func (*pass) neverHadDisk(n *facts.Node) bool {
	if n.Record.Spec.Join != nil || n.Record.Status.HostID != "" || len(n.Record.Spec.Claims) == 0 {
		return false
	}
	for _, pin := range n.Record.Spec.Claims {
		if c := n.Claims[pin.Volume]; !c.Unbound() || c.Claim.UID != pin.UID {
			return false
		}
	}
	return true
}

// adoptionBegun says that disks of the earlier cluster have been taken over: all nodes become members by their records then, one after the other.
func (p *pass) adoptionBegun() bool {
	return slices.ContainsFunc(p.Records(), func(n *facts.Node) bool { return n.Record.Spec.Member != nil })
}

// openDatacenters are those of which the record of any node lets clients in, or of which two members that no record knows, or the only one, have let some in: one
// of several may be that which sets the system keyspaces before clients come.
func (p *pass) openDatacenters(byDisk map[string][]*facts.Agent) map[string]bool {
	out := map[string]bool{}
	for _, n := range p.Records() {
		if n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen {
			out[n.Record.Spec.Datacenter] = true
		}
	}
	for dc, agents := range byDisk {
		opened := 0
		for _, a := range agents {
			if a.TrafficOpened {
				opened++
			}
		}
		if opened >= min(2, len(agents)) {
			out[dc] = true
		}
	}
	return out
}

// rebuildAddition makes the step out of what is found of a datacenter that is being added: none of its nodes lets clients in, and those of others do. What was
// extended or rebuilt already is done again, which changes nothing.
func (p *pass) rebuildAddition(l *ledger.Ledger, step *ledger.Step, datacenter string) {
	step.Kind, step.Stage, step.Datacenters = ledger.AddDatacenter, ledger.StageKeyspaces, []string{datacenter}
	maps.DeleteFunc(step.Tickets, func(name string, _ ledger.Ticket) bool { return p.Nodes[name].Record.Spec.Datacenter != datacenter })
	wave := step.Wave()
	switch {
	case slices.ContainsFunc(wave, func(name string) bool { return l.Members[name] == "" }):
		step.Stage = ledger.StageTickets
		l.Formed = slices.DeleteFunc(l.Formed, func(dc string) bool { return dc == datacenter })
		step.Seeds = p.chooseSeeds(slices.Concat(sortedKeys(l.Members), wave), p.presentSeeds())
	case slices.ContainsFunc(wave, func(name string) bool { return p.Nodes[name].Record.Spec.Member == nil }):
		step.Stage = ledger.StageFormed
	}
	l.Step = step
}

// joinOf is the step of a node that has a ticket to join a ring which serves clients.
func (p *pass) joinOf(n *facts.Node) *ledger.Step {
	ticket := n.Record.Spec.Join
	return &ledger.Step{
		ID: stepOfIntent(ticket.ID), Kind: ledger.JoinNode, Stage: ledger.StageTickets, Generation: p.Cluster.Generation, OpenedAt: p.now, StageSince: p.now,
		Datacenters: []string{n.Record.Spec.Datacenter}, Tickets: map[string]ledger.Ticket{n.Name: {Tokens: ticket.Tokens}},
	}
}

// gaveBack says that the agent of a node has acknowledged that the ticket which the record has is withdrawn.
func gaveBack(n *facts.Node) bool {
	ticket, status := n.Record.Spec.Join, n.Record.Status.Join
	return ticket != nil && status != nil && status.ID == ticket.ID && status.WithdrawnAt != nil
}

func withLedger(s *facts.Snapshot, l *ledger.Ledger) *facts.Snapshot {
	out := *s
	out.Ledger = l
	return &out
}

// putLedger writes a changed ledger.
func (p *pass) putLedger(live bool, why string, change func(*ledger.Ledger)) {
	l := p.Ledger.Copy()
	change(l)
	p.Ledger = l
	for i := range p.plan.Writes {
		if w := &p.plan.Writes[i]; w.Verb == plan.PutLedger {
			w.Ledger, w.Live, w.Why = l, w.Live || live, w.Why+"; "+why
			return
		}
	}
	p.write(plan.Write{Verb: plan.PutLedger, Ledger: l, Live: live, Why: why})
}
