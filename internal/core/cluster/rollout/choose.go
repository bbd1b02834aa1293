package rollout

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// beginWave chooses the nodes whose turn it is, writes that down, and begins.
func (p *pass) beginWave(pending []string) plan.Result {
	wave, first := p.choose(pending)
	left := false
	if wave == nil { // the ring is asked
		candidates := pending
		if first {
			candidates = pending[:1]
		}
		if wave = p.mayGoDown(candidates, nil); len(wave) == 0 {
			return plan.Waiting("%s left; the ring cannot do without the next one yet",
				words.Plural(len(pending), "node"))
		}
		if first && p.changesRelease() {
			about := p.members(func(n *facts.Node) bool { return !lost(n) })
			if refusals := guard.Check(about, p.rules.NewRelease...); len(refusals) > 0 {
				return p.step.Refused(refusals)
			}
		}
		var r plan.Result
		var waits bool
		if r, waits, left = p.awaitHints(first); waits {
			return r
		}
		p.asked = true
	}
	live := !first && p.changeOf(p.Nodes[wave[0]]) == live
	wave, renews := p.alone(wave)
	p.write(true, "it is the turn of "+words.List(wave, 3), func(s *State) {
		s.Live, s.Renews = live, renews
		if !left {
			s.Left, s.LeftSince = 0, nil
		}
		s.Wave, s.First, s.Began, s.Round, s.SoakSince, s.Hold = wave, first, p.Now, s.Round+1, nil, ""
	})
	r, _ := p.continueWave()
	return plan.Acting("it is the turn of %s: %s", words.List(wave, 3), r.Message)
}

// choose the nodes of the next wave, or none if the ring is to be asked which may go, and say
// whether it is the first node alone. A node that is down costs nothing and goes before the others,
// which would wait for it anyway. What needs no restart reaches all nodes at once.
func (p *pass) choose(pending []string) (wave []string, first bool) {
	disruptive := slices.DeleteFunc(slices.Clone(pending), func(name string) bool {
		return p.changeOf(p.Nodes[name]) == live
	})
	if len(disruptive) == 0 {
		return pending, false
	}
	for _, name := range disruptive {
		if p.Of(name).Failing() {
			return []string{name}, !p.state.Proven
		}
	}
	return nil, !p.state.Proven
}

// allowed are those of the nodes of the wave that may be taken down now. A wave that has just begun
// was judged; one that was held up is judged again, as far as it is left.
func (p *pass) allowed(asking []string) []string {
	if len(asking) == 0 || p.asked {
		return asking
	}
	if len(p.step.OpenBudgets()) > 0 {
		return nil // the wave has waited for a person until a moment ago, or somebody edits one
	}
	var down []string
	for _, name := range p.state.Wave {
		if n := p.Live(name); n == nil || !up(n) {
			down = append(down, name)
		}
	}
	allowed := p.mayGoDown(asking, down)
	if len(allowed) > 0 {
		p.write(true, words.List(allowed, 3)+" is asked again", func(s *State) { s.Round++ })
	}
	return allowed
}

// mayGoDown are those of the nodes that the ring can do without together: of the first rack of
// which any may go. What speaks against them is shown. Others of the wave are down.
func (p *pass) mayGoDown(among, others []string) []string {
	if refusals := p.withoutRoom(); len(refusals) > 0 {
		p.step.Refused(refusals)
		return nil
	}
	upright := p.members(func(n *facts.Node) bool {
		return !lost(n) && !slices.Contains(others, n.Name) && !p.keptDown(n)
	})
	if refusals := guard.Check(upright, p.rules.RollOut...); len(refusals) > 0 {
		p.step.Refused(refusals)
		return nil
	}
	wave, refused := p.permitted(among, others)
	if refused != "" {
		p.step.Block(v1alpha1.BlockedConsistencyWouldBeLost, among[:1], "%s. Waits until the ring can do without "+
			"the node", refused)
	}
	return wave
}

// withoutRoom asks for all nodes that are to get new pods whether these can be placed: so that none
// is touched if one cannot.
func (p *pass) withoutRoom() []guard.Refusal {
	of := guard.Recreated{Nodes: guard.Nodes{Snapshot: p.Snapshot}, Pods: map[string]*corev1.Pod{}}
	for _, name := range p.Members() {
		n := p.Live(name)
		if n == nil || p.SpecRejected || p.changeOf(n) != newPod {
			continue
		}
		if pod := p.rendered(p.wanted(n)); pod != nil {
			of.Names, of.Pods[name] = append(of.Names, name), pod
		}
	}
	return guard.Check(of, p.rules.Room...)
}

// rendered is a pod as the spec describes it, for what it asks of a host; nil for a spec that is
// refused.
func (p *pass) rendered(w render.Wanted) *corev1.Pod {
	hash := p.WantedHashes(w).Pod
	pod, known := p.made[hash]
	if !known {
		pod, _ = render.Pod(p.Owner(), render.Record(p.Owner(), w, nil, ""), p.Install)
		if p.made == nil {
			p.made = map[string]*corev1.Pod{}
		}
		p.made[hash] = pod
	}
	return pod
}

// members asks guards about those of the members of which something holds.
func (p *pass) members(are func(*facts.Node) bool) guard.Nodes {
	var names []string
	for _, name := range p.Members() {
		if n := p.Nodes[name]; n == nil || are(n) {
			names = append(names, name)
		}
	}
	return guard.Nodes{Snapshot: p.Snapshot, Names: names}
}

// permitted are the nodes of the next wave, or why there are none. Down are, beside others, members
// whose disks are lost and those that were asked to go down.
func (p *pass) permitted(among, others []string) (wave []string, refused string) {
	down := slices.Clone(others)
	var view *facts.Ring
	for _, name := range p.Members() {
		n := p.Nodes[name]
		switch {
		case n == nil || n.Record == nil:
		case lost(n) || unfinishedRestart(n) || n.Record.Spec.State != v1alpha1.StateRunning:
			down = append(down, name)
		case view == nil && up(n):
			view = n.Agent.Ring
		}
	}
	if view == nil {
		return nil, "no node can say what the ring is like"
	}
	protection, err := view.Protection(p.Cluster.Spec.Disruption.Consistency)
	if err != nil {
		return nil, err.Error()
	}
	policy := ring.Proceed
	if p.Cluster.Spec.Disruption.Unprotected == v1alpha1.UnprotectedBlock {
		policy = ring.Block
	}
	for len(among) > 0 {
		rack := p.rackOf(among[0])
		var of, rest []string
		for _, name := range among {
			if p.rackOf(name) == rack {
				of = append(of, name)
			} else {
				rest = append(rest, name)
			}
		}
		next, err := protection.NextWave(p.hostIDs(of), p.hostIDs(down), p.most(rack), policy)
		switch {
		case err != nil:
			return nil, err.Error()
		case len(next.Nodes) > 0:
			return slices.DeleteFunc(of, func(name string) bool {
				return !slices.Contains(next.Nodes, p.Ledger.Members[name])
			}), ""
		case refused == "":
			refused = p.Named(next.Verdict.String())
		}
		among = rest
	}
	return nil, refused
}

func (p *pass) hostIDs(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = p.Ledger.Members[name]
	}
	return out
}

// most nodes of a rack that go down together.
func (p *pass) most(rack [2]string) int {
	limit := p.Cluster.Spec.Disruption.MaxUnavailable
	if limit == nil {
		return 1
	}
	size := 0
	for _, w := range p.Wanted {
		if w.Datacenter == rack[0] && w.Rack == rack[1] {
			size++
		}
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(limit, size, false)
	if err != nil {
		return 1 // the schema allows nothing else
	}
	return n
}
