package procedure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/node/operation"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// mostFailures is how often an operation of Maintenance fails on a node before it is postponed
// there.
const mostFailures = 5

// Maintain continues the open steps of Maintenance. While a procedure of a higher class is ready to
// begin they are suspended: no operation begins, and those that have not begun are withdrawn. When
// no step of a higher class is open or ready, what was suspended is resumed.
func (e *Engine) Maintain() plan.Result {
	e.noticePostponed()
	if l := e.view.Ledger; l.Step != nil || len(l.Maintenance)+len(l.Suspended) == 0 {
		return plan.Nothing()
	}
	if p := e.ready(); p != nil {
		if e.running = e.quiesce(); len(e.running) > 0 {
			e.nameLong(p.Kind)
			return plan.Waiting("suspending for %s: waiting for %s", p.Kind, words.List(e.running, 3))
		}
		return plan.Nothing()
	}
	if differ := e.ReleasesDiffer(); len(differ) > 0 {
		e.running = e.quiesce()
		return plan.Waiting("suspended: %s", differ[0].Message)
	}
	if len(e.view.Ledger.Suspended) > 0 {
		e.putLedger(true, "suspended steps are resumed", (*ledger.Ledger).ResumeSuspended)
		if s := e.view.Ledger.Step; s != nil {
			return plan.Acting("resuming %s", s.Kind)
		}
	}
	var messages []string
	out := plan.Nothing()
	for _, s := range e.view.Ledger.Maintenance {
		r := e.advance(s)
		if r.Outcome == plan.Done {
			continue
		}
		messages = append(messages, r.Message)
		if out.Outcome != plan.Act {
			out.Outcome = r.Outcome
		}
	}
	out.Message = strings.Join(messages, "; ")
	return out
}

// Suspended does what cannot wait until Maintain continues a step that is suspended, or is to be.
func (e *Engine) Suspended() {
	l := e.view.Ledger
	for _, s := range slices.Concat(l.Suspended, l.Maintenance) {
		p := e.procedure(s.Kind)
		if p != nil && p.Suspended != nil && (slices.Contains(l.Suspended, s) || e.ready() != nil ||
			len(e.ReleasesDiffer()) > 0) {
			p.Suspended(e.view, &Step{e, s})
		}
	}
}

// ready is the first procedure above Maintenance that begins as soon as lower steps are suspended;
// nil if there is none.
func (e *Engine) ready() *Procedure {
	if !e.view.CanChange() || e.view.Cluster.Spec.Paused {
		return nil
	}
	for i := range e.procedures {
		p := &e.procedures[i]
		if p.AsksLast || p.Class == ledger.Maintenance || e.isOpen(p.Kind) {
			continue
		}
		due := e.due(p)
		if due == nil || len(due.Refusals) > 0 || due.Wait != "" || due.Open == nil {
			continue
		}
		if _, refusals := due.opening(); len(refusals) == 0 {
			return p
		}
	}
	return nil
}

// opening is what Open came to. It is asked once.
func (p *Proposal) opening() (*Opening, []guard.Refusal) {
	if !p.asked {
		p.opened, p.refused = p.Open()
		p.asked = true
	}
	return p.opened, p.refused
}

// quiesce withdraws what the steps of Maintenance have asked for and has not begun, and says what
// still runs.
func (e *Engine) quiesce() []string {
	var waiting []string
	for _, s := range e.view.Ledger.Maintenance {
		for _, n := range e.view.Records() {
			waiting = append(waiting, e.quiesceOn(s, n)...)
		}
	}
	return waiting
}

// namedAfter is how long an operation of Maintenance runs, which others wait for, until it is
// named.
const namedAfter = 10 * time.Minute

// nameLong names what has held up a procedure for long. It is waited for all the same: a restart
// would have it begin again, and what a repair has not restored yet would stay missing from one
// change of the spec to the next.
func (e *Engine) nameLong(kind ledger.Kind) {
	if len(e.long) > 0 {
		e.draft.Block(string(kind), v1alpha1.BlockedMaintenanceRunning, e.long, "%s runs, and is not cut off. Waits "+
			"until it ends: nodetool stop CLEANUP on its node ends a cleanup, nodetool stop VALIDATION on the "+
			"replicas a repair; it is attempted again afterwards", words.List(e.running, 3))
	}
}

func (e *Engine) quiesceOn(s *ledger.Step, n *facts.Node) []string {
	if AgentGone(n) {
		return nil
	}
	var waiting []string
	for _, o := range Unfinished(n) {
		if ledger.OfIntent(o.ID) != s.ID || o.Type == v1alpha1.OperationUpload ||
			o.Type == v1alpha1.OperationStageTables || o.Type == v1alpha1.OperationClearSnapshot {
			continue // it touches nothing that Cassandra uses, and goes on where it was: nobody waits for it
		}
		what := fmt.Sprintf("%s on node %s", o.Type, n.Name)
		if status := n.Record.Status.Operation(o.ID); status != nil && status.StartedAt != nil {
			what += " since " + status.StartedAt.UTC().Format(time.RFC3339)
			if left := status.StartedAt.Add(namedAfter).Sub(e.view.Now); left > 0 {
				e.draft.WakeIn(left)
			} else {
				e.long = append(e.long, n.Name)
			}
		}
		waiting = append(waiting, what)
	}
	// the room that a snapshot takes may be needed now
	e.withdrawUnbegun(s, n, "a step of a higher class is about to begin", v1alpha1.OperationClearSnapshot)
	return waiting
}

// withdrawUnbegun asks the agent of a node not to begin what a step has asked it for, but for some
// types.
func (e *Engine) withdrawUnbegun(s *ledger.Step, n *facts.Node, why string, but ...v1alpha1.OperationType) {
	unbegun := func(o *v1alpha1.OperationIntent) bool {
		return ledger.OfIntent(o.ID) == s.ID && o.Withdraw == nil && n.Record.Status.Operation(o.ID) == nil &&
			!slices.Contains(but, o.Type)
	}
	if !slices.ContainsFunc(n.Record.Spec.Operations, func(o v1alpha1.OperationIntent) bool { return unbegun(&o) }) {
		return
	}
	e.updateRecord(n.Name, true, why, func(spec *v1alpha1.CassandraNodeSpec) {
		for i := range spec.Operations {
			if o := &spec.Operations[i]; unbegun(o) {
				o.Withdraw = &v1alpha1.Withdrawal{Reason: why}
			}
		}
	})
}

// AgentGone says that the pod which last spoke for a node no longer exists: what ran in it has
// ended.
func AgentGone(n *facts.Node) bool {
	return n.Record.Status.PodUID != "" && (n.Pod == nil || n.Pod.UID != n.Record.Status.PodUID)
}

// inTheWay names an open step of Maintenance that a new one has to wait for: one with an operation
// that conflicts on one of its nodes, or as many as there may be. One that waits for a user is in
// nobody's way, and one that is about to truncate tables in everybody's.
func (e *Engine) inTheWay(p *Procedure, nodes []string) string {
	open := e.view.Ledger.Maintenance
	if len(open) >= ledger.MostMaintenance {
		return fmt.Sprintf("%d steps of maintenance are open", len(open))
	}
	for _, s := range open {
		other := e.procedure(s.Kind)
		if other == nil {
			return string(s.Kind) + " is open"
		}
		conflict := slices.ContainsFunc(p.Runs, func(a v1alpha1.OperationType) bool {
			return slices.ContainsFunc(other.Runs, func(b v1alpha1.OperationType) bool {
				return operation.Conflict(a, b)
			})
		})
		shared := slices.ContainsFunc(nodes, func(n string) bool { return slices.Contains(s.Wave(), n) })
		if s.Stage == ledger.StageTruncate || conflict && shared && s.Stage != ledger.StageConfirm {
			return fmt.Sprintf("%s is open on the same nodes", s.Kind)
		}
	}
	return ""
}

// postponedAfterFailures postpones an operation of Maintenance that failed too often on a node, and
// says whether it did.
func (s *Step) postponedAfterFailures(o Operation, node, why string) bool {
	if s.open.Class != ledger.Maintenance || s.open.Attempts[node]+1 < mostFailures {
		return false
	}
	s.postpone(o, node, fmt.Sprintf("it failed %d times, at last: %s", mostFailures, why))
	return true
}

// postpone leaves an operation of Maintenance for later on a node.
func (s *Step) postpone(o Operation, node, why string) {
	now, kind := s.engine.view.Now, s.Kind()
	s.Write(true, fmt.Sprintf("%s is postponed on node %s", o.Type, node),
		func(r *ledger.Ring, own *ledger.Step) {
			own.Withdrawn = append(own.Withdrawn, node)
			r.Postpone(kind, node, why, now)
		})
	s.ClearOperations([]string{node})
	s.WithdrawOperations(node, "it is postponed: "+why)
	s.Warn("OperationPostponed", "%s is postponed on node %s for %s: %s", o.Type, node, ledger.PostponedFor, why)
}

// OpenOn opens a step of Maintenance on nodes. What it does is for people: "repairing".
func OpenOn(kind ledger.Kind, nodes []string, what string) func() (*Opening, []guard.Refusal) {
	what += " " + words.Plural(len(nodes), "node")
	return func() (*Opening, []guard.Refusal) {
		return &Opening{Stage: ledger.StageOperations, Nodes: nodes, Why: string(kind),
			Event: string(kind), EventMessage: what, ResultMessage: what}, nil
	}
}

// EndMaintenance closes a step whose operation has succeeded on every node that is left in it.
// Change takes those nodes out of what is due.
func (s *Step) EndMaintenance(why string, change func(r *ledger.Ring, done func(node string) bool)) plan.Result {
	names, kind := s.Wave(), s.Kind()
	if s.ClearOperations(names) {
		return plan.Acting("the operations are over")
	}
	s.Write(false, why, func(r *ledger.Ring, _ *ledger.Step) {
		r.Resume(kind, names...)
		change(r, func(node string) bool { return slices.Contains(names, node) })
	})
	if len(names) == 0 {
		s.Close(false, v1alpha1.StepWithdrawn, "every node was down, or it failed there")
		return plan.Nothing()
	}
	s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(names), "node"))
	return plan.Nothing()
}

// DownTimeout is how long an operation of Maintenance waits for a node that is down, and a backup
// until it leaves one out.
const DownTimeout = 10 * time.Minute

// isDownForLong says that Maintenance does not wait for a node any more.
func (e *Engine) isDownForLong(s *Step, n *facts.Node) bool {
	if s.open.Class != ledger.Maintenance {
		return false
	}
	left, down := DownForLong(e.view, n)
	if left > 0 {
		s.WakeIn(left)
	}
	return down
}

// DownForLong says that a node is not NORMAL, and that its pod has not been ready for a while. Left
// is in how long that may be so; 0 if it is, or if the node is not known to be down.
func DownForLong(v *assess.View, n *facts.Node) (left time.Duration, down bool) {
	if n.Pod == nil || len(v.UpAmong([]string{n.Name})) > 0 {
		return 0, false
	}
	since := n.Pod.CreationTimestamp.Time
	for _, c := range n.Pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return 0, false // it cannot be asked, which does not mean that it is down
		case c.Type == corev1.PodReady && c.LastTransitionTime.After(since):
			since = c.LastTransitionTime.Time
		}
	}
	if since.IsZero() {
		return 0, false
	}
	left = max(0, since.Add(DownTimeout).Sub(v.Now))
	return left, left == 0
}

// downForLong is why Maintenance does not wait any more for what refuses its operations: a member
// that is down for long. Empty if it waits.
func (s *Step) downForLong(refusals []guard.Refusal) string {
	for _, r := range refusals {
		for _, name := range r.Nodes {
			if n := s.engine.view.Live(name); r.Reason == v1alpha1.BlockedMemberDown && n != nil &&
				s.engine.isDownForLong(s, n) {
				return r.Message
			}
		}
	}
	return ""
}

// noticePostponed names in the status what failed too often and stays due.
func (e *Engine) noticePostponed() {
	for _, p := range e.view.Ledger.Postponed {
		e.draft.Notice(v1alpha1.NoticeOperationPostponed, []string{p.Node},
			"%s is postponed on node %s until %s, and longer while a node that it needs is down: %s",
			p.Kind, p.Node, p.Since.Add(ledger.PostponedFor).UTC().Format("2006-01-02T15:04:05Z07:00"),
			p.Message)
		if left := p.Since.Add(ledger.PostponedFor).Sub(e.view.Now); left > 0 {
			e.draft.WakeIn(left)
		}
	}
}
