package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// cleanup has members drop what they no longer own, once nobody joins any more: the nodes of one rack at a time, so that the others serve at full speed.
func cleanup(p *pass) result {
	if !p.canChange() {
		return done()
	}
	due := slices.DeleteFunc(slices.Clone(p.Ledger.Cleanup), func(name string) bool { return p.Ledger.Members[name] == "" })
	if len(due) == 0 {
		return done()
	}
	if p.Cluster.Spec.Automation.Cleanup == v1alpha1.AutomationRecommend {
		p.recommend(string(v1alpha1.OperationCleanup), due, "nodes have joined, and these hold data that they no longer own; run nodetool cleanup on them, or set automation.cleanup to Automatic")
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true; %s to clean up", plural(len(due), "node"))
	}
	names := p.firstRack(p.upAmong(due))
	if len(names) == 0 {
		p.notice(v1alpha1.NoticeNodeDown, due, "node %s holds data that it no longer owns, and is down: cleanup waits until it is up", list(due, 3))
		return wait("no node that is to be cleaned up is up")
	}
	if refusals := guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: p.upAmong(p.members())}, guard.Cleanup...); len(refusals) > 0 {
		return p.refused(string(ledger.Cleanup), refusals)
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	return p.openOperations(ledger.Cleanup, ledger.StageOperations, names, "%s drop what they no longer own")
}

// openOperations writes a step down in which nodes carry out operations, and begins it.
func (p *pass) openOperations(kind ledger.Kind, stage ledger.Stage, names []string, words string) result {
	p.open(kind, stage, string(kind), func(l *ledger.Ledger) {
		l.Step.Tickets = map[string]ledger.Ticket{}
		for _, name := range names {
			l.Step.Tickets[name] = ledger.Ticket{}
		}
	})
	p.event(corev1.EventTypeNormal, string(kind), words, plural(len(names), "node"))
	p.stage(p.Ledger.Step)
	return act(words, plural(len(names), "node"))
}

// firstRack are those of the nodes that are in the first rack, in the order of the spec, that any of them is in.
func (p *pass) firstRack(names []string) []string {
	for _, w := range p.wanted {
		if slices.Contains(names, w.Name) {
			return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !p.inRack(name, w) })
		}
	}
	return nil
}

func (p *pass) inRack(name string, w render.Wanted) bool {
	record := recordOf(p.Nodes[name])
	return record != nil && record.Spec.Datacenter == w.Datacenter && record.Spec.Rack == w.Rack
}

// operationPatience is how long a step waits for a node that is down before its operation has begun.
const operationPatience = 10 * time.Minute

// cleanUp continues the clean-up of a rack.
func (p *pass) cleanUp(s *ledger.Step) result {
	if p.dropAbsent(s) {
		return act("a node that is down is left for later")
	}
	names := s.Wave()
	o := p.operate(s, "cleanup", names, v1alpha1.OperationCleanup, nil)
	p.describe(s, len(o.finished), "%s drop what they no longer own: %s", plural(len(names), "node"), list(o.waiting, 3))
	if len(o.finished) < len(names) {
		return ifWritten(o, "%s drop what they no longer own", plural(o.writes, "node"))
	}
	if p.clearOperations(names) {
		return act("the operations are over")
	}
	p.putLedger(false, "they have dropped what they no longer own", func(l *ledger.Ledger) {
		l.Cleanup = slices.DeleteFunc(l.Cleanup, func(name string) bool { return slices.Contains(names, name) })
	})
	if len(names) == 0 {
		p.closeStep(s, false, v1alpha1.StepWithdrawn, "every node was down")
		return done()
	}
	p.closeStep(s, false, v1alpha1.StepSucceeded, plural(len(names), "node"))
	return done()
}

// dropAbsent takes a node out of a step's wave that was down for long and whose operation has not begun: others are not to wait for it. It is cleaned up when it
// is back.
func (p *pass) dropAbsent(s *ledger.Step) bool {
	left := s.StageSince.Add(operationPatience).Sub(p.now)
	for _, name := range s.Wave() {
		n := p.Nodes[name]
		if n.CurrentAgent() != nil || recordOf(n) == nil || n.Record.DeletionTimestamp != nil {
			continue
		}
		if slices.ContainsFunc(n.Record.Status.Operations, func(o v1alpha1.OperationStatus) bool { return stepOfIntent(o.ID) == s.ID }) {
			continue // it has begun, and may go on
		}
		if left > 0 {
			p.wakeIn(left)
			return false
		}
		p.putLedger(true, "node "+name+" is down", func(l *ledger.Ledger) { l.Step.Withdrawn = append(l.Step.Withdrawn, name) })
		p.clearOperations([]string{name})
		return true
	}
	return false
}

// recommend shows an operation that a person should start.
func (p *pass) recommend(operation string, nodes []string, message string) {
	p.plan.Recommended = append(p.plan.Recommended, v1alpha1.Recommendation{Operation: operation, Nodes: nodes, Message: message})
}
