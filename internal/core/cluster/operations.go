package cluster

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// longestOperationPause is the longest time between two tries of a node's operation.
const longestOperationPause = 10 * time.Minute

// operated is how far the operations of a step have come.
type operated struct {
	finished, waiting []string
	writes            int
}

// operate has nodes of a step carry out one operation each: all of the given ones at once. What an operation came to is read from the records, so that it is
// resumed after any crash; one that failed, or that ended with its JVM, is tried again with an id of its own.
func (p *pass) operate(s *facts.OpenStep, purpose string, names []string, kind v1alpha1.OperationType, arguments *v1alpha1.OperationArguments) operated {
	var o operated
	for _, name := range names {
		n := p.Nodes[name]
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil {
			o.waiting = append(o.waiting, name+": its record is made again")
			continue
		}
		id := s.IntentID(attempt(purpose, s.Tries[name]), name)
		status := n.Record.Status.Operation
		begun := status != nil && status.ID == id
		intent := n.Record.Spec.Operation
		switch {
		case begun && status.Phase == v1alpha1.OperationSucceeded:
			o.finished = append(o.finished, name)
		case begun && (status.Phase == v1alpha1.OperationFailed || status.Phase == v1alpha1.OperationInterrupted || status.Phase == v1alpha1.OperationWithdrawn):
			o.waiting = append(o.waiting, name+": "+orElse(status.Message, string(status.Phase)))
			p.block(string(s.Kind), "the_operation_succeeds", []string{name}, "%s on node %s: %s; it is tried again", kind, name, orElse(status.Message, string(status.Phase)))
			p.tryAgain(s, n, status)
		case begun:
			o.waiting = append(o.waiting, name+": "+orElse(status.Message, "begun"))
		case intent == nil || intent.ID != id:
			record := render.ForApply(p.owner(), n.Record)
			record.Spec.Operation = &v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: id}, Type: kind, Arguments: arguments}
			p.write(Write{Verb: Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: o.writes == 0, Why: "operation " + string(kind)})
			o.writes++
			o.waiting = append(o.waiting, name)
		default:
			o.waiting = append(o.waiting, name+": it has not begun")
		}
	}
	return o
}

// tryAgain counts a try that failed once its pause is over: twice as long after each.
func (p *pass) tryAgain(s *facts.OpenStep, n *facts.Node, status *v1alpha1.OperationStatus) {
	pause := min(operationPause<<min(s.Tries[n.Name], 10), longestOperationPause)
	if status.FinishedAt != nil {
		if left := status.FinishedAt.Add(pause).Sub(p.now); left > 0 {
			p.wakeIn(left)
			return
		}
	}
	p.putLedger(true, "another try of node "+n.Name, func(l *facts.Ledger) {
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
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil || n.Record.Spec.Operation == nil {
			continue
		}
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.Operation = nil
		p.write(Write{Verb: Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "its operation is over"})
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
