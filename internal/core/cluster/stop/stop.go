package stop

import (
	"cmp"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

const (
	// patience is how long a stage waits at most: for client traffic to be closed, for what nodes
	// keep for each other, for a pod of each datacenter. After the same time without another node
	// that serves, those that are missing are left.
	patience = 10 * time.Minute
	// together is how long the others wait for the pod of a node before they start.
	together = 2 * time.Minute
)

// State is what a stop must not compute twice.
type State struct {
	// Kept is what nodes kept for each other when they were stopped all the same, in words, and
	// Keepers who did.
	Kept    string   `json:"kept,omitempty"`
	Keepers []string `json:"keepers,omitempty"`
	// Missing is the least number of nodes that were missing since the start, and MissingSince when
	// it became that.
	Missing      int        `json:"missing,omitempty"`
	MissingSince *time.Time `json:"missingSince,omitempty"`
}

// Stop stops the ring while the spec says so: client traffic is closed on every node, what nodes
// keep for each other is delivered, all are drained together, and their pods go. The step stays
// open for as long, so that nothing else begins, and ends when the nodes have started again.
func Stop(rules guard.Rules) procedure.Procedure {
	out := stopping(rules)
	out.Kind, out.Due = ledger.StopRing, due
	return out
}

// Datacenter stops the nodes of one datacenter in the same way. That step ends when they are
// stopped, so that changes of the others can begin, and another one starts them.
func Datacenter(rules guard.Rules) procedure.Procedure {
	out := stopping(rules)
	out.Kind, out.Due = ledger.StopDatacenter, func(v *assess.View) *procedure.Proposal { return dueOf(v, rules) }
	return out
}

func stopping(rules guard.Rules) procedure.Procedure {
	stage := func(name ledger.Stage, run func(*pass) plan.Result) procedure.Stage {
		return procedure.Stage{Name: name, Run: func(v *assess.View, s *procedure.Step) plan.Result {
			return run(&pass{View: v, step: s, state: procedure.State[State](s), rules: rules})
		}}
	}
	return procedure.Procedure{
		Class: ledger.Topology, MovesRanges: true, AnyRelease: true, Understands: procedure.Understands[State],
		Stages: []procedure.Stage{
			stage(ledger.StageClose, (*pass).closeTraffic), stage(ledger.StageDeliver, (*pass).deliver),
			stage(ledger.StageDrain, (*pass).drain), stage(ledger.StageStopped, (*pass).stayStopped),
			stage(ledger.StageStart, (*pass).makePods), stage(ledger.StageOpen, (*pass).start),
		},
	}
}

func due(v *assess.View) *procedure.Proposal {
	if !v.Cluster.Spec.Stopped {
		return nil
	}
	what := "stopping " + words.Plural(len(v.Members()), "node")
	return &procedure.Proposal{What: what, Open: func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: ledger.StageClose, Nodes: v.Members(), State: State{}, Why: "spec.stopped is true",
			Event: "StoppingRing", EventMessage: what, ResultMessage: what,
		}, nil
	}}
}

// dueOf a datacenter that is to stop, or to start.
func dueOf(v *assess.View, rules guard.Rules) *procedure.Proposal {
	dc := cmp.Or(v.DatacenterToStart(), v.DatacenterToStop())
	if dc == "" {
		return nil
	}
	o := &procedure.Opening{Stage: ledger.StageClose, Datacenters: []string{dc}, State: State{},
		Event: "StoppingDatacenter", Nodes: nodesOf(v, dc)}
	verb := "stopping "
	if v.DatacenterToStart() != "" {
		o.Stage, o.Event, verb = ledger.StageStart, "StartingDatacenter", "starting "
	}
	o.EventMessage = verb + words.Plural(len(o.Nodes), "node") + " of datacenter " + dc
	o.Why, o.ResultMessage = o.EventMessage, o.EventMessage
	p := &procedure.Proposal{What: o.EventMessage,
		Open: func() (*procedure.Opening, []guard.Refusal) { return o, nil }}
	if o.Stage == ledger.StageClose {
		p.Refusals = guard.Check(guard.Stopping{Nodes: procedure.TheseNodes(v, o.Nodes...), Datacenter: dc,
			Accepted: v.UnavailableAccepted()}, rules.StopDatacenter...)
	}
	return p
}

func nodesOf(v *assess.View, datacenter string) []string {
	return slices.DeleteFunc(slices.Clone(v.Members()),
		func(name string) bool { return v.DatacenterOf(name) != datacenter })
}

// Explain names the step that a ring or a datacenter which is to stop waits for, and says of each
// datacenter that is stopped alone, or is to be, what comes of its absence and when.
func Explain(v *assess.View, d *plan.Draft) {
	if v.Cluster.DeletionTimestamp != nil || v.Ledger == nil {
		return
	}
	for _, dc := range v.Ledger.Formed {
		explainAbsence(v, d, dc)
	}
	s, kind, what := v.Ledger.Step, ledger.StopDatacenter, ""
	switch {
	case v.Cluster.Spec.Stopped:
		kind, what = ledger.StopRing, "spec.stopped is true"
	case v.DatacenterToStart() != "":
		what = "datacenter " + v.DatacenterToStart() + " is to start"
	case v.DatacenterToStop() != "":
		what = "datacenters[" + v.DatacenterToStop() + "].stopped is true"
	}
	if s == nil || s.Kind == ledger.StopRing || s.Kind == ledger.StopDatacenter || what == "" {
		return
	}
	d.Block(string(kind), v1alpha1.BlockedOtherStepOpen, nil, "%s, and the step %s is open: a change that has begun "+
		"is brought to its end first. Waits until it is closed", what, s.Kind)
}

func explainAbsence(v *assess.View, d *plan.Draft, dc string) {
	is, nodes := v.Ledger.StoppedDatacenter(dc), nodesOf(v, dc)
	switch {
	case is != nil:
		kept := ""
		if is.Kept != "" {
			kept = ". " + is.Kept + ": that was not delivered, and is when they are back"
		}
		d.Notice(v1alpha1.NoticeDatacenterStopped, nodes, "datacenter %s is stopped since %s: %s%s", dc,
			is.Since.UTC().Format(time.RFC3339), assess.Absence(v.Snapshot, dc, is.Since), kept)
	case v.StopsDatacenter(dc) && !slices.ContainsFunc(d.Blocked, func(b v1alpha1.BlockedStep) bool {
		return b.Reason == v1alpha1.BlockedOnlyReplicas // it does not stop, so that there is no date
	}):
		from, since := "Counted from when it does", beginning(v, dc)
		if !since.IsZero() {
			from = "If that is now"
		}
		d.Notice(v1alpha1.NoticeDatacenterStopped, nodes, "datacenter %s is to stop. %s: %s", dc, from,
			assess.Absence(v.Snapshot, dc, since))
	}
}

// beginning of the absence of a datacenter that is to stop: when its step was opened, or now if the
// spec has just come, or is only asked about. It is not known while it waits.
func beginning(v *assess.View, dc string) time.Time {
	switch s := v.Ledger.Step; {
	case s != nil && s.Kind == ledger.StopDatacenter && slices.Contains(s.Datacenters, dc):
		return s.OpenedAt
	case v.Cluster.Status.ObservedGeneration != v.Cluster.Generation:
		return v.Now
	default:
		return time.Time{}
	}
}

// pass continues a stop once.
type pass struct {
	*assess.View
	step  *procedure.Step
	state State
	rules guard.Rules
}

// datacenter that is stopped alone; empty if it is the ring.
func (p *pass) datacenter() string {
	if p.step.Kind() == ledger.StopRing {
		return ""
	}
	return p.step.Datacenters()[0]
}

// what stops, in words.
func (p *pass) what() string {
	if dc := p.datacenter(); dc != "" {
		return "datacenter " + dc
	}
	return "the ring"
}

// field of the spec that says so.
func (p *pass) field() string {
	if dc := p.datacenter(); dc != "" {
		return "datacenters[" + dc + "].stopped"
	}
	return "spec.stopped"
}

// suffix of the reasons of events.
func (p *pass) suffix() string {
	if p.datacenter() != "" {
		return "Datacenter"
	}
	return "Ring"
}

// stops says that the spec still wants that.
func (p *pass) stops() bool {
	if dc := p.datacenter(); dc != "" {
		return p.StopsDatacenter(dc)
	}
	return p.Cluster.Spec.Stopped
}

// back goes to the start of the nodes if they are not to be stopped any more, and says whether it
// does.
func (p *pass) back() (plan.Result, bool) {
	if p.stops() {
		return plan.Nothing(), false
	}
	p.step.Advance(true, p.field()+" is no longer true", ledger.StageStart)
	p.step.Event("Starting"+p.suffix(), "%s start", words.Plural(len(p.step.Wave()), "node"))
	p.step.Describe(0, "the nodes start")
	return plan.Acting("%s is no longer to be stopped", p.what()), true
}

// closeTraffic closes client traffic on every node that runs. Until none is open a node that is
// stopped would leave its clients' writes to fewer replicas.
func (p *pass) closeTraffic() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	written := p.update("client traffic is closed, since "+p.what()+" is to stop",
		func(spec *v1alpha1.CassandraNodeSpec) bool { return spec.ClientTraffic != v1alpha1.TrafficClosed },
		func(spec *v1alpha1.CassandraNodeSpec) { spec.ClientTraffic = v1alpha1.TrafficClosed })
	if written > 0 {
		p.step.Describe(0, "closing client traffic")
		return plan.Acting("closing client traffic of %s", words.Plural(written, "node"))
	}
	open := guard.Check(procedure.TheseNodes(p.View, p.running()...), p.rules.Drain...)
	if left := p.step.StageSince().Add(patience).Sub(p.Now); len(open) > 0 && left > 0 {
		p.step.WakeIn(left)
		r := p.step.Refused(open)
		p.step.Describe(0, "closing client traffic: %s", r.Message)
		return r
	}
	p.step.Advance(true, "client traffic is closed", ledger.StageDeliver)
	return plan.Acting("client traffic is closed")
}

// deliver waits until the nodes that are up have delivered what they keep for each other.
func (p *pass) deliver() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	up, others := p.UpAmong(p.step.Wave()), p.UpAmong(p.Members())
	kept := guard.Check(guard.Kept{Nodes: procedure.TheseNodes(p.View, up...), For: others, Batches: true},
		p.rules.Undelivered...)
	for i := range kept {
		kept[i].Until = "they are delivered, or 10 minutes are over"
	}
	waited := p.Now.Sub(p.step.StageSince())
	switch {
	case len(up) > 0 && len(others) > 1 && waited < procedure.HintsFlushed:
		p.step.WakeIn(procedure.HintsFlushed - waited)
		p.step.Describe(0, "delivering hints and batches")
		return plan.Waiting("until hints that are in memory are counted")
	case len(kept) > 0 && waited < patience:
		p.step.WakeIn(patience - waited)
		r := p.step.Refused(kept)
		p.step.Describe(0, "delivering hints and batches: %s", r.Message)
		return r
	}
	var said, keepers []string
	for _, k := range kept {
		said, keepers = append(said, k.Message), append(keepers, k.Nodes...)
	}
	p.write(true, "the nodes are to stop", func(_ *ledger.Ring, own *ledger.Step, state *State) {
		state.Kept, state.Keepers = words.List(said, 3), keepers
		own.Advance(ledger.StageDrain, p.Now)
	})
	return plan.Acting("every node is to stop")
}

// drain has all nodes stopped at once, and deletes the pods of those that are.
func (p *pass) drain() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	p.noticeKept()
	written := p.update(p.what()+" is stopped",
		func(spec *v1alpha1.CassandraNodeSpec) bool {
			return spec.State != v1alpha1.StateStopped || spec.ClientTraffic != v1alpha1.TrafficClosed
		},
		func(spec *v1alpha1.CassandraNodeSpec) {
			spec.State, spec.StopNotAfter, spec.ClientTraffic = v1alpha1.StateStopped, nil, v1alpha1.TrafficClosed
		})
	if written > 0 {
		p.step.Describe(0, "every node stops")
		return plan.Acting("stopping %s", words.Plural(written, "node"))
	}
	running := p.running()
	if len(running) == 0 {
		p.step.Write(true, "no node runs", func(r *ledger.Ring, own *ledger.Step) {
			own.Advance(ledger.StageStopped, p.Now)
			switch dc := p.datacenter(); {
			case dc != "":
				r.StartDatacenters(dc)
				r.StoppedDatacenters = append(r.StoppedDatacenters,
					ledger.StoppedDatacenter{Name: dc, Since: p.Now.UTC(), Kept: p.state.Kept})
			case r.Stopped == nil || !r.Stopped.Until.IsZero():
				r.Stopped = &ledger.Stopped{Since: p.Now}
			}
		})
		p.step.Event(p.suffix()+"Stopped", "no node of %s runs", p.what())
		return plan.Acting("no node runs")
	}
	p.deletePods()
	var unheard, why []string
	for _, name := range running {
		if p.Of(name).Contact != assess.Answering {
			unheard, why = append(unheard, name), append(why, name+": "+assess.WhyNoAnswer(p.Nodes[name]))
		}
	}
	if len(unheard) > 0 {
		p.step.Block(v1alpha1.BlockedAgentUnreachable, unheard, "nobody knows whether Cassandra runs on %s: %s. Waits "+
			"until its agent says that it does not, or its host is known to be gone; the others are stopped",
			words.List(unheard, 3), words.List(why, 3))
	}
	p.step.Describe(len(p.step.Wave())-len(running), "waiting for %s to stop", words.List(running, 3))
	return plan.Waiting("waiting for %s to stop", words.List(running, 3))
}

// stayStopped keeps everything down. The step of a datacenter ends with the last pod.
func (p *pass) stayStopped() plan.Result {
	if r, back := p.back(); back {
		return r
	}
	p.noticeKept()
	left := p.deletePods()
	if p.datacenter() != "" {
		p.step.Describe(len(p.step.Wave()), "%s is stopped", p.what())
		if left > 0 {
			return plan.Acting("%s left", words.Plural(left, "pod"))
		}
		p.step.Close(false, v1alpha1.StepSucceeded, "no node of "+p.what()+" runs")
		return plan.Nothing()
	}
	since := p.Now
	if p.Ledger.Stopped != nil {
		since = p.Ledger.Stopped.Since
	}
	p.step.Describe(len(p.step.Wave()), "stopped since %s; kubectl helenus start %s starts it",
		since.UTC().Format(time.RFC3339), p.Cluster.Name)
	return plan.Waiting("the ring is stopped, as spec.stopped says")
}

// noticeKept names what nodes still kept for each other when they were stopped.
func (p *pass) noticeKept() {
	if p.state.Kept != "" {
		p.step.Notice(v1alpha1.BlockedHintsNotDelivered, p.state.Keepers, "%s: that was not delivered within %s, and "+
			"%s was stopped all the same. It is delivered when it has started, unless a table of it keeps "+
			"its deletions for less long than that takes: then repair the nodes that it is for", p.state.Kept, patience,
			p.what())
	}
}

// running are the nodes of which a JVM runs, or may: those whose agents have not said that they
// hold it stopped, unless nothing is there that could start one.
func (p *pass) running() []string {
	var out []string
	for _, name := range p.step.Wave() {
		if n := p.Nodes[name]; n != nil && n.Pod != nil && !p.IsDown(n) {
			out = append(out, name)
		}
	}
	return out
}

// deletePods deletes the pods of nodes that are stopped, and counts them.
func (p *pass) deletePods() int {
	var pods []*facts.Node
	for _, name := range p.step.Wave() {
		n := p.Live(name)
		if n != nil && n.Pod != nil && n.Pod.DeletionTimestamp == nil &&
			n.Record.Spec.State == v1alpha1.StateStopped && p.IsDown(n) {
			pods = append(pods, n)
		}
	}
	p.step.DeletePods(pods, p.what()+" is stopped, and so is its node")
	return len(pods)
}

// update changes the records that differ, and counts them.
func (p *pass) update(why string, differs func(*v1alpha1.CassandraNodeSpec) bool,
	change func(*v1alpha1.CassandraNodeSpec)) int {
	written := 0
	for _, name := range p.step.Wave() {
		if n := p.Live(name); n != nil && differs(&n.Record.Spec) {
			p.step.UpdateRecord(name, false, why, change)
			written++
		}
	}
	return written
}

// write changes the step with its state, and what is known of the ring, in the ledger.
func (p *pass) write(live bool, why string, change func(*ledger.Ring, *ledger.Step, *State)) {
	p.step.Write(live, why, func(r *ledger.Ring, own *ledger.Step) {
		change(r, own, &p.state)
		own.State = ledger.Encoded(p.state)
	})
}
