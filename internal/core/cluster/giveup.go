package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// noLonger is why a node is given up.
const noLonger = "the spec no longer has the node"

// wants says that the spec describes a node. One that is refused says nothing.
func (p *pass) wants(name string) bool {
	return p.held || p.describesNode(name)
}

func (p *pass) describesNode(name string) bool {
	return slices.ContainsFunc(p.wanted, func(w render.Wanted) bool { return w.Name == name })
}

// isGivenUp says that a node with a ticket is not to join any more, and has not. A ticket that was taken back has no effect: its node is given up to the end even
// if the spec has it again, and even if the record that said so was lost and is made anew: the agent remembers.
func (p *pass) isGivenUp(name string) bool {
	n := p.Nodes[name]
	switch {
	case recordOf(n) == nil:
		return !p.wants(name) // otherwise its record is made again
	case n.Record.DeletionTimestamp != nil || p.joined(n):
		return false
	}
	return !p.wants(name) || gaveBack(n) || n.Record.Spec.Join != nil && n.Record.Spec.Join.Withdraw != nil
}

// whyGivenUp is why a node is given up: that somebody no longer wants it, or what its ticket was taken back for before, such as that it did not come in time. Where
// only the agent remembers that, it has said why.
func whyGivenUp(n *facts.Node) string {
	switch record := recordOf(n); {
	case record != nil && record.Spec.Join != nil && record.Spec.Join.Withdraw != nil:
		return record.Spec.Join.Withdraw.Reason
	case record != nil && gaveBack(n) && record.Status.Join.Message != "":
		return record.Status.Join.Message
	default:
		return noLonger
	}
}

// giveUpWave takes the tickets back of the nodes that are given up, and goes on without them. Without anybody the step is over.
func (p *pass) giveUpWave(s *ledger.Step) result {
	var out, waiting []string
	for _, name := range s.Wave() {
		if !p.isGivenUp(name) {
			continue
		}
		over, r := p.takeBack(s, name)
		switch {
		case over:
			out = append(out, name)
		case r.outcome == plan.Act:
			p.describe(s, 0, "%s", r.message)
			return r // the next one is looked at when this is written
		default:
			waiting = append(waiting, r.message)
		}
	}
	if len(out) == 0 {
		p.describe(s, 0, "%s", list(waiting, 3))
		return wait("%s", list(waiting, 3))
	}
	why := whyGivenUp(p.Nodes[out[0]])
	for _, name := range out {
		p.event(corev1.EventTypeWarning, "NodeWithdrawn", "node %s does not join: %s", name, whyGivenUp(p.Nodes[name]))
	}
	if len(out) == len(s.Wave()) {
		p.closeStep(s, true, v1alpha1.StepWithdrawn, plural(len(out), "node")+" ("+list(out, 3)+"): "+why)
		return act("the join of %s is given up", list(out, 3))
	}
	p.putLedger(true, why, func(l *ledger.Ledger) { l.Step.Withdrawn = append(l.Step.Withdrawn, out...) })
	return act("goes on without %s", list(out, 3))
}

// takeBack takes the ticket of a node back that has not joined, and says whether nobody can go by it any more.
func (p *pass) takeBack(s *ledger.Step, name string) (bool, result) {
	n := p.Nodes[name]
	why := whyGivenUp(n)
	switch {
	case recordOf(n) == nil && (n == nil || n.Pod == nil):
		return true, done() // its ticket was in the record
	case recordOf(n) == nil:
		p.block(string(s.Kind), v1alpha1.BlockedAbandonedPodStillRunning, []string{name},
			"node %s has no record and the spec does not describe it, but its pod may still be joining: waits until you delete the pod or describe the node again", name)
		return false, wait("until pod %s is deleted, or the spec has the node again", name)
	case n.Record.Spec.Join == nil:
		// Another operator may be about to write the ticket: after this it cannot.
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.Join = p.ticket(s, name)
		record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why, PodGone: podGone(n)}
		p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: true, Why: why})
	case withdrawn(n, s):
		return true, done()
	case p.withdrawTicket(n, why):
	case n.Pod != nil && n.Pod.DeletionTimestamp == nil && neverAnswers(n):
		w := deletePod(n.Pod, "its agent cannot acknowledge that its ticket is withdrawn, since its Cassandra container does not start")
		w.Live = true
		p.write(w)
	default:
		return false, wait("waiting for node %s to acknowledge that its ticket is withdrawn: %s", name, why)
	}
	return false, act("withdrawing the ticket of %s: %s", name, why)
}

// neverAnswers says that the agent of a node acknowledges nothing as things are: it waits for the Cassandra container, which does not start, or is not there.
func neverAnswers(n *facts.Node) bool {
	agent := n.CurrentAgent()
	return fails(n) && (agent == nil || agent.Process != facts.ProcessAbsent)
}

// goesWithoutPod says that no pod is made for a node any more: its ticket is being taken back, and without a pod nobody has it.
func (p *pass) goesWithoutPod(name string) bool {
	return !p.lost && p.givesUp(name) && p.isGivenUp(name)
}

// withdrawTicket asks for the ticket of a node back, and says whether that had to be written.
func (p *pass) withdrawTicket(n *facts.Node, why string) bool {
	gone := podGone(n)
	if w := n.Record.Spec.Join.Withdraw; w != nil && (gone == "" || w.PodGone == gone) {
		return false
	}
	record := render.ForApply(p.owner(), n.Record)
	record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why, PodGone: gone}
	p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: true, Why: why})
	return true
}

// withdrawn says that a node's ticket has no effect any more: its agent has acknowledged it, or the pod that had the ticket is gone and none has run since
// that could take it up. An agent that starts later reads the record before it goes by a ticket.
func withdrawn(n *facts.Node, s *ledger.Step) bool {
	if status := joinStatus(n, s); status != nil && status.WithdrawnAt != nil {
		return true
	}
	j := n.Record.Spec.Join
	if j == nil || j.Withdraw == nil || j.Withdraw.PodGone == "" {
		return false
	}
	return n.Pod == nil || n.Pod.UID != j.Withdraw.PodGone && n.Pod.Spec.NodeName == ""
}

// podGone is the uid of the pod that last spoke for the node, if that pod no longer exists. A status that was lost does not say which one that was; it is gone
// if no pod of the node has a host.
func podGone(n *facts.Node) types.UID {
	switch last := n.Record.Status.PodUID; {
	case last != "" && (n.Pod == nil || n.Pod.UID != last):
		return last
	case last == "" && (n.Pod == nil || n.Pod.Spec.NodeName == ""):
		return podForgotten
	default:
		return ""
	}
}

// podForgotten stands for the uid of a pod that nothing remembers.
const podForgotten = types.UID("forgotten")
