package addcenter

import (
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/ring/tokens"
	"helenus.io/helenus/internal/core/words"
)

// State of a step that adds a datacenter.
type State struct {
	ticket.State
	// Extension is nil in a ledger that was rebuilt.
	Extension *Extension `json:"extension,omitempty"`
}

// Extension is what a datacenter gets that is added to a ring, as the spec had it when the step was
// opened: a later edit changes nothing of it.
type Extension struct {
	// Datacenter that is added, and Source that it is rebuilt from, by their names in Cassandra.
	Datacenter string `json:"datacenter"`
	Source     string `json:"source"`
	// Keyspaces that are extended, with the replicas that they get, and Replicas of the system
	// keyspaces; of both at most one on each node.
	Keyspaces map[string]int32 `json:"keyspaces,omitempty"`
	Replicas  int32            `json:"replicas"`
}

// Add adds a datacenter: its nodes join all at once, with nothing on them and closed to clients;
// then keyspaces are extended to it, its nodes are rebuilt from another datacenter and repaired,
// and only then client traffic opens. While one is not ready nodes join the others.
func Add(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.AddDatacenter, Class: ledger.Topology, MovesRanges: true,
		Understands: procedure.Understands[State],
		Due:         func(v *assess.View) *procedure.Proposal { return due(v, rules) },
		Stages: []procedure.Stage{
			{Name: ledger.StageTickets, Run: awaitRing},
			{Name: ledger.StageFormed, Run: func(v *assess.View, s *procedure.Step) plan.Result {
				return ticket.RecordMembers(v, s, ledger.StageKeyspaces)
			}},
			{Name: ledger.StageKeyspaces, Run: extendSystemKeyspaces},
			{Name: ledger.StageExtend, Run: extendKeyspaces},
			{Name: ledger.StageRebuild, Run: rebuild},
			{Name: ledger.StageOperations, Run: repair},
			{Name: ledger.StageLogin, Run: func(v *assess.View, s *procedure.Step) plan.Result {
				return ticket.ProveLogin(v, s, ledger.StageOpen)
			}},
			{Name: ledger.StageOpen, Run: openTraffic},
		},
	}
}

func due(v *assess.View, rules guard.Rules) *procedure.Proposal {
	dc, names := newDatacenter(v)
	if dc == nil {
		return nil
	}
	p := &procedure.Proposal{
		What: "datacenter " + dc.Name + " is to be added",
		Refusals: slices.Concat(
			guard.Check(procedure.MemberNodes(v), rules.BeforeJoin...),
			guard.Check(procedure.TheseNodes(v, names...), rules.NewDatacenter...)),
		Open: func() (*procedure.Opening, []guard.Refusal) { return open(v, dc, names) },
	}
	if v.Ledger.SystemKeyspaces { // one that has left would be refused in their replication
		p.Wait = "until the system keyspaces have their replicas: " + p.What
	}
	if view := v.AnyRing(); view != nil {
		p.Refusals = append(p.Refusals, judge(v, dc, assess.KeyspacesOf(view), rules)...)
	}
	return p
}

// newDatacenter is the first datacenter of the spec that the ring does not have, with its nodes.
func newDatacenter(v *assess.View) (*v1alpha1.Datacenter, []string) {
	for i := range v.Cluster.Spec.Datacenters {
		dc := &v.Cluster.Spec.Datacenters[i]
		if v.Ledger.IsFormed(dc.Name) {
			continue
		}
		var names []string
		for _, w := range v.Wanted {
			if w.Datacenter == dc.Name {
				names = append(names, w.Name)
			}
		}
		return dc, names
	}
	return nil, nil
}

// source is the datacenter that a new one is rebuilt from: the one that the user names, or else the
// first one of the ring; nil if there is none.
func source(v *assess.View, dc *v1alpha1.Datacenter) *v1alpha1.Datacenter {
	for i := range v.Cluster.Spec.Datacenters {
		from := &v.Cluster.Spec.Datacenters[i]
		if from.Name == dc.Name || !v.Ledger.IsFormed(from.Name) {
			continue
		}
		named := dc.Extend != nil && dc.Extend.From != ""
		if named && dc.Extend.From == from.Name || !named && from.Withdraw == nil {
			return from
		}
	}
	return nil
}

func judge(v *assess.View, dc *v1alpha1.Datacenter, keyspaces []ring.Keyspace, rules guard.Rules) []guard.Refusal {
	adding := guard.Adding{Datacenter: dc, DatacenterName: render.DatacenterName(dc), Keyspaces: keyspaces}
	if from := source(v, dc); from != nil {
		adding.SourceDatacenter = render.DatacenterName(from)
	}
	return guard.Check(adding, rules.AddedDatacenter...)
}

func open(v *assess.View, dc *v1alpha1.Datacenter, names []string) (*procedure.Opening, []guard.Refusal) {
	chosen, err := ticket.Choose([]tokens.Formation{ticket.FormationOf(v, dc)}, v.AnyRing().Nodes())
	if err != nil {
		return nil, ticket.NoTokens("tokens of datacenter %s cannot be chosen: %s", dc.Name, err)
	}
	seeds := v.Seeds(slices.Concat(v.Members(), names), v.PresentSeeds())
	nodes := words.Plural(len(names), "node") + " of datacenter " + dc.Name
	return &procedure.Opening{
		Stage: ledger.StageTickets, Datacenters: []string{dc.Name}, Nodes: names,
		State: State{ticket.State{Tokens: chosen, Seeds: seeds}, extension(v, dc)},
		Why:   "datacenter " + dc.Name + " is added", Event: "AddingDatacenter",
		EventMessage: nodes + " join at once", ResultMessage: "issued join tickets to " + nodes,
	}, nil
}

// extension is what a datacenter gets by the spec and the ring as they are now; nil if no member
// answers, the spec does not describe it, or nothing that it could be rebuilt from.
func extension(v *assess.View, dc *v1alpha1.Datacenter) *Extension {
	view := v.AnyRing()
	if dc == nil || view == nil {
		return nil
	}
	from := source(v, dc)
	if from == nil {
		return nil
	}
	return &Extension{
		Datacenter: render.DatacenterName(dc), Source: render.DatacenterName(from),
		Replicas:  dc.PlannedReplicationFactor,
		Keyspaces: guard.Extended(dc, assess.KeyspacesOf(view)),
	}
}

// awaitRing waits until all nodes have joined. It takes out nodes that are abandoned, and excludes
// a straggler.
func awaitRing(v *assess.View, s *procedure.Step) plan.Result {
	if slices.ContainsFunc(s.Wave(), v.Abandoned) {
		return ticket.Abandon(v, s)
	}
	return ticket.AwaitRing(v, s)
}

// extendSystemKeyspaces gives the system keyspaces replicas in the datacenter.
func extendSystemKeyspaces(v *assess.View, s *procedure.Step) plan.Result {
	x := procedure.State[State](s).Extension
	if x == nil {
		return extendAgain(v, s)
	}
	replication := v.SystemReplication()
	replication[x.Datacenter] = x.replicas(s, "")
	next := ledger.StageExtend
	if len(x.Keyspaces) == 0 {
		next = ledger.StageOperations
	}
	return alter(v, s, procedure.Operation{
		Purpose: "system-keyspaces", Type: v1alpha1.OperationAlterSystemKeyspaces,
		Arguments: &v1alpha1.OperationArguments{Replication: replication},
	}, next, "extends the system keyspaces to datacenter "+s.Datacenters()[0])
}

// extendAgain decides once more what the datacenter gets: the ledger in which it was written was
// lost.
func extendAgain(v *assess.View, s *procedure.Step) plan.Result {
	dc := s.Datacenters()[0]
	x := extension(v, v.Datacenter(dc))
	if x == nil {
		s.Describe(0, "datacenter %s is being added", dc)
		return plan.Waiting("until the spec has datacenter %s, and one that it can be rebuilt from, again, and a "+
			"member answers", dc)
	}
	state := procedure.State[State](s)
	state.Extension = x
	s.Write(true, "what the datacenter gets",
		func(_ *ledger.Ring, own *ledger.Step) { own.State = ledger.Encoded(state) })
	return plan.Acting("what datacenter %s gets is decided again: its ledger was lost", dc)
}

// extendKeyspaces gives those of the user that are to come to the datacenter replicas there.
func extendKeyspaces(v *assess.View, s *procedure.Step) plan.Result {
	x := procedure.State[State](s).Extension
	return alter(v, s, procedure.Operation{
		Purpose: "keyspaces", Type: v1alpha1.OperationAlterKeyspaces,
		Arguments: &v1alpha1.OperationArguments{KeyspaceReplication: x.of(s, x.keyspaces())},
	}, ledger.StageRebuild, "extends keyspaces to datacenter "+s.Datacenters()[0])
}

// alter has a member outside of the datacenter alter keyspaces, and goes on to the next stage.
func alter(v *assess.View, s *procedure.Step, o procedure.Operation, next ledger.Stage, what string) plan.Result {
	outside := slices.DeleteFunc(slices.Clone(v.Members()), func(name string) bool {
		return slices.Contains(s.Datacenters(), v.DatacenterOf(name))
	})
	return s.Alter(o, outside, next, what)
}

// of keyspaces, what they have at least once they are extended to the datacenter.
func (x *Extension) of(s *procedure.Step, keyspaces []string) []v1alpha1.KeyspaceReplication {
	out := make([]v1alpha1.KeyspaceReplication, len(keyspaces))
	for i, keyspace := range keyspaces {
		out[i] = v1alpha1.KeyspaceReplication{Keyspace: keyspace,
			Replication: map[string]int32{x.Datacenter: x.replicas(s, keyspace)}}
	}
	return out
}

// keyspaces that the spec extends to the datacenter, sorted.
func (x *Extension) keyspaces() []string { return slices.Sorted(maps.Keys(x.Keyspaces)) }

// all keyspaces that the datacenter gets replicas of, sorted. The user may have named system
// keyspaces too.
func (x *Extension) all() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(x.keyspaces(), ring.SystemKeyspaces()))))
}

// replicas that a keyspace gets in the datacenter: never more than it has nodes.
func (x *Extension) replicas(s *procedure.Step, keyspace string) int32 {
	replicas, own := x.Keyspaces[keyspace]
	if !own {
		replicas = x.Replicas
	}
	return min(replicas, int32(len(s.Wave()))) //nolint:gosec // at most thousands
}

// rebuild has each node of the datacenter stream what it is to hold of the keyspaces that are
// extended: one node of each rack at a time. The system keyspaces are small, and come by the
// repair: with Paxos v2 each rebuild first repairs the Paxos state of all keyspaces, range by range
// (StorageService#repairPaxosForTopologyChange).
func rebuild(v *assess.View, s *procedure.Step) plan.Result {
	x := procedure.State[State](s).Extension
	what := "datacenter " + s.Datacenters()[0] + " is rebuilt"
	r, over := s.RunInTurn(procedure.Operation{
		Purpose: "rebuild", Type: v1alpha1.OperationRebuild,
		Arguments: &v1alpha1.OperationArguments{SourceDatacenter: x.Source, Keyspaces: x.keyspaces(),
			KeyspaceReplication: x.of(s, x.keyspaces())},
	}, procedure.OnePerRack(v, s.Wave()), what)
	if !over {
		return r
	}
	s.Advance(false, what, ledger.StageOperations)
	return plan.Acting("%s", what)
}

// repair what was extended, in rows: writes that were lost while the nodes were rebuilt come to
// them before clients do. Every member of the ring repairs the ranges of which
// it is the first replica: so each is compared once, by all of its replicas. The first replica may
// be in any datacenter, and the nodes of a rack hold every range only where there are as many
// replicas as racks.
func repair(v *assess.View, s *procedure.Step) plan.Result {
	x := procedure.State[State](s).Extension
	what := "what was extended to datacenter " + s.Datacenters()[0] + " is repaired"
	r, over := s.RunInTurn(procedure.Operation{
		Purpose: "repair", Type: v1alpha1.OperationRepair,
		Arguments: &v1alpha1.OperationArguments{Keyspaces: x.all(), KeyspaceReplication: x.of(s, x.all()), Full: true,
			PrimaryRange: true},
	}, procedure.RepairRows(v, v.Members()), what)
	if !over {
		return r
	}
	if s.ClearOperations(v.Members()) {
		return plan.Acting("the operations are over")
	}
	next := ledger.StageOpen
	if v.AsksForPassword() {
		next = ledger.StageLogin
	}
	s.Write(false, what, func(r *ledger.Ring, own *ledger.Step) {
		r.Replication = v.UsedReplication()
		own.Advance(next, v.Now)
	})
	return plan.Acting("%s", what)
}

// openTraffic opens every node for clients and closes the step.
func openTraffic(v *assess.View, s *procedure.Step) plan.Result {
	r, over := ticket.OpenTraffic(v, s)
	if !over {
		return r
	}
	nodes := words.Plural(len(s.Wave()), "node")
	s.Event("DatacenterAdded", "%s of datacenter %s serve clients", nodes, s.Datacenters()[0])
	return plan.Nothing()
}
