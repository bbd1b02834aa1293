package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// joinNode continues the join of one node.
func (p *pass) joinNode(s *ledger.Step) result {
	name := sortedKeys(s.Tickets)[0]
	n := p.Nodes[name]
	switch {
	case s.Stage == ledger.StageTickets && p.isGivenUp(name):
		return p.giveUpWave(s)
	case recordOf(n) == nil || n.Record.DeletionTimestamp != nil:
		p.describe(s, 0, "node %s joins", name)
		return wait("waiting for the record of %s, which is made again", name)
	case s.Stage == ledger.StageOpen:
		return p.endJoin(s, n)
	}
	if n.Record.Spec.Join == nil && n.Record.Spec.Member == nil {
		p.issueTicket(s, n)
		return act("node %s gets its ticket to join", name)
	}
	if r, forgets := p.forget(s); forgets {
		p.describe(s, 0, "node %s joins: %s", name, r.message)
		return r
	}
	if doubts := p.joinDoubts(s, n); len(doubts) > 0 {
		p.describe(s, 0, "node %s joins: %s", name, list(doubts, 3))
		if doesNotCome(n) {
			p.notice(v1alpha1.NoticeJoinFailed, []string{name}, "%s; the join is retried until the spec no longer describes the node", doubts[0])
		}
		return wait("waiting for %s", list(doubts, 3))
	}
	view := n.CurrentAgent().Ring
	p.putLedger(true, "node "+name+" has joined", func(l *ledger.Ledger) {
		if l.Members == nil {
			l.Members = map[string]string{}
		}
		l.Members[name] = view.HostID
		l.LeftBehind = slices.DeleteFunc(l.LeftBehind, func(other string) bool { return other == name })
		l.Cleanup = slices.Compact(slices.Sorted(slices.Values(append(l.Cleanup, p.shrunk(view, view.HostID)...))))
		l.SystemKeyspaces = true
		advance(l.Step, ledger.StageOpen, p.now)
	})
	p.event(corev1.EventTypeNormal, "NodeJoined", "node %s has joined with host id %s", name, view.HostID)
	return act("node %s has joined", name)
}

// admit makes a record that of a member which clients may come to.
func (p *pass) admit(n *facts.Node) {
	record := render.ForApply(p.owner(), n.Record)
	record.Spec.Member = &v1alpha1.Member{HostID: p.Ledger.Members[n.Name]}
	record.Spec.Join = nil
	record.Spec.ClientTraffic = v1alpha1.TrafficOpen
	p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "it has joined"})
}

// endJoin closes the step once the record says who has joined. The next join may begin in the same pass.
func (p *pass) endJoin(s *ledger.Step, n *facts.Node) result {
	if n.Record.Spec.Member == nil || n.Record.Spec.Join != nil || n.Record.Spec.ClientTraffic != v1alpha1.TrafficOpen {
		p.admit(n)
		p.describe(s, 1, "node %s has joined", n.Name)
		return act("node %s becomes a member by its record", n.Name)
	}
	p.closeStep(s, false, v1alpha1.StepSucceeded, "node "+n.Name)
	return done()
}

// joinDoubts are the reasons why a node does not count as joined yet: it is NORMAL with the tokens of its ticket, and every member that lives sees it so.
func (p *pass) joinDoubts(s *ledger.Step, n *facts.Node) []string {
	v := p.viewsOf(s)
	if status := joinStatus(n, s); len(v.normal) > 0 && n.Record.Spec.Join != nil && (status == nil || status.FinishedAt == nil) {
		v.doubt(n.Name, n.Name, "%s has not reported that the join has finished", n.Name)
	}
	return v.doubts
}
