package stop

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// makePods waits for the pods of all nodes, in which no JVM starts yet: a node that finds no seed
// ends after a minute, and a seed that finds no other one goes on alone. It waits for no pod for
// long, but longer for the first of each datacenter: members whose pods have addresses are the
// seeds, which are published before the records of a pass are written.
func (p *pass) makePods() plan.Result {
	if p.stops() {
		p.step.Advance(true, p.field()+" is true again", ledger.StageDrain)
		return plan.Acting("%s is to be stopped again", p.what())
	}
	var without, alone []string
	answers := map[string]bool{}
	for _, name := range p.step.Wave() {
		if p.Nodes[name].CurrentAgent() != nil && assess.Address(p.Nodes[name]) != "" {
			answers[p.DatacenterOf(name)] = true
			continue
		}
		without = append(without, name)
	}
	for _, name := range without {
		if !answers[p.DatacenterOf(name)] {
			alone = append(alone, name)
		}
	}
	limit := together
	if len(alone) > 0 {
		limit = patience
	}
	if left := p.step.StageSince().Add(limit).Sub(p.Now); len(without) > 0 && left > 0 {
		p.step.WakeIn(left)
		p.step.Describe(len(p.step.Wave())-len(without), "waiting for the pods of %s", words.List(without, 3))
		return plan.Waiting("waiting for the pods of %s", words.List(without, 3))
	}
	p.write(true, "all nodes start together", func(r *ledger.Ring, own *ledger.Step, state *State) {
		*state = State{}
		own.Advance(ledger.StageOpen, p.Now)
		if dc := p.datacenter(); dc != "" {
			r.StartDatacenters(dc)
			return
		}
		r.StoppedDatacenters = nil
		if r.Stopped != nil && r.Stopped.Until.IsZero() {
			r.Stopped.Until = p.Now
		}
	})
	return plan.Acting("all nodes start together")
}

// start has all nodes started and opened to clients, each when its agent finds that it sees whom
// the others see, and ends the step when all serve, or no other one has come for long.
func (p *pass) start() plan.Result {
	if p.stops() {
		p.step.Advance(true, p.field()+" is true again", ledger.StageClose)
		return plan.Acting("%s is to be stopped again", p.what())
	}
	written := p.update(p.what()+" starts",
		func(spec *v1alpha1.CassandraNodeSpec) bool {
			return spec.State == v1alpha1.StateStopped || spec.ClientTraffic != p.Ledger.Traffic(spec.Datacenter)
		},
		func(spec *v1alpha1.CassandraNodeSpec) {
			spec.State, spec.ClientTraffic = v1alpha1.StateRunning, p.Ledger.Traffic(spec.Datacenter)
		})
	if written > 0 {
		p.step.Describe(0, "the nodes start")
		return plan.Acting("starting %s", words.Plural(written, "node"))
	}
	var missing []string
	for _, name := range p.step.Wave() {
		if !serves(p.Nodes[name].CurrentAgent(), p.Ledger.Traffic(p.DatacenterOf(name))) {
			missing = append(missing, name)
		}
	}
	nodes := len(p.step.Wave())
	p.step.Describe(nodes-len(missing), "waiting for %s to serve", words.List(missing, 3))
	switch {
	case len(missing) == 0:
		p.step.Event(p.suffix()+"Started", "%s serve", words.Plural(nodes, "node"))
		p.step.Close(false, v1alpha1.StepSucceeded, words.Plural(nodes, "node")+" serve")
		return plan.Nothing()
	case p.state.MissingSince == nil || len(missing) < p.state.Missing ||
		len(missing) == nodes && p.datacenter() == "":
		if p.state.MissingSince == nil || len(missing) != p.state.Missing {
			p.write(false, "nodes come back", func(_ *ledger.Ring, _ *ledger.Step, state *State) {
				state.Missing, state.MissingSince = len(missing), &p.Now
			})
		}
		return plan.Waiting("waiting for %s to serve", words.List(missing, 3))
	}
	if left := p.state.MissingSince.Add(patience).Sub(p.Now); left > 0 {
		p.step.WakeIn(left)
		return plan.Waiting("waiting for %s to serve", words.List(missing, 3))
	}
	p.step.Warn("NodesMissing", "%s has started without %s, which has not come %s after the others",
		p.what(), words.List(missing, 3), patience)
	p.step.Close(true, v1alpha1.StepSucceeded, words.Plural(nodes-len(missing), "node")+" serve; "+
		words.List(missing, 3)+" has not come "+patience.String()+" after the others")
	return plan.Nothing()
}

// serves says that a node serves clients as far as it is to, by the word of its agent.
func serves(agent *facts.Agent, traffic v1alpha1.ClientTraffic) bool {
	return agent != nil && agent.Ring != nil && agent.Ring.Mode == facts.ModeNormal &&
		agent.Traffic == traffic
}
