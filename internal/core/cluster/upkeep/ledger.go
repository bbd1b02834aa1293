package upkeep

import (
	"cmp"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// KeepLedger sees to it that there is one. A cluster without any object gets an empty one. Where it
// is gone although the cluster has objects it was lost, and with it the knowledge of what was
// begun: nothing is decided until it is rebuilt from the records and from what the disks say.
func (k *Keeper) KeepLedger() plan.Result {
	if k.LedgerProblem != "" {
		k.draft.Stall(v1alpha1.ReasonNameTaken, "ConfigMap %s cannot be used as the ledger of this cluster: %s. Put "+
			"its content back from a backup; or delete it, and it is rebuilt from the records and from what the "+
			"disks say", v1alpha1.LedgerName(k.Cluster.Name), k.LedgerProblem)
		return plan.Stopped("the ledger cannot be read")
	}
	if k.Ledger != nil {
		if m := k.Shared.ConfigMaps[v1alpha1.LedgerName(k.Cluster.Name)]; m != nil &&
			!render.Within(render.Ledger(k.Owner(), nil).Labels, m.Labels) {
			k.putLedger(false, "somebody edited its labels", func(*ledger.Ledger) {})
		}
		return k.noteMembers()
	}
	fresh := &ledger.Ledger{ClusterUID: k.Cluster.UID}
	if !k.anyNodeObject() {
		k.View = k.WithLedger(fresh)
		k.draft.Write(plan.Write{Verb: plan.PutLedger, Ledger: fresh, Why: "the cluster is new"})
		return plan.Nothing()
	}
	rebuilt, missing := k.rebuildLedger()
	unrecorded := k.unrecorded()
	for _, w := range unrecorded {
		missing = append(missing, w.Name)
	}
	if len(missing) > 0 {
		k.View = k.Without(rebuilt)
		k.letDisksSpeak(unrecorded)
		k.draft.Block("Ledger", v1alpha1.BlockedDisksUnknown, missing,
			"the ledger is lost: waits until every node has reported its disk, then rebuilds it; missing: %s",
			words.List(missing, 5))
		return plan.Waiting("the ledger is lost; waiting for what the disks of %s say",
			words.Plural(len(missing), "node"))
	}
	k.draft.Write(plan.Write{Verb: plan.PutLedger, Ledger: rebuilt, Live: true, Why: "the ledger was lost"},
		plan.Write{Verb: plan.Event, EventType: "Warning", Reason: v1alpha1.ReasonLedgerLost,
			Why: "the ledger was lost; it was rebuilt from the records and the disks"})
	return plan.Acting("rebuilding the ledger")
}

// noteMembers adds to the ledger those that it lacks: it was lost, and rebuilt while neither a
// record nor the spec told of them. A member sees them as one, and their disks are of this cluster.
func (k *Keeper) noteMembers() plan.Result {
	ring, known, found := k.AnyRing(), slices.Collect(maps.Values(k.Ledger.Members)), map[string]string{}
	if s := k.Ledger.Step; ring == nil || s != nil && (s.Kind == ledger.FormRing || s.Kind == ledger.AdoptRing) {
		return plan.Nothing()
	}
	for _, n := range k.Records() {
		agent, spec := n.CurrentAgent(), &n.Record.Spec
		if agent == nil || agent.Ring == nil || agent.Ring.Mode != facts.ModeNormal ||
			agent.Disk != v1alpha1.DiskMember || spec.State != v1alpha1.StateRunning ||
			spec.Member != nil || spec.Join != nil ||
			k.Ledger.Members[n.Name] != "" || slices.Contains(known, agent.HostID) ||
			slices.Contains(k.Ledger.Replaced, agent.HostID) ||
			slices.ContainsFunc(k.Ledger.Open(), func(s *ledger.Step) bool { return s.Has(n.Name) }) {
			continue
		}
		if seen, is := ring.ByHostID(agent.HostID); is && seen.Live && seen.Member() {
			found[n.Name] = agent.HostID
		}
	}
	if len(found) == 0 {
		return plan.Nothing()
	}
	names := slices.Sorted(maps.Keys(found))
	k.putLedger(true, words.List(names, 3)+" is a member, and the ledger lacked it", func(l *ledger.Ledger) {
		maps.Copy(l.Members, found)
		l.Cleanup = slices.Compact(slices.Sorted(slices.Values(slices.Concat(l.Cleanup, names))))
	})
	return plan.Acting("the ledger lacked %s, which a member sees", words.List(names, 3))
}

// letDisksSpeak makes pods, and what they need: a disk says what it holds through a pod. By a spec
// that is refused no record is made, changed or let go.
func (k *Keeper) letDisksSpeak(unrecorded []render.Wanted) {
	k.SharedObjects(false)
	if k.checkSettings() == nil && k.checkSpec() == nil {
		_ = k.checkNodes() // what is refused is said when the ledger is there again
		k.correct()
		for _, n := range k.Records() {
			// who is a member is known without its disk
			if n.Record.DeletionTimestamp != nil && n.Record.Spec.Member == nil {
				k.releaseRecord(n)
			}
		}
		for _, w := range unrecorded {
			k.draft.Write(plan.Write{Verb: plan.Create, Object: render.Record(k.Owner(), w, k.ClaimsOf(w), k.Adopts()),
				Why: "its disk is to say what it holds"})
		}
	}
	k.VolumesAndPods()
}

// anyNodeObject says whether anything exists that only a cluster which once had a ledger can have.
func (k *Keeper) anyNodeObject() bool {
	for _, n := range k.Nodes {
		if n.Record != nil || n.Pod != nil {
			return true
		}
		for _, c := range n.Claims {
			if c.Claim != nil && c.Claim.Labels[v1alpha1.LabelClusterUID] == string(k.Cluster.UID) {
				return true
			}
		}
	}
	return false
}

// unrecorded are the nodes of the spec that have a volume or a pod of this cluster and no record:
// what they are, their disks alone know.
func (k *Keeper) unrecorded() []render.Wanted {
	var out []render.Wanted
	for _, w := range k.Wanted {
		n := k.Nodes[w.Name]
		if n == nil || n.Record != nil {
			continue
		}
		bound := func(c *facts.Claim) bool {
			return c.Bound() && c.Claim.Labels[v1alpha1.LabelClusterUID] == string(k.Cluster.UID)
		}
		if n.Pod != nil || slices.ContainsFunc(slices.Collect(maps.Values(n.Claims)), bound) {
			out = append(out, w)
		}
	}
	return out
}

// rebuildLedger makes a ledger from records and disks. A datacenter is formed if any of its nodes
// is a member by its record or its disk, or let clients in. Tickets that are out, and members that
// no client was let to, are a formation that goes on. Members by their disks alone are written down
// as such; their datacenter serves clients as openDatacenters says, and is otherwise one that is
// formed, or added to those that serve. Nodes of which nothing is known are returned: an empty disk
// must have said so itself, unless there never was one.
func (k *Keeper) rebuildLedger() (*ledger.Ledger, []string) {
	// The number of steps is lost too. Taking the time keeps the ids of steps unique.
	l := &ledger.Ledger{ClusterUID: k.Cluster.UID, Steps: k.Now.Unix(), Ring: ledger.Ring{Members: map[string]string{}}}
	step := &ledger.Step{
		ID: procedure.StepID(k.View, l.Steps), Kind: ledger.FormRing, Class: ledger.Topology,
		Stage:      ledger.StageTickets,
		Generation: k.Cluster.Generation, OpenedAt: k.Now, StageSince: k.Now,
	}
	tickets := ticket.State{Tokens: map[string][]string{}}
	// Of members that were removed, no record tells.
	if m := k.Shared.ConfigMaps[v1alpha1.SeedsName(k.Cluster.Name)]; m != nil && facts.Owned(m, string(k.Cluster.UID)) {
		l.Replaced = render.ReplacedIn(m)
	}
	formed, datacenters := map[string]bool{}, map[string]bool{}
	var missing []string
	var joining *ledger.Step
	forming, adopted := false, k.adoptionBegun()
	closed, alone := k.closedDatacenters(), k.stoppedAlone()
	byDisk := map[string][]*facts.Agent{} // of each datacenter, members that no record knows
	for _, n := range k.Records() {
		agent, spec := n.CurrentAgent(), n.Record.Spec
		l.Adopted = cmp.Or(l.Adopted, spec.Cluster.AdoptedUID)
		for _, r := range spec.Replaced {
			l.Replaced = append(l.Replaced, r.HostID)
		}
		switch {
		case spec.State == v1alpha1.StateDecommissioned:
			continue // it has left
		case spec.Member != nil:
			l.Members[n.Name] = spec.Member.HostID
			formed[spec.Datacenter] = true
			if closed[spec.Datacenter] || alone[spec.Datacenter] {
				continue
			}
			// one that replaces a member is closed until it has
			forming = forming || spec.ClientTraffic != v1alpha1.TrafficOpen && spec.Join == nil && !k.asksFirst(n)
			l.TrafficAllowed = l.TrafficAllowed || spec.ClientTraffic != v1alpha1.TrafficClosed
		case agent == nil && assess.NeverHadDisk(n):
			continue
		case agent == nil:
			missing = append(missing, n.Name)
			continue
		case !adopted && l.Adopted != "" && agent.Owner != nil && agent.Owner.ClusterUID == l.Adopted:
			continue // its disk is still to be taken over
		case agent.Disk == v1alpha1.DiskLeft:
			continue // a volume that a node has left behind
		case assess.HasWithdrawn(n) && agent.Disk != v1alpha1.DiskMember:
			if k.Of(n.Name).Wanted {
				l.Excluded = append(l.Excluded, n.Name)
			}
			continue
		case spec.Join != nil && spec.Join.Mode == v1alpha1.JoinBootstrap:
			joining = ticket.LostJoin(k.View, n)
			continue
		case spec.Join != nil:
			step.ID = ledger.OfIntent(spec.Join.ID)
			tickets.Add(n.Name, spec.Join)
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
		tickets.Tokens[n.Name] = nil
		datacenters[spec.Datacenter] = true
	}
	l.Replaced = slices.Compact(slices.Sorted(slices.Values(l.Replaced)))
	l.Formed, l.Closed = slices.Sorted(maps.Keys(formed)), slices.Sorted(maps.Keys(closed))
	for _, dc := range slices.Sorted(maps.Keys(alone)) {
		// Otherwise it is stopped again, which changes nothing.
		if spec := k.Datacenter(dc); spec == nil || !spec.Stopped {
			l.StoppedDatacenters = append(l.StoppedDatacenters, ledger.StoppedDatacenter{Name: dc, Since: k.Now.UTC()})
		}
	}
	open := k.openDatacenters(byDisk)
	for dc := range byDisk {
		forming = forming || !open[dc]
	}
	if k.Cluster.Spec.Restore() != nil && forming && len(open) == 0 {
		missing = append(missing, k.rebuildRestore(&tickets, formed, datacenters)...)
	}
	added := slices.DeleteFunc(slices.Sorted(maps.Keys(datacenters)), func(dc string) bool { return open[dc] })
	switch {
	case k.wasStopping(closed, alone):
		step.Kind, step.Stage, step.Nodes = ledger.StopRing, ledger.StageClose, slices.Sorted(maps.Keys(l.Members))
		l.Step, l.TrafficAllowed = step, true
	case len(open) > 0 && forming && len(added) == 1:
		k.rebuildAddition(l, step, tickets, added[0])
	case forming:
		if len(open) > 0 {
			step.Kind = ledger.AdoptRing // the system keyspaces are set before the first node opens
		}
		step.Datacenters, step.Nodes = slices.Sorted(maps.Keys(datacenters)), slices.Sorted(maps.Keys(tickets.Tokens))
		tickets.Seeds = k.Seeds(step.Nodes, nil)
		step.State = ledger.Encoded(tickets)
		if len(formed) > 0 {
			step.Stage = ledger.StageFormed
			for _, name := range step.Nodes {
				if l.Members[name] == "" {
					l.Members[name] = k.Nodes[name].Agent.HostID
				}
			}
		}
		l.Step = step
	default:
		l.Step = joining
	}
	if (l.Step != step || step.Kind == ledger.StopRing) && len(l.Members) > 1 {
		// Whether any of them holds what it no longer owns was written in the lost one.
		l.Cleanup, l.SystemKeyspaces = slices.Sorted(maps.Keys(l.Members)), true
	}
	if k.Authentication() != "" && (l.HasRing() || l.Step != nil) {
		l.MadeWith = k.MadeWith()
	}
	k.rebuildAuthentication(l)
	if e := k.Encryption(); e != nil && l.MadeWith == nil && (l.HasRing() || l.Step != nil) {
		l.Encryption = &ledger.EncryptionStage{Stage: *e}
	}
	for _, n := range k.Records() {
		if l.Members[n.Name] != "" && config.SSTables(&n.Record.Spec.Configuration) != config.OldestSSTables {
			l.UpgradeSSTables = append(l.UpgradeSSTables, n.Name) // new ones are left as they are
		}
	}
	return l, missing
}

// rebuildRestore adds to a ring that is being made from a backup the nodes whose tickets were not
// written yet. It returns those of which it cannot be told what they have to get: a ring that
// formed without them would lack what only they have in the backup.
func (k *Keeper) rebuildRestore(tickets *ticket.State, formed, datacenters map[string]bool) []string {
	var lacks []string
	for _, w := range k.Wanted {
		if _, has := tickets.Tokens[w.Name]; !has {
			lacks = append(lacks, w.Name)
		}
	}
	known, has := k.Backup != nil && k.Backup.Description != nil, tickets.Restore
	switch {
	case len(formed) > 0 && has != nil && len(has.Datacenters) > 0:
		return nil // a node without a ticket has nothing that others lack
	case len(formed) > 0 && has == nil && !known:
		return slices.Sorted(maps.Keys(tickets.Tokens)) // they may lack rows
	case len(formed) == 0 && len(lacks) == 0 || !known:
		return lacks
	}
	all, err := ticket.Restored(k.View)
	if err != nil {
		return lacks
	}
	other := len(all.Restore.Datacenters) > 0
	if len(formed) > 0 {
		if has == nil && other {
			tickets.Restore, lacks = all.Restore, nil // they are loaded again, which changes nothing
		}
		return lacks
	}
	for name, has := range tickets.Tokens {
		if other && !slices.Equal(has, all.Tokens[name]) {
			return nil // the spec has changed since
		}
	}
	*tickets = all
	for _, dc := range k.WantedDatacenters() {
		datacenters[dc] = true
	}
	return nil
}

// closedDatacenters are those that give up keyspaces, or that the spec lacks, and of which a
// member's record lets no client in, while others do: they were closed, or were about to be. One
// that is added has tickets, or the spec has it with all its keyspaces.
func (k *Keeper) closedDatacenters() map[string]bool {
	out, opened := map[string]bool{}, false
	for _, n := range k.Records() {
		spec := n.Record.Spec
		opened = opened || spec.ClientTraffic == v1alpha1.TrafficOpen
		if spec.Member != nil && spec.ClientTraffic != v1alpha1.TrafficOpen &&
			spec.State != v1alpha1.StateDecommissioned && k.Withdraws(spec.Datacenter) {
			out[spec.Datacenter] = true
		}
	}
	for _, n := range k.Records() {
		if n.Record.Spec.Join != nil {
			delete(out, n.Record.Spec.Datacenter)
		}
	}
	if !opened && !k.Cluster.Spec.Stopped {
		return nil // none serves: they may be about to form
	}
	return out
}

// stoppedAlone are the datacenters of which a member is stopped whose record lets no client in, or
// that are to stop and of which a member's record does not, while another datacenter is open.
func (k *Keeper) stoppedAlone() map[string]bool {
	out, opened := map[string]bool{}, map[string]bool{}
	for _, n := range k.Records() {
		switch spec := n.Record.Spec; {
		case spec.Member == nil || spec.State == v1alpha1.StateDecommissioned:
		case spec.ClientTraffic == v1alpha1.TrafficOpen:
			opened[spec.Datacenter] = true
		case spec.ClientTraffic == v1alpha1.TrafficClosed && spec.Join == nil:
			dc := k.Datacenter(spec.Datacenter)
			if spec.State == v1alpha1.StateStopped || dc != nil && dc.Stopped {
				out[spec.Datacenter] = true
			}
		}
	}
	maps.DeleteFunc(out, func(dc string, _ bool) bool { return len(opened) == 0 || len(opened) == 1 && opened[dc] })
	return out
}

// wasStopping says that the ring is stopped as a whole, or was about to be: a member is stopped
// whose record lets no client in, or none does that was open to clients before and the spec says
// so. A node that a roll-out stops lets clients in, unless its datacenter is closed to them, and
// one that is still to be opened is never stopped.
func (k *Keeper) wasStopping(closedDatacenters, alone map[string]bool) bool {
	closed, opened := true, 0
	for _, n := range k.Records() {
		spec := n.Record.Spec
		if spec.Member == nil {
			continue
		}
		if spec.State == v1alpha1.StateStopped && spec.ClientTraffic == v1alpha1.TrafficClosed &&
			!closedDatacenters[spec.Datacenter] && !alone[spec.Datacenter] {
			return true
		}
		closed = closed && spec.ClientTraffic == v1alpha1.TrafficClosed
		if agent := n.CurrentAgent(); agent != nil && agent.TrafficOpened {
			opened++
		}
	}
	return k.Cluster.Spec.Stopped && closed && opened > 0
}

// adoptionBegun says that disks of the earlier cluster have been taken over: all nodes become
// members by their records then, one after the other.
func (k *Keeper) adoptionBegun() bool {
	return slices.ContainsFunc(k.Records(), func(n *facts.Node) bool { return n.Record.Spec.Member != nil })
}

// openDatacenters are those of which the record of any node lets clients in, or of which two
// members that no record knows, or the only one, have let some in: one of several may be that which
// sets the system keyspaces before clients come.
func (k *Keeper) openDatacenters(byDisk map[string][]*facts.Agent) map[string]bool {
	out := map[string]bool{}
	for _, n := range k.Records() {
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

// rebuildAddition makes the step out of what is found of a datacenter that is being added: none of
// its nodes lets clients in, and those of others do. What was extended or rebuilt already is done
// again, which changes nothing.
func (k *Keeper) rebuildAddition(l *ledger.Ledger, step *ledger.Step, tickets ticket.State, datacenter string) {
	step.Kind, step.Stage, step.Datacenters = ledger.AddDatacenter, ledger.StageKeyspaces, []string{datacenter}
	maps.DeleteFunc(tickets.Tokens, func(name string, _ []string) bool {
		return k.Nodes[name].Record.Spec.Datacenter != datacenter
	})
	step.Nodes = slices.Sorted(maps.Keys(tickets.Tokens))
	switch {
	case slices.ContainsFunc(step.Nodes, func(name string) bool { return l.Members[name] == "" }):
		step.Stage = ledger.StageTickets
		l.Formed = slices.DeleteFunc(l.Formed, func(dc string) bool { return dc == datacenter })
		tickets.Seeds = k.Seeds(slices.Concat(slices.Sorted(maps.Keys(l.Members)), step.Nodes), k.PresentSeeds())
	case slices.ContainsFunc(step.Nodes, func(name string) bool { return k.Nodes[name].Record.Spec.Member == nil }):
		step.Stage = ledger.StageFormed
	}
	step.State = ledger.Encoded(tickets)
	l.Step = step
}
