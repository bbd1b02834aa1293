package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/render"
)

// joinNode continues the join of one node.
func (p *pass) joinNode(s *facts.OpenStep) result {
	name := sortedKeys(s.Tickets)[0]
	n := p.Nodes[name]
	if recordOf(n) == nil || n.Record.DeletionTimestamp != nil {
		p.describe(s, 0, "node %s joins", name)
		return wait("waiting for the record of %s, which is made again", name)
	}
	if s.Stage == facts.StageOpen {
		return p.endJoin(s, n)
	}
	if !p.wants(name) && !p.joined(n) {
		return p.giveUpJoin(s, n)
	}
	if n.Record.Spec.Join == nil && n.Record.Spec.Member == nil {
		p.issueTicket(s, n)
		return act("node %s gets its ticket to join", name)
	}
	if doubts := p.joinDoubts(s, n); len(doubts) > 0 {
		p.describe(s, 0, "node %s joins: %s", name, list(doubts, 3))
		if doesNotCome(n) {
			p.block(string(s.Kind), "the_joining_node_comes_up", []string{name}, "%s; it is tried again, and given up when the spec no longer has the node", doubts[0])
		}
		return wait("waiting for %s", list(doubts, 3))
	}
	view := n.CurrentAgent().Ring
	p.putLedger(true, "node "+name+" has joined", func(l *facts.Ledger) {
		if l.Members == nil {
			l.Members = map[string]string{}
		}
		l.Members[name] = view.HostID
		l.LeftBehind = slices.DeleteFunc(l.LeftBehind, func(other string) bool { return other == name })
		l.Cleanup = slices.Compact(slices.Sorted(slices.Values(append(l.Cleanup, p.shrunk(view, view.HostID)...))))
		l.SystemKeyspaces = true
		advance(l.Step, facts.StageOpen, p.now)
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
	p.write(Write{Verb: Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "it has joined"})
}

// endJoin closes the step once the record says who has joined. The next join may begin in the same pass.
func (p *pass) endJoin(s *facts.OpenStep, n *facts.Node) result {
	if n.Record.Spec.Member == nil || n.Record.Spec.Join != nil || n.Record.Spec.ClientTraffic != v1alpha1.TrafficOpen {
		p.admit(n)
		p.describe(s, 1, "node %s has joined", n.Name)
		return act("node %s becomes a member by its record", n.Name)
	}
	p.closeStep(s, v1alpha1.StepSucceeded, "node "+n.Name)
	return done()
}

// closeStep writes down that a step is over.
func (p *pass) closeStep(s *facts.OpenStep, came v1alpha1.StepResult, message string) {
	p.plan.Current = nil
	p.putLedger(false, "the step is done", func(l *facts.Ledger) { l.Step = nil })
	p.plan.Finished = append(p.plan.Finished, v1alpha1.StepRecord{
		Step: string(s.Kind), Result: came, Message: message, StartedAt: metav1.NewTime(s.OpenedAt), FinishedAt: metav1.NewTime(p.now),
	})
}

// wants says that the spec describes a node. One that is refused says nothing.
func (p *pass) wants(name string) bool {
	return p.held || slices.ContainsFunc(p.wanted, func(w render.Wanted) bool { return w.Name == name })
}

// giveUpJoin takes the ticket of a node back that the spec no longer has, with its agent's acknowledgement or the proof that its pod is gone.
func (p *pass) giveUpJoin(s *facts.OpenStep, n *facts.Node) result {
	const why = "the spec no longer has the node"
	p.describe(s, 0, "the ticket of node %s is taken back: %s", n.Name, why)
	if n.Record.Spec.Join == nil {
		// Another operator may be about to write the ticket: after this it cannot.
		p.issueWithdrawn(s, n, why)
		return act("withdrawing the ticket of %s", n.Name)
	}
	if !withdrawn(n, s) {
		if p.withdrawTicket(n, why) {
			return act("withdrawing the ticket of %s", n.Name)
		}
		return wait("waiting for node %s to acknowledge that its ticket is withdrawn", n.Name)
	}
	p.putLedger(true, why, func(l *facts.Ledger) { l.Step = nil })
	p.plan.Finished = append(p.plan.Finished, v1alpha1.StepRecord{
		Step: string(s.Kind), Result: v1alpha1.StepWithdrawn, Message: "node " + n.Name + ": " + why, StartedAt: metav1.NewTime(s.OpenedAt), FinishedAt: metav1.NewTime(p.now),
	})
	p.event(corev1.EventTypeWarning, "NodeWithdrawn", "node %s does not join: %s", n.Name, why)
	return act("the join of %s is given up", n.Name)
}

// issueWithdrawn writes a ticket that has no effect.
func (p *pass) issueWithdrawn(s *facts.OpenStep, n *facts.Node, why string) {
	record := render.ForApply(p.owner(), n.Record)
	record.Spec.Join = p.ticket(s, n.Name)
	record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why, PodGone: podGone(n)}
	p.write(Write{Verb: Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: true, Why: why})
}

// joinDoubts are the reasons why a node does not count as joined yet: it is NORMAL with the tokens of its ticket, and every member that lives sees it so, with
// one schema.
func (p *pass) joinDoubts(s *facts.OpenStep, n *facts.Node) []string {
	v := views{hostIDs: map[string]string{}}
	own := p.ownView(&v, n.Name, s.Tickets[n.Name].Tokens)
	if own == nil {
		return v.doubts
	}
	if status := joinStatus(n, s); n.Record.Spec.Join != nil && (status == nil || status.FinishedAt == nil) {
		v.doubt(n.Name, n.Name, "%s has not reported that the join has finished", n.Name)
	}
	for _, name := range sortedKeys(p.Ledger.Members) {
		agent := p.Nodes[name].CurrentAgent()
		switch {
		case name == n.Name:
			continue
		case agent == nil || agent.Ring == nil:
			if e, known := own.ByHostID(p.Ledger.Members[name]); known && e.Live {
				v.doubt(name, n.Name, "%s lives and does not say what it sees: %s", name, guard.WhyNoAnswer(p.Nodes[name]))
			}
			continue
		case agent.Ring.SchemaVersion != own.SchemaVersion:
			v.doubt(name, n.Name, "%s and %s have different schemas", name, n.Name)
		case agent.Ring.Pending > 0:
			v.doubt(name, n.Name, "%s sees %d ranges on their way to new owners", name, agent.Ring.Pending)
		}
		v.sees(name, agent.Ring, n.Name, own.HostID, s.Tickets[n.Name].Tokens)
	}
	return v.doubts
}
