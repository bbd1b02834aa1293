package cluster

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// longestOperationPause is the longest time between two tries of a node's operation.
const longestOperationPause = 10 * time.Minute

// operated is how far the operations of a step have come.
type operated struct {
	finished, waiting []string
	writes            int
}

// tooEarly is why an operation would be begun, or tried again, in vain for now: a repair needs the whole ring.
func (p *pass) tooEarly(kind v1alpha1.OperationType) []guard.Refusal {
	if kind != v1alpha1.OperationRepair {
		return nil
	}
	return guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: p.members()}, guard.Repair...)
}

// operate has nodes of a step carry out one operation each: all of the given ones at once. What an operation came to is read from the records, so that it is
// resumed after any crash; one that failed, or that ended with its JVM, is tried again with an id of its own.
func (p *pass) operate(s *ledger.Step, purpose string, names []string, kind v1alpha1.OperationType, arguments *v1alpha1.OperationArguments) operated {
	var o operated
	refusals, held := p.tooEarly(kind), false
	for _, name := range names {
		n := p.Nodes[name]
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil {
			o.waiting = append(o.waiting, name+": its record is made again")
			continue
		}
		id := s.IntentID(attempt(purpose, s.Tries[name]), name)
		status := n.Record.Status.Operation(id)
		begun := status != nil
		asked := begun || n.Record.Spec.Operation(id) != nil
		ended := begun && (status.Phase == v1alpha1.OperationFailed || status.Phase == v1alpha1.OperationInterrupted || status.Phase == v1alpha1.OperationWithdrawn)
		switch {
		case begun && status.Phase == v1alpha1.OperationSucceeded:
			o.finished = append(o.finished, name)
		case len(refusals) > 0 && (ended || !asked):
			o.waiting = append(o.waiting, name+": "+refusals[0].Message)
			held = true
		case ended:
			o.waiting = append(o.waiting, name+": "+orElse(status.Message, string(status.Phase)))
			p.notice(v1alpha1.NoticeOperationFailed, []string{name}, "%s failed on node %s: %s; it is retried", kind, name, orElse(status.Message, string(status.Phase)))
			p.tryAgain(s, n, status)
		case n.CurrentAgent() == nil && asked:
			why := guard.WhyNoAnswer(n)
			o.waiting = append(o.waiting, name+": "+why)
			p.notice(v1alpha1.NoticeNodeDown, []string{name}, "%s waits until node %s is up: %s", kind, name, why)
		case begun:
			o.waiting = append(o.waiting, name+": "+orElse(status.Message, "begun"))
		case !asked:
			record := render.ForApply(p.owner(), n.Record)
			record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}, Type: kind, Arguments: arguments}}
			p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: o.writes == 0, Why: "operation " + string(kind)})
			o.writes++
			o.waiting = append(o.waiting, name)
		default:
			o.waiting = append(o.waiting, name+": it has not begun")
		}
	}
	if held {
		p.refused(string(s.Kind), refusals)
	}
	return o
}

// tryAgain counts a try that failed once its pause is over: twice as long after each.
func (p *pass) tryAgain(s *ledger.Step, n *facts.Node, status *v1alpha1.OperationStatus) {
	pause := min(operationPause<<min(s.Tries[n.Name], 10), longestOperationPause)
	if status.FinishedAt != nil {
		if left := status.FinishedAt.Add(pause).Sub(p.now); left > 0 {
			p.wakeIn(left)
			return
		}
	}
	p.putLedger(true, "another try of node "+n.Name, func(l *ledger.Ledger) {
		if l.Step.Tries == nil {
			l.Step.Tries = map[string]int{}
		}
		l.Step.Tries[n.Name]++
	})
}

// clearOperations takes operations that are over out of the records, and says whether any had to be.
func (p *pass) clearOperations(names []string) bool {
	written := false
	for _, name := range names {
		n := p.Nodes[name]
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil || len(n.Record.Spec.Operations) == 0 {
			continue
		}
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.Operations = nil
		p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "its operation is over"})
		written = true
	}
	return written
}

// upAmong are those of the nodes that answer and are NORMAL.
func (p *pass) upAmong(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		agent := p.Nodes[name].CurrentAgent()
		return agent == nil || agent.Ring == nil || agent.Ring.Mode != facts.ModeNormal
	})
}

// ifWritten says that operations were begun, or what is waited for.
func ifWritten(o operated, format string, args ...any) result {
	if o.writes > 0 {
		return act(format, args...)
	}
	return wait("waiting for %s", list(o.waiting, 3))
}

// inTurn has rows of nodes carry out an operation, one row after the other, and says whether all have.
func (p *pass) inTurn(s *ledger.Step, purpose string, rows [][]string, kind v1alpha1.OperationType, arguments *v1alpha1.OperationArguments, words string) (result, bool) {
	finished := 0
	for _, row := range rows {
		o := p.operate(s, purpose, row, kind, arguments)
		finished += len(o.finished)
		if len(o.finished) < len(row) {
			p.describe(s, finished, "%s: %s", words, list(o.waiting, 3))
			return ifWritten(o, "%s: %s on %s", words, kind, list(row, 3)), false
		}
	}
	p.describe(s, finished, "%s: all are done", words)
	return done(), true
}

// inRows has one node in each row.
func inRows(names []string) [][]string {
	out := make([][]string, len(names))
	for i, name := range names {
		out[i] = []string{name}
	}
	return out
}

// alteration is a change of keyspaces, which one node makes for all.
type alteration struct {
	purpose   string
	kind      v1alpha1.OperationType
	arguments *v1alpha1.OperationArguments
	// next is the stage that follows, and words say of the node what it does.
	next  ledger.Stage
	words string
}

// alter has one of the nodes alter keyspaces, and goes on to the next stage: the node that has an operation of the step already, else the first that is up.
func (p *pass) alter(s *ledger.Step, among []string, a alteration) result {
	name := p.administered(s, among)
	if name == "" {
		p.describe(s, 0, "a node %s", a.words)
		return wait("for a node that is up: it %s", a.words)
	}
	o := p.operate(s, a.purpose, []string{name}, a.kind, a.arguments)
	p.describe(s, 0, "node %s %s: %s", name, a.words, list(o.waiting, 1))
	if len(o.finished) == 0 {
		return ifWritten(o, "node %s %s", name, a.words)
	}
	if p.clearOperations([]string{name}) {
		return act("node %s is done: it %s", name, a.words)
	}
	p.putLedger(false, "a node "+a.words, func(l *ledger.Ledger) { advance(l.Step, a.next, p.now) })
	return act("node %s %s: done", name, a.words)
}

// administered is the node that has an operation of the step, else the first that is up; empty if none is.
func (p *pass) administered(s *ledger.Step, among []string) string {
	for _, name := range among {
		if n := p.Nodes[name]; recordOf(n) != nil && slices.ContainsFunc(n.Record.Spec.Operations, func(o v1alpha1.OperationIntent) bool { return stepOfIntent(o.ID) == s.ID }) {
			return name
		}
	}
	if up := p.upAmong(among); len(up) > 0 {
		return up[0]
	}
	return ""
}
