package withdraw

import (
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
	"helenus.io/helenus/internal/core/words"
)

// State of a step that takes keyspaces out of a datacenter.
type State struct {
	// Datacenter by its name in Cassandra, and the Keyspaces that lose their replicas there.
	Datacenter string   `json:"datacenter"`
	Keyspaces  []string `json:"keyspaces,omitempty"`
}

// most keyspaces that an operation takes. Those that are left are due again.
const most = 64

// Withdraw has keyspaces lose their replicas in a datacenter. Writes that were acknowledged there
// at LOCAL_QUORUM may be nowhere else: client traffic of the datacenter is closed first, what its
// nodes keep for others is delivered, and the keyspaces are repaired with all of their replicas;
// only then are they altered. Client traffic stays closed until the datacenter has left, or opens
// again when the spec says no more that it gives up keyspaces.
func Withdraw(rules guard.Rules) procedure.Procedure {
	stage := func(name ledger.Stage, run func(*pass) plan.Result) procedure.Stage {
		return procedure.Stage{Name: name, Run: func(v *assess.View, s *procedure.Step) plan.Result {
			return run(&pass{View: v, step: s, state: procedure.State[State](s), rules: rules})
		}}
	}
	return procedure.Procedure{
		Kind: ledger.WithdrawDatacenter, Class: ledger.Topology, MovesRanges: true,
		Due:         func(v *assess.View) *procedure.Proposal { return due(v, rules) },
		Understands: procedure.Understands[State],
		Yields:      func(s *ledger.Step) bool { return s.Stage == ledger.StageDeliver },
		Stages: []procedure.Stage{
			stage(ledger.StageClose, (*pass).closeTraffic), stage(ledger.StageDeliver, (*pass).deliver),
			stage(ledger.StageOperations, (*pass).repair), stage(ledger.StageKeyspaces, (*pass).alter),
			stage(ledger.StageOpen, (*pass).end),
		},
	}
}

func due(v *assess.View, rules guard.Rules) *procedure.Proposal {
	var done *procedure.Proposal
	for i := range v.Cluster.Spec.Datacenters {
		dc := &v.Cluster.Spec.Datacenters[i]
		if !v.Ledger.IsFormed(dc.Name) {
			continue
		}
		p := withdrawn(v, dc, rules)
		if dc.Withdraw == nil {
			p = opens(v, dc)
		}
		if p != nil && p.Recommend == nil {
			return p
		}
		if done == nil {
			done = p
		}
	}
	return done
}

// anyKnows says that a member knows a keyspace that is to lose its replicas and has some: a change
// of the schema has not reached all.
func anyKnows(v *assess.View, dc *v1alpha1.Datacenter, name string) bool {
	return slices.ContainsFunc(v.UpAmong(v.Members()), func(member string) bool {
		return len(guard.Withdrawn(dc.Withdraw, name, assess.KeyspacesOf(v.Nodes[member].CurrentAgent().Ring))) > 0
	})
}

// withdrawn is due while a keyspace that is to lose its replicas has some.
func withdrawn(v *assess.View, dc *v1alpha1.Datacenter, rules guard.Rules) *procedure.Proposal {
	name, view := render.DatacenterName(dc), v.AnyRing()
	if view == nil || dc.Withdraw == nil {
		return nil
	}
	keyspaces := guard.Withdrawn(dc.Withdraw, name, assess.KeyspacesOf(view))
	nodes := nodesOf(v, dc.Name)
	if len(keyspaces) == 0 && anyKnows(v, dc, name) {
		return &procedure.Proposal{What: "datacenter " + dc.Name + " is removed from the replication of its keyspaces",
			Wait: "until all members know the same keyspaces"}
	}
	if len(keyspaces) == 0 {
		return &procedure.Proposal{Recommend: &v1alpha1.Recommendation{
			Operation: "RemoveDatacenter", Nodes: nodes, Message: "no keyspace that withdraw names has replicas in " +
				"datacenter " + dc.Name + ": take it out of the spec to have its nodes leave; or take withdraw " +
				"out, and it stays and serves clients",
		}}
	}
	keyspaces = keyspaces[:min(len(keyspaces), most)]
	state := State{Datacenter: name}
	for _, k := range keyspaces {
		state.Keyspaces = append(state.Keyspaces, k.Name)
	}
	slices.Sort(state.Keyspaces)
	var others []string
	for i := range v.Cluster.Spec.Datacenters {
		if other := &v.Cluster.Spec.Datacenters[i]; v.Ledger.IsFormed(other.Name) && other.Withdraw == nil {
			others = append(others, render.DatacenterName(other))
		}
	}
	what := "keyspace " + words.List(state.Keyspaces, 3) + " loses its replicas in datacenter " + dc.Name
	return &procedure.Proposal{
		What: what,
		Refusals: slices.Concat(guard.Check(procedure.MemberNodes(v), rules.Repair...),
			guard.Check(guard.Withdrawing{Datacenter: dc.Name, Others: others,
				Keyspaces: keyspaces}, rules.Withdrawing...)),
		Open: func() (*procedure.Opening, []guard.Refusal) {
			return &procedure.Opening{
				Stage: ledger.StageClose, Datacenters: []string{dc.Name}, Nodes: nodes, State: state, Why: what,
				Event: "WithdrawingDatacenter", EventMessage: what, ResultMessage: what,
				Change: func(r *ledger.Ring) {
					if !slices.Contains(r.Closed, dc.Name) {
						r.Closed = append(r.Closed, dc.Name)
					}
				},
			}, nil
		},
	}
}

// opens is due once a datacenter is to stay that gave up keyspaces. Without the system keyspaces
// nobody could log in there.
func opens(v *assess.View, dc *v1alpha1.Datacenter) *procedure.Proposal {
	if !slices.Contains(v.Ledger.Closed, dc.Name) {
		return nil
	}
	what := "datacenter " + dc.Name + " serves clients again"
	p := &procedure.Proposal{What: what, Open: func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: ledger.StageOpen, Datacenters: []string{dc.Name}, Nodes: nodesOf(v, dc.Name),
			State: State{Datacenter: render.DatacenterName(dc)}, Why: what, Event: "OpeningDatacenter",
			EventMessage: what, ResultMessage: what,
		}, nil
	}}
	if v.Ledger.SystemKeyspaces {
		p.Wait = "until the system keyspaces have their replicas: " + what
	}
	return p
}

func nodesOf(v *assess.View, datacenter string) []string {
	return slices.DeleteFunc(slices.Clone(v.Members()),
		func(name string) bool { return v.DatacenterOf(name) != datacenter })
}

// pass continues a withdrawal once.
type pass struct {
	*assess.View
	step  *procedure.Step
	state State
	rules guard.Rules
}

func (p *pass) name() string { return p.step.Datacenters()[0] }

// back ends the step if the datacenter is to keep its keyspaces, and says whether it does. What was
// altered already stays so.
func (p *pass) back() (plan.Result, bool) {
	if p.SpecRejected || p.Withdraws(p.name()) {
		return plan.Nothing(), false
	}
	why := "datacenter " + p.name() + " is to stay"
	return p.turnTo(ledger.StageOpen, why), true
}

// turnTo another stage once no operation of the step is left.
func (p *pass) turnTo(stage ledger.Stage, why string) plan.Result {
	p.step.Describe(0, "%s", why)
	if waiting := p.step.CancelOn(p.Members(), why); len(waiting) > 0 {
		return plan.Waiting("%s: waiting for %s", why, words.List(waiting, 3))
	}
	if p.step.ClearOperations(p.Members()) {
		return plan.Acting("the operations are over")
	}
	p.step.Advance(true, why, stage)
	return plan.Acting("%s", why)
}

// closeTraffic closes client traffic on every node of the datacenter: nothing is written there any
// more that the repair would miss.
func (p *pass) closeTraffic() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	written := 0
	for _, name := range p.step.Wave() {
		if n := p.Live(name); n != nil && n.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed {
			p.step.UpdateRecord(name, false, "client traffic is closed, since its datacenter gives up keyspaces",
				func(spec *v1alpha1.CassandraNodeSpec) { spec.ClientTraffic = v1alpha1.TrafficClosed })
			written++
		}
	}
	p.step.Describe(0, "closing client traffic of datacenter %s", p.name())
	if written > 0 {
		return plan.Acting("closing client traffic of %s", words.Plural(written, "node"))
	}
	if open := guard.Check(procedure.TheseNodes(p.View, p.step.Wave()...), p.rules.Drain...); len(open) > 0 {
		return p.refused(open, "it is closed on every node of the datacenter")
	}
	p.step.Advance(true, "client traffic is closed", ledger.StageDeliver)
	return plan.Acting("client traffic is closed")
}

func (p *pass) refused(refusals []guard.Refusal, until string) plan.Result {
	for i := range refusals {
		refusals[i].Until = until
	}
	return p.step.Refused(refusals)
}

// deliver waits until no node of the datacenter keeps a write for another one: also of keyspaces
// that have no replicas there.
func (p *pass) deliver() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	p.step.Describe(0, "delivering hints and batches of datacenter %s", p.name())
	if down := guard.Check(procedure.MemberNodes(p.View), p.rules.Repair...); len(down) > 0 {
		return p.step.Refused(down)
	}
	if waited := p.Now.Sub(p.step.StageSince()); waited < procedure.HintsFlushed {
		p.step.WakeIn(procedure.HintsFlushed - waited)
		return plan.Waiting("until hints that are in memory are counted")
	}
	kept := guard.Check(guard.Kept{Nodes: procedure.TheseNodes(p.View, p.step.Wave()...), For: p.Members(),
		Batches: true}, p.rules.Undelivered...)
	if len(kept) > 0 {
		return p.refused(kept, "they are delivered")
	}
	p.step.Advance(true, "hints and batches are delivered", ledger.StageOperations)
	return plan.Acting("hints and batches are delivered")
}

// repair the keyspaces on every member of the ring, each the ranges of which it is the first
// replica: what only nodes of the datacenter have comes to the others. A member that is lost is
// replaced before, which may bring rows that are nowhere repaired: all of it is done again then.
func (p *pass) repair() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	for _, name := range p.Members() {
		if why := p.Lost(name); why != "" {
			return p.turnTo(ledger.StageDeliver, "node "+name+" "+why)
		}
	}
	what := "what datacenter " + p.name() + " gives up is repaired"
	if keyspaces := p.keyspaces(); len(keyspaces) > 0 {
		r, over := p.step.RunInTurn(procedure.Operation{
			Purpose: "repair", Type: v1alpha1.OperationRepair,
			Arguments: &v1alpha1.OperationArguments{Keyspaces: keyspaces, Full: true, PrimaryRange: true},
		}, procedure.RepairRows(p.View, p.Members()), what)
		if !over {
			return r
		}
	}
	if p.step.ClearOperations(p.Members()) {
		return plan.Acting("the operations are over")
	}
	p.step.Advance(true, what, ledger.StageKeyspaces)
	return plan.Acting("%s", what)
}

// alter has a member of another datacenter take the replicas away.
func (p *pass) alter() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	var replication []v1alpha1.KeyspaceReplication
	for _, name := range p.keyspaces() {
		replication = append(replication, v1alpha1.KeyspaceReplication{Keyspace: name,
			Replication: map[string]int32{p.state.Datacenter: 0}})
	}
	if len(replication) == 0 {
		p.step.Advance(true, "the keyspaces are gone", ledger.StageOpen)
		return plan.Acting("there is nothing left to alter")
	}
	outside := slices.DeleteFunc(slices.Clone(p.Members()),
		func(name string) bool { return p.Ledger.Traffic(p.DatacenterOf(name)) == v1alpha1.TrafficClosed })
	return p.step.Alter(procedure.Operation{
		Purpose: "keyspaces", Type: v1alpha1.OperationAlterKeyspaces,
		Arguments: &v1alpha1.OperationArguments{KeyspaceReplication: replication, Exact: true},
	}, outside, ledger.StageOpen, "takes keyspaces out of datacenter "+p.name())
}

// keyspaces that lose their replicas, without those that were dropped meanwhile.
func (p *pass) keyspaces() []string {
	view := p.AnyRing()
	if view == nil {
		return p.state.Keyspaces
	}
	return slices.DeleteFunc(slices.Clone(p.state.Keyspaces),
		func(name string) bool {
			return view.Keyspaces[name] == "" || slices.Contains(ring.SystemKeyspaces(), name)
		})
}

// end closes the step: client traffic opens if the datacenter is to stay.
func (p *pass) end() plan.Result {
	if !p.SpecRejected && !p.Withdraws(p.name()) {
		r, over := ticket.OpenTraffic(p.View, p.step)
		if !over {
			return r
		}
		p.step.Write(false, "client traffic is open", func(r *ledger.Ring, _ *ledger.Step) {
			r.Closed = slices.DeleteFunc(r.Closed, func(dc string) bool { return dc == p.name() })
		})
		p.step.Event("DatacenterOpened", "datacenter %s serves clients again", p.name())
		return plan.Nothing()
	}
	p.step.Close(true, v1alpha1.StepSucceeded, "datacenter "+p.name())
	p.step.Event("DatacenterWithdrawn", "datacenter %s gives up keyspaces: its client traffic stays closed", p.name())
	return plan.Acting("datacenter %s gave up its keyspaces", p.name())
}
