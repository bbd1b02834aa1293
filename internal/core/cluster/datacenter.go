package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
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
		return p.refused(string(facts.StepAddDatacenter), refusals)
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	tickets, err := p.datacenterTickets(dc, membersOf(p.anyView()))
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
	refusals := slices.Concat(p.ringRefuses(), guard.Check(p.Snapshot, names, guard.NewDatacenter...))
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
	out := slices.Concat(
		guard.Named("clients_stay_in_their_datacenter", guard.ClientsStayLocal(dc)),
		guard.Named("nothing_is_placed_there_yet", guard.NothingIsPlacedThere(render.DatacenterRingName(dc), keyspaces)),
	)
	if dc.Extend != nil && (len(dc.Extend.Keyspaces) > 0 || dc.Extend.From != "") {
		from, fromName := p.source(dc), ""
		if from != nil {
			fromName = render.DatacenterRingName(from)
		}
		out = append(out, guard.Named("what_is_to_be_extended_exists", guard.ExtensionIsPossible(dc, dc.Extend.From, from != nil, fromName, keyspaces))...)
	}
	return out
}

func (p *pass) datacenterTickets(dc *v1alpha1.Datacenter, members []ring.Node) (map[string]facts.Ticket, error) {
	nodes, err := tokens.Form([]tokens.Formation{p.formationOf(dc)}, members)
	if err != nil {
		return nil, err
	}
	out := make(map[string]facts.Ticket, len(nodes))
	for _, n := range nodes {
		out[n.ID] = facts.Ticket{Tokens: formatTokens(n.Tokens)}
	}
	return out, nil
}

func (p *pass) openDatacenter(dc *v1alpha1.Datacenter, names []string, tickets map[string]facts.Ticket) {
	var step *facts.OpenStep
	p.putLedger(true, "datacenter "+dc.Name+" is added", func(l *facts.Ledger) {
		l.Steps++
		step = &facts.OpenStep{
			ID: p.stepID(l.Steps), Kind: facts.StepAddDatacenter, Stage: facts.StageTickets, Generation: p.Cluster.Generation, OpenedAt: p.now, StageSince: p.now,
			Datacenters: []string{dc.Name}, Tickets: tickets, Seeds: p.chooseSeeds(slices.Concat(sortedKeys(l.Members), names), p.presentSeeds()),
		}
		l.Step = step
	})
	for _, name := range names {
		p.issueTicket(step, p.Nodes[name])
	}
	p.describe(step, 0, "%s of datacenter %s join at once", plural(len(names), "node"), dc.Name)
	p.event(corev1.EventTypeNormal, "AddingDatacenter", "%s of datacenter %s join at once", plural(len(names), "node"), dc.Name)
}

// addDatacenter continues the addition of a datacenter.
func (p *pass) addDatacenter(s *facts.OpenStep) result {
	switch s.Stage {
	case facts.StageTickets:
		return p.awaitRing(s)
	case facts.StageFormed:
		return p.recordMembers(s)
	case facts.StageKeyspaces:
		return p.extendSystemKeyspaces(s)
	case facts.StageExtend:
		return p.extendKeyspaces(s)
	case facts.StageRebuild:
		return p.rebuild(s)
	case facts.StageOperations:
		return p.repairExtended(s)
	case facts.StageOpen:
		return p.letClientsIn(s)
	default:
		return p.unknownStage(s)
	}
}

// extendSystemKeyspaces gives the system keyspaces replicas in the datacenter.
func (p *pass) extendSystemKeyspaces(s *facts.OpenStep) result {
	dc := p.describes(s.Datacenters[0])
	if dc == nil {
		return p.goneFromSpec(s)
	}
	next := facts.StageExtend
	if len(extendedKeyspaces(dc)) == 0 {
		next = facts.StageRebuild
	}
	return p.alter(s, "system-keyspaces", v1alpha1.OperationAlterSystemKeyspaces, &v1alpha1.OperationArguments{Replication: p.wantedSystemReplication()}, next)
}

// extendKeyspaces gives those of the user that are to come to the datacenter replicas there.
func (p *pass) extendKeyspaces(s *facts.OpenStep) result {
	dc := p.describes(s.Datacenters[0])
	if dc == nil {
		return p.goneFromSpec(s)
	}
	arguments := &v1alpha1.OperationArguments{}
	for _, keyspace := range extendedKeyspaces(dc) {
		arguments.KeyspaceReplication = append(arguments.KeyspaceReplication, v1alpha1.KeyspaceReplication{
			Keyspace: keyspace, Replication: map[string]int32{render.DatacenterRingName(dc): min(dc.ReplicationFactor, int32(len(s.Wave())))}, //nolint:gosec // at most thousands
		})
	}
	return p.alter(s, "keyspaces", v1alpha1.OperationAlterKeyspaces, arguments, facts.StageRebuild)
}

// alter has one member outside of the datacenter alter keyspaces, and goes on to the next stage.
func (p *pass) alter(s *facts.OpenStep, purpose string, kind v1alpha1.OperationType, arguments *v1alpha1.OperationArguments, next facts.Stage) result {
	name := p.sourceNode(s)
	if name == "" {
		return wait("for a node outside of the datacenter that can be administered")
	}
	o := p.operate(s, purpose, []string{name}, kind, arguments)
	p.describe(s, 0, "node %s extends keyspaces to datacenter %s: %s", name, s.Datacenters[0], list(o.waiting, 1))
	if len(o.finished) == 0 {
		return ifWritten(o, "node %s extends keyspaces to datacenter %s", name, s.Datacenters[0])
	}
	if p.clearOperations([]string{name}) {
		return act("node %s has extended keyspaces", name)
	}
	p.putLedger(false, "keyspaces are extended", func(l *facts.Ledger) { advance(l.Step, next, p.now) })
	return act("keyspaces are extended to datacenter %s", s.Datacenters[0])
}

func extendedKeyspaces(dc *v1alpha1.Datacenter) []string {
	if dc.Extend == nil {
		return nil
	}
	return slices.Sorted(slices.Values(dc.Extend.Keyspaces))
}

// sourceNode is a member outside of the datacenter that is being added: the one that has an operation of the step already, else the first that is up.
func (p *pass) sourceNode(s *facts.OpenStep) string {
	outside := slices.DeleteFunc(sortedKeys(p.Ledger.Members), func(name string) bool { return slices.Contains(s.Datacenters, p.datacenterOf(name)) })
	for _, name := range outside {
		if n := p.Nodes[name]; recordOf(n) != nil && n.Record.Spec.Operation != nil && stepOfIntent(n.Record.Spec.Operation.ID) == s.ID {
			return name
		}
	}
	if up := p.upAmong(outside); len(up) > 0 {
		return up[0]
	}
	return ""
}

// rebuild has each node of the datacenter copy what it is to hold: one node of each rack at a time.
func (p *pass) rebuild(s *facts.OpenStep) result {
	dc := p.describes(s.Datacenters[0])
	if dc == nil || p.source(dc) == nil {
		return p.goneFromSpec(s)
	}
	arguments := &v1alpha1.OperationArguments{SourceDatacenter: render.DatacenterRingName(p.source(dc))}
	return p.onRowsOfRacks(s, "rebuild", v1alpha1.OperationRebuild, arguments, func() {
		p.putLedger(false, "its nodes are rebuilt", func(l *facts.Ledger) { advance(l.Step, facts.StageOperations, p.now); l.Step.Tries = nil })
	})
}

// repairExtended repairs what was extended, one node of each rack at a time: writes that were lost while the nodes were rebuilt come to them before clients do.
func (p *pass) repairExtended(s *facts.OpenStep) result {
	dc := p.describes(s.Datacenters[0])
	if dc == nil {
		return p.goneFromSpec(s)
	}
	arguments := &v1alpha1.OperationArguments{Keyspaces: slices.Concat(extendedKeyspaces(dc), distributedSystemKeyspaces), Full: true}
	return p.onRowsOfRacks(s, "repair", v1alpha1.OperationRepair, arguments, func() {
		p.putLedger(false, "what was extended is repaired", func(l *facts.Ledger) {
			l.Replication = p.usedReplication()
			advance(l.Step, facts.StageOpen, p.now)
		})
	})
}

// onRowsOfRacks has the nodes of a step carry out an operation, one node of each rack at a time.
func (p *pass) onRowsOfRacks(s *facts.OpenStep, purpose string, kind v1alpha1.OperationType, arguments *v1alpha1.OperationArguments, then func()) result {
	finished := 0
	for _, row := range p.rows(s.Wave()) {
		o := p.operate(s, purpose, row, kind, arguments)
		finished += len(o.finished)
		if len(o.finished) < len(row) {
			p.describe(s, finished, "%s of datacenter %s: %s", kind, s.Datacenters[0], list(o.waiting, 3))
			return ifWritten(o, "%s on %s", kind, list(row, 3))
		}
	}
	p.describe(s, finished, "%s of datacenter %s is over", kind, s.Datacenters[0])
	then()
	return act("%s of datacenter %s is over", kind, s.Datacenters[0])
}

// rows divide nodes into groups that have at most one node of each rack.
func (p *pass) rows(names []string) [][]string {
	var out [][]string
	at := map[[2]string]int{}
	for _, name := range names {
		record := recordOf(p.Nodes[name])
		if record == nil {
			continue // it is being made again
		}
		rack := [2]string{record.Spec.Datacenter, record.Spec.Rack}
		if at[rack] == len(out) {
			out = append(out, nil)
		}
		out[at[rack]] = append(out[at[rack]], name)
		at[rack]++
	}
	return out
}

// goneFromSpec is said of a step whose datacenter, or its source, the spec no longer has.
func (p *pass) goneFromSpec(s *facts.OpenStep) result {
	p.describe(s, 0, "datacenter %s is being added", s.Datacenters[0])
	return wait("until the spec has datacenter %s, and the one it is rebuilt from, again", s.Datacenters[0])
}
