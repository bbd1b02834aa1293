package rollout

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// unchangedFor is how long the next wave waits for hints that do not become fewer: their dispatch
// may be paused, or a file may be corrupt.
const unchangedFor = 2 * time.Minute

// undelivered is what members keep for those of the last wave, and before the first node for all
// that are up, which a step before may have restarted: others may be down, or have lost their
// disks, so that hints for them stay. Before the first node of another release it is what they keep
// for any, and their batches: an older release has stored it, and a newer one would have to read
// it.
func (p *pass) undelivered(first bool) []guard.Refusal {
	about := guard.Kept{Nodes: p.members(func(n *facts.Node) bool { return !lost(n) }), For: p.state.Last}
	switch {
	case first && p.changesRelease():
		about.For, about.Batches = about.Names, true
	case first:
		about.For = p.members(func(n *facts.Node) bool { return !p.IsDown(n) }).Names
	}
	about.For = slices.DeleteFunc(slices.Clone(about.For), func(name string) bool {
		n := p.Nodes[name]
		return n != nil && lost(n) || slices.Contains(p.state.Wave, name)
	})
	return guard.Check(about, p.rules.Undelivered...)
}

// changesRelease says that members get another release. One without a disk is replaced with it.
func (p *pass) changesRelease() bool {
	return slices.ContainsFunc(p.Members(), func(name string) bool {
		n := p.Live(name)
		return n != nil && !lost(n) && n.Record.Spec.Configuration.Version != p.wanted(n).Configuration.Version
	})
}

// awaitHints waits until what nodes have missed is delivered. Until it becomes no less for a while:
// then it is left, and the wave begins.
func (p *pass) awaitHints(first bool) (_ plan.Result, waits, left bool) {
	found := p.undelivered(first)
	if len(found) == 0 {
		return plan.Nothing(), false, false
	}
	sum := 0
	for _, f := range found {
		sum += f.Left
	}
	if p.state.LeftSince == nil || sum < p.state.Left {
		p.write(false, "hints become fewer", func(s *State) { s.Left, s.LeftSince = sum, &p.Now })
	}
	if wait := p.state.LeftSince.Add(unchangedFor).Sub(p.Now); wait > 0 {
		p.step.WakeIn(wait)
		r := p.step.Refused(found)
		p.describe("%s", r.Message)
		return r, true, false
	}
	return plan.Nothing(), false, true
}

// noticeHints names what a wave has begun in spite of, for as long as it lasts.
func (p *pass) noticeHints() {
	if p.state.LeftSince == nil || len(p.state.Wave) == 0 {
		return
	}
	var nodes, messages []string
	for _, f := range p.undelivered(p.state.First) {
		nodes, messages = append(nodes, f.Nodes...), append(messages, f.Message)
	}
	if len(nodes) > 0 {
		p.step.Notice(v1alpha1.BlockedHintsNotDelivered, nodes, "%s: that has not become less for 2 minutes, and "+
			"the roll-out continues. If the dispatch of hints is paused (nodetool statushandoff), nodetool "+
			"resumehandoff has them sent; else repair the nodes that they are for", words.List(messages, 3))
	}
}
