package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/ring/tokens"
)

// datacenters adds a datacenter to a ring that has data: its nodes join all at once, with nothing on them and closed to clients; then keyspaces are extended
// to it, its nodes are rebuilt from another datacenter and repaired, and only then clients come in. While one is not ready nodes join the others.
func datacenters(p *pass) result {
	if !p.canChange() {
		return done()
	}
	dc, names := p.newDatacenter()
	if dc == nil {
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true; datacenter %s is to be added", dc.Name)
	}
	if _, refusals := p.nextDatacenter(); len(refusals) > 0 {
		return p.refused(string(ledger.AddDatacenter), refusals)
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	tickets, err := chooseTokens([]tokens.Formation{p.formationOf(dc)}, p.anyView().Nodes())
	if err != nil {
		p.stall(v1alpha1.ReasonInvalidSpec, "tokens of datacenter %s cannot be chosen: %s", dc.Name, err)
		return stuck("no tokens")
	}
	if open := p.openBudgets(); len(open) > 0 {
		return wait("until evictions are refused: PodDisruptionBudget %s", list(open, 3))
	}
	p.openDatacenter(dc, names, tickets)
	return act("%s of datacenter %s get their tickets at once", plural(len(names), "node"), dc.Name)
}

// nextDatacenter is the one that is to be added next, and what speaks against it.
func (p *pass) nextDatacenter() (*v1alpha1.Datacenter, []guard.Refusal) {
	dc, names := p.newDatacenter()
	if dc == nil {
		return nil, nil
	}
	refusals := slices.Concat(p.ringRefuses(), guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: names}, guard.NewDatacenter...))
	if view := p.anyView(); view != nil {
		refusals = append(refusals, p.judgeDatacenter(dc, keyspacesOf(view))...)
	}
	return dc, refusals
}

// newDatacenter is the first datacenter of the spec that the ring does not have, with its nodes.
func (p *pass) newDatacenter() (*v1alpha1.Datacenter, []string) {
	for i := range p.Cluster.Spec.Datacenters {
		dc := &p.Cluster.Spec.Datacenters[i]
		if p.Ledger.IsFormed(dc.Name) {
			continue
		}
		var names []string
		for _, w := range p.wanted {
			if w.Datacenter == dc.Name {
				names = append(names, w.Name)
			}
		}
		return dc, names
	}
	return nil, nil
}

// source is the datacenter that a new one is rebuilt from: the one that the user names, or else the first one of the ring; nil if there is none.
func (p *pass) source(dc *v1alpha1.Datacenter) *v1alpha1.Datacenter {
	for i := range p.Cluster.Spec.Datacenters {
		from := &p.Cluster.Spec.Datacenters[i]
		if from.Name == dc.Name || !p.Ledger.IsFormed(from.Name) {
			continue
		}
		if dc.Extend == nil || dc.Extend.From == "" || dc.Extend.From == from.Name {
			return from
		}
	}
	return nil
}

func (p *pass) judgeDatacenter(dc *v1alpha1.Datacenter, keyspaces []ring.Keyspace) []guard.Refusal {
	adding := guard.Adding{Datacenter: dc, DatacenterName: render.DatacenterName(dc), Keyspaces: keyspaces}
	if from := p.source(dc); from != nil {
		adding.SourceDatacenter = render.DatacenterName(from)
	}
	return guard.Check(adding, guard.AddedDatacenter...)
}

func (p *pass) openDatacenter(dc *v1alpha1.Datacenter, names []string, tickets map[string]ledger.Ticket) {
	step := p.open(ledger.AddDatacenter, ledger.StageTickets, "datacenter "+dc.Name+" is added", func(l *ledger.Ledger) {
		l.Step.Datacenters, l.Step.Tickets, l.Step.Extension = []string{dc.Name}, tickets, p.extension(dc, p.anyView())
		l.Step.Seeds = p.chooseSeeds(slices.Concat(sortedKeys(l.Members), names), p.presentSeeds())
	})
	for _, name := range names {
		p.issueTicket(step, p.Nodes[name])
	}
	p.describe(step, 0, "%s of datacenter %s join at once", plural(len(names), "node"), dc.Name)
	p.event(corev1.EventTypeNormal, "AddingDatacenter", "%s of datacenter %s join at once", plural(len(names), "node"), dc.Name)
}

// extension is what a datacenter gets by the spec and the ring as they are now; nil if no member
// answers, the spec does not describe it, or nothing that it could be rebuilt from.
func (p *pass) extension(dc *v1alpha1.Datacenter, view *facts.Ring) *ledger.Extension {
	if dc == nil || view == nil {
		return nil
	}
	from := p.source(dc)
	if from == nil {
		return nil
	}
	return &ledger.Extension{
		Datacenter: render.DatacenterName(dc), Source: render.DatacenterName(from), Replicas: dc.PlannedReplicationFactor,
		Keyspaces: guard.Extended(dc, keyspacesOf(view)),
	}
}

// extendSystemKeyspaces gives the system keyspaces replicas in the datacenter.
func (p *pass) extendSystemKeyspaces(s *ledger.Step) result {
	x := s.Extension
	if x == nil {
		return p.extendAgain(s)
	}
	next := ledger.StageExtend
	if len(x.Keyspaces) == 0 {
		next = ledger.StageRebuild
	}
	replication := p.systemReplication()
	replication[x.Datacenter] = replicasOf(s, "")
	return p.alter(s, p.membersOutside(s), alteration{
		purpose: "system-keyspaces", kind: v1alpha1.OperationAlterSystemKeyspaces, arguments: &v1alpha1.OperationArguments{Replication: replication},
		next: next, words: "extends the system keyspaces to datacenter " + s.Datacenters[0],
	})
}

// extendAgain decides once more what the datacenter gets: the ledger in which it was written was lost.
func (p *pass) extendAgain(s *ledger.Step) result {
	x := p.extension(p.describes(s.Datacenters[0]), p.anyView())
	if x == nil {
		p.describe(s, 0, "datacenter %s is being added", s.Datacenters[0])
		return wait("until the spec has datacenter %s, and one that it can be rebuilt from, again, and a member answers", s.Datacenters[0])
	}
	p.putLedger(true, "what the datacenter gets", func(l *ledger.Ledger) { l.Step.Extension = x })
	return act("what datacenter %s gets is decided again: its ledger was lost", s.Datacenters[0])
}

// extendKeyspaces gives those of the user that are to come to the datacenter replicas there.
func (p *pass) extendKeyspaces(s *ledger.Step) result {
	arguments := &v1alpha1.OperationArguments{KeyspaceReplication: extensionOf(s, sortedKeys(s.Extension.Keyspaces))}
	return p.alter(s, p.membersOutside(s), alteration{
		purpose: "keyspaces", kind: v1alpha1.OperationAlterKeyspaces, arguments: arguments,
		next: ledger.StageRebuild, words: "extends keyspaces to datacenter " + s.Datacenters[0],
	})
}

// extensionOf is what keyspaces have at least once they are extended to the datacenter that a step adds.
func extensionOf(s *ledger.Step, keyspaces []string) []v1alpha1.KeyspaceReplication {
	out := make([]v1alpha1.KeyspaceReplication, len(keyspaces))
	for i, keyspace := range keyspaces {
		out[i] = v1alpha1.KeyspaceReplication{Keyspace: keyspace, Replication: map[string]int32{s.Extension.Datacenter: replicasOf(s, keyspace)}}
	}
	return out
}

// extendedKeyspaces are all that the datacenter which a step adds gets replicas of, sorted. The user may have named system keyspaces too.
func extendedKeyspaces(s *ledger.Step) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(sortedKeys(s.Extension.Keyspaces), distributedSystemKeyspaces))))
}

// replicasOf is how many replicas a keyspace gets in the datacenter that a step adds: never more than it has nodes.
func replicasOf(s *ledger.Step, keyspace string) int32 {
	replicas, own := s.Extension.Keyspaces[keyspace]
	if !own {
		replicas = s.Extension.Replicas
	}
	return min(replicas, int32(len(s.Wave()))) //nolint:gosec // at most thousands
}

// membersOutside are the members outside of the datacenter that is being added.
func (p *pass) membersOutside(s *ledger.Step) []string {
	return slices.DeleteFunc(slices.Clone(p.members()), func(name string) bool { return slices.Contains(s.Datacenters, p.datacenterOf(name)) })
}

// rebuild has each node of the datacenter copy what it is to hold, once it knows what that is: one node of each rack at a time.
func (p *pass) rebuild(s *ledger.Step) result {
	arguments := &v1alpha1.OperationArguments{SourceDatacenter: s.Extension.Source, KeyspaceReplication: extensionOf(s, extendedKeyspaces(s))}
	words := "datacenter " + s.Datacenters[0] + " is rebuilt"
	if r, over := p.inTurn(s, "rebuild", p.rows(s.Wave()), v1alpha1.OperationRebuild, arguments, words); !over {
		return r
	}
	p.putLedger(false, words, func(l *ledger.Ledger) { advance(l.Step, ledger.StageOperations, p.now) })
	return act("%s", words)
}

// repairExtended repairs what was extended, one node of each rack at a time: writes that were lost while the nodes were rebuilt come to them before clients do.
func (p *pass) repairExtended(s *ledger.Step) result {
	keyspaces := extendedKeyspaces(s)
	arguments := &v1alpha1.OperationArguments{Keyspaces: keyspaces, KeyspaceReplication: extensionOf(s, keyspaces), Full: true}
	words := "what was extended to datacenter " + s.Datacenters[0] + " is repaired"
	if r, over := p.inTurn(s, "repair", p.rows(s.Wave()), v1alpha1.OperationRepair, arguments, words); !over {
		return r
	}
	p.putLedger(false, words, func(l *ledger.Ledger) {
		l.Replication = p.usedReplication()
		advance(l.Step, ledger.StageOpen, p.now)
	})
	return act("%s", words)
}

// rows divide nodes into groups that have at most one node of each rack. A node of which nobody knows the rack just now, since its record is being made again, is
// in a group of its own, the last: nothing is over without it.
func (p *pass) rows(names []string) [][]string {
	var out, unknown [][]string
	at := map[[2]string]int{}
	for _, name := range names {
		record := recordOf(p.Nodes[name])
		if record == nil {
			unknown = append(unknown, []string{name})
			continue
		}
		rack := [2]string{record.Spec.Datacenter, record.Spec.Rack}
		if at[rack] == len(out) {
			out = append(out, nil)
		}
		out[at[rack]] = append(out[at[rack]], name)
		at[rack]++
	}
	return append(out, unknown...)
}
