package procedure

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// The backoff between two attempts of a node's operation doubles from the first to the last.
const (
	firstBackoff = 5 * time.Second
	lastBackoff  = 10 * time.Minute
)

// HintsFlushed is how long hints may be in memory alone, where nobody counts them: Cassandra writes
// them to their files every ten seconds (hints_flush_period).
const HintsFlushed = 12 * time.Second

// Operation is what nodes of a step are to run, once each.
type Operation struct {
	// Purpose tells the operations of one step apart.
	Purpose   string
	Type      v1alpha1.OperationType
	Arguments *v1alpha1.OperationArguments
	// LastBackoff is the longest time between two attempts; 10 min if it is not set.
	LastBackoff time.Duration
	// NotAfter is when no node begins it any more; nil if there is no such time.
	NotAfter *metav1.Time
	// NeverPostponed says that the step itself decides how often it is attempted, and how long a
	// node that is down is waited for.
	NeverPostponed bool
	// Members are those that must be up; nil for all.
	Members []string
	// Also changes the record with the write that asks for the operation.
	Also func(*v1alpha1.CassandraNodeSpec)
}

// Progress is how far the operations of a step have come.
type Progress struct {
	// Finished are nodes; Waiting are the others, with what is waited for.
	Finished, Waiting []string
	// Begun counts the nodes that are asked in this pass.
	Begun int
}

// Result says that operations begin, or what is waited for.
func (p Progress) Result(format string, args ...any) plan.Result {
	if p.Begun > 0 {
		return plan.Acting(format, args...)
	}
	return plan.Waiting("waiting for %s", words.List(p.Waiting, 3))
}

// Run has nodes run an operation, all of them at once. What an operation came to is read from the
// records, so that it is resumed after any crash; one that failed, or that ended with its JVM, is
// attempted again under an id of its own.
func (s *Step) Run(o Operation, nodes []string) Progress {
	var p Progress
	refusals, held := s.blockers(o), false
	memberDown := ""
	if !o.NeverPostponed {
		memberDown = s.downForLong(refusals)
	}
	for _, name := range nodes {
		n := s.engine.view.Live(name)
		if n == nil {
			p.Waiting = append(p.Waiting, name+": its record is recreated")
			continue
		}
		id := s.Attempt(o, name)
		status := n.Record.Status.Operation(id)
		asked := status != nil || n.Record.Spec.Operation(id) != nil
		ended := status != nil && status.Phase.Final() && status.Phase != v1alpha1.OperationSucceeded
		switch {
		case status != nil && status.Phase == v1alpha1.OperationSucceeded:
			p.Finished = append(p.Finished, name)
		case memberDown != "" && (ended || !asked):
			s.postpone(o, name, memberDown)
		case !o.NeverPostponed && (ended || status == nil || AgentGone(n)) && s.engine.isDownForLong(s, n):
			s.postpone(o, name, "node "+name+" is down: "+assess.WhyDown(n))
		case len(refusals) > 0 && (ended || !asked):
			p.Waiting = append(p.Waiting, name+": "+refusals[0].Message)
			held = true
		case ended && status.Phase == v1alpha1.OperationWithdrawn:
			p.Waiting = append(p.Waiting, name+": it is asked again")
			s.AttemptAgain(name)
		case ended:
			why := cmp.Or(status.Message, string(status.Phase))
			p.Waiting = append(p.Waiting, name+": "+why)
			if !o.NeverPostponed && s.postponedAfterFailures(o, name, why) {
				continue
			}
			s.Notice(v1alpha1.NoticeOperationFailed, []string{name}, "%s failed on node %s: %s; it is retried", o.Type,
				name, why)
			s.retry(o, n, status)
		case asked && (n.CurrentAgent() == nil || status == nil && n.CurrentAgent().Process == facts.ProcessAbsent):
			why := assess.WhyDown(n)
			p.Waiting = append(p.Waiting, name+": "+why)
			s.Notice(v1alpha1.NoticeNodeDown, []string{name}, "%s waits until node %s is up: %s", o.Type, name, why)
		case status != nil:
			p.Waiting = append(p.Waiting, name+": "+cmp.Or(status.Message, "begun"))
		case !asked:
			if s.ask(o, n, id, p.Begun == 0) {
				p.Begun++
			}
			p.Waiting = append(p.Waiting, name)
		default:
			p.Waiting = append(p.Waiting, name+": it has not begun")
		}
	}
	if held {
		s.Refused(refusals)
	}
	return p
}

// Attempt is the id of the present attempt of a node's operation.
func (s *Step) Attempt(o Operation, node string) string { return s.open.AttemptID(o.Purpose, node) }

// Runs says that a node runs an operation of the step, by its own last word.
func (s *Step) Runs(n *facts.Node) bool {
	return !AgentGone(n) && slices.ContainsFunc(n.Record.Status.Operations, func(o v1alpha1.OperationStatus) bool {
		return ledger.OfIntent(o.ID) == s.ID() && !o.Phase.Final()
	})
}

// ask writes an operation into a record, and says whether there was room. Operations of other steps
// that have not ended stay.
func (s *Step) ask(o Operation, n *facts.Node, id string, live bool) bool {
	ended := func(have v1alpha1.OperationIntent) bool {
		status := n.Record.Status.Operation(have.ID)
		return ledger.OfIntent(have.ID) == s.ID() || status != nil && status.Phase.Final()
	}
	if len(slices.DeleteFunc(slices.Clone(n.Record.Spec.Operations), ended)) >= v1alpha1.MaxOperations {
		return false
	}
	return s.engine.updateRecord(n.Name, live, "operation "+string(o.Type), func(spec *v1alpha1.CassandraNodeSpec) {
		intent := v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: id, NotAfter: o.NotAfter}, Type: o.Type,
			Arguments: o.Arguments}
		spec.Operations = append(slices.DeleteFunc(slices.Clone(spec.Operations), ended), intent)
		if o.Also != nil {
			o.Also(spec)
		}
	})
}

// blockers are why an operation would be begun, or retried, in vain now: a repair, TRUNCATE, and
// rows that go to all their owners need the whole ring.
func (s *Step) blockers(o Operation) []guard.Refusal {
	about, rules := MemberNodes(s.engine.view), s.engine.rules.Repair
	switch {
	case o.Type == v1alpha1.OperationTruncate, o.Type == v1alpha1.OperationLoadTables:
		rules = s.engine.rules.Backup
	case o.Type != v1alpha1.OperationRepair:
		return nil
	case o.Members != nil:
		about.Names = o.Members
	}
	return guard.Check(about, rules...)
}

// retry counts an attempt that failed once its backoff is over: since the node says that it ended,
// and since it was asked for. The clock of the node may be behind by more than the backoff, and
// each attempt would follow the one before at once.
func (s *Step) retry(o Operation, n *facts.Node, status *v1alpha1.OperationStatus) {
	last := o.LastBackoff
	if last == 0 {
		last = lastBackoff
	}
	backoff := min(firstBackoff<<min(s.open.Attempts[n.Name], 10), last)
	if status.FinishedAt != nil {
		since := status.FinishedAt.Time
		if asked := s.open.AttemptedAt[n.Name]; asked.After(since) {
			since = asked
		}
		if left := since.Add(backoff).Sub(s.engine.view.Now); left > 0 {
			s.WakeIn(left)
			return
		}
	}
	s.AttemptAgain(n.Name)
}

// AttemptAgain has the next attempt of a node's operation get an id of its own.
func (s *Step) AttemptAgain(node string) {
	s.Write(true, "another attempt of node "+node, func(_ *ledger.Ring, own *ledger.Step) {
		if own.Attempts == nil {
			own.Attempts = map[string]int{}
		}
		if own.AttemptedAt == nil {
			own.AttemptedAt = map[string]time.Time{}
		}
		own.Attempts[node]++
		own.AttemptedAt[node] = s.engine.view.Now
	})
}

// ClearOperations takes operations that are over out of the records, and says whether any had to
// be.
func (s *Step) ClearOperations(nodes []string) bool { return s.engine.clearOperations(nodes) }

func (e *Engine) clearOperations(nodes []string) bool {
	written := false
	for _, name := range nodes {
		n := e.view.Live(name)
		if n == nil {
			continue
		}
		if len(Unfinished(n)) < len(n.Record.Spec.Operations) {
			e.updateRecord(name, false, "its operation is over", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.Operations = unfinished(n, spec.Operations)
			})
			written = true
		}
	}
	return written
}

// Unfinished are the operations in the record of a node that are not over: those of other steps
// among them. One that is not over cannot be taken away.
func Unfinished(n *facts.Node) []v1alpha1.OperationIntent {
	return unfinished(n, n.Record.Spec.Operations)
}

func unfinished(n *facts.Node, operations []v1alpha1.OperationIntent) []v1alpha1.OperationIntent {
	var out []v1alpha1.OperationIntent
	for _, o := range operations {
		if status := n.Record.Status.Operation(o.ID); status == nil || !status.Phase.Final() {
			out = append(out, o)
		}
	}
	return out
}

// WithdrawOperations of the step that a node has not begun.
func (s *Step) WithdrawOperations(node, why string) {
	if n := s.engine.view.Live(node); n != nil {
		s.engine.withdrawUnbegun(s.open, n, why)
	}
}

// Cancel withdraws the operations of the step, has those that run end where Cassandra can, and
// returns those that it still has to wait for: operations that run, and those that may begin before
// their node has seen the withdrawal.
func (s *Step) Cancel(why string) []string { return s.CancelOn(s.Nodes(), why) }

// CancelOn is Cancel for operations on any nodes.
func (s *Step) CancelOn(nodes []string, why string) []string {
	var out []string
	for _, name := range nodes {
		n := s.engine.view.Live(name)
		if n == nil {
			continue
		}
		s.WithdrawOperations(name, why)
		for _, o := range Unfinished(n) {
			begun := n.Record.Status.Operation(o.ID) != nil
			if ledger.OfIntent(o.ID) == s.ID() && (begun && !AgentGone(n) || !begun && n.CurrentAgent() != nil) {
				out = append(out, fmt.Sprintf("%s on node %s", o.Type, name))
			}
			if ledger.OfIntent(o.ID) == s.ID() && begun {
				s.engine.cancelBegun(n, &o, why)
			}
		}
	}
	return out
}

// cancelBegun asks the agent of a node to end an operation that runs. Cassandra ends no single
// repair, but all that a node has to do with: one that runs beside others is left to its end.
func (e *Engine) cancelBegun(n *facts.Node, o *v1alpha1.OperationIntent, why string) {
	if o.Withdraw != nil && o.Withdraw.Cancel || o.Type == v1alpha1.OperationRepair && e.repairsBeside(n.Name, o.ID) {
		return
	}
	e.updateRecord(n.Name, false, why, func(spec *v1alpha1.CassandraNodeSpec) {
		if intent := spec.Operation(o.ID); intent != nil {
			intent.Withdraw = &v1alpha1.Withdrawal{Reason: why, Cancel: true}
		}
	})
}

// repairsBeside says that a node has another repair to do than that of an id on a node. Other nodes
// that repair tables by the same step have no replica in common with it.
func (e *Engine) repairsBeside(name, id string) bool {
	step := e.view.Ledger.StepByID(ledger.OfIntent(id))
	apart := step != nil && step.Kind == ledger.RepairTables
	return slices.ContainsFunc(e.view.Records(), func(n *facts.Node) bool {
		return slices.ContainsFunc(Unfinished(n), func(o v1alpha1.OperationIntent) bool {
			return o.Type == v1alpha1.OperationRepair && o.ID != id &&
				(!apart || n.Name == name || ledger.OfIntent(o.ID) != step.ID)
		})
	})
}

// RunInTurn has rows of nodes run an operation, one row after the other, and says whether all have.
// What is for people: "datacenter dc2 is rebuilt".
func (s *Step) RunInTurn(o Operation, rows [][]string, what string) (plan.Result, bool) {
	finished, all := 0, 0
	for _, row := range rows {
		all += len(row)
	}
	for _, row := range rows {
		p := s.Run(o, row)
		finished += len(p.Finished)
		if len(p.Finished) < len(row) {
			s.Describe(finished*len(s.Wave())/all, "%s: %s", what, words.List(p.Waiting, 3))
			return p.Result("%s: %s on %s", what, o.Type, words.List(row, 3)), false
		}
	}
	s.Describe(len(s.Wave()), "%s: all are done", what)
	return plan.Nothing(), true
}

// RunOnOne has one of the nodes run an operation for all, and says whether it has: the node that
// has an operation of the step already, else the first that is up. What says of the node what it
// does.
func (s *Step) RunOnOne(o Operation, among []string, what string) (plan.Result, bool) {
	name := s.chosen(o, among)
	if name == "" {
		s.Describe(0, "a node %s", what)
		return plan.Waiting("waiting for a node that is up: it %s", what), false
	}
	p := s.Run(o, []string{name})
	s.Describe(0, "node %s %s: %s", name, what, words.List(p.Waiting, 1))
	if len(p.Finished) == 0 {
		return p.Result("node %s %s", name, what), false
	}
	return plan.Acting("node %s %s: done", name, what), true
}

// chosen is the node that is asked for the operation already, else the first that is up; empty if
// none is. One whose agent is gone does not count: what it ran has ended, and what it did not begin
// is withdrawn.
func (s *Step) chosen(o Operation, among []string) string {
	for _, name := range among {
		n := s.engine.view.Live(name)
		if n == nil || n.Record.Spec.Operation(s.Attempt(o, name)) == nil {
			continue
		}
		status := n.Record.Status.Operation(s.Attempt(o, name))
		succeeded := status != nil && status.Phase == v1alpha1.OperationSucceeded
		if succeeded || n.CurrentAgent() != nil || !AgentGone(n) {
			return name
		}
		s.WithdrawOperations(name, "the node is down, and another one is asked")
	}
	byCQL := o.Type == v1alpha1.OperationAlterSystemKeyspaces || o.Type == v1alpha1.OperationAlterKeyspaces
	for _, name := range s.engine.view.UpAmong(among) {
		n := s.engine.view.Live(name)
		if n != nil && (!byCQL || s.engine.view.Ledger.Traffic(n.Record.Spec.Datacenter) == v1alpha1.TrafficOpen) {
			return name
		}
	}
	return ""
}

// HasBegun says that a node has begun an operation of the step, or ended one.
func (s *Step) HasBegun(n *facts.Node) bool {
	return slices.ContainsFunc(n.Record.Status.Operations,
		func(o v1alpha1.OperationStatus) bool { return ledger.OfIntent(o.ID) == s.ID() })
}

// OneAtATime is a row for each node.
func OneAtATime(nodes []string) [][]string {
	out := make([][]string, len(nodes))
	for i, name := range nodes {
		out[i] = []string{name}
	}
	return out
}

// OnePerRack are rows that have at most one node of each rack. A node whose rack nobody knows just
// now, since its record is being recreated, is in a row of its own, the last: nothing is over
// without it.
func OnePerRack(v *assess.View, nodes []string) [][]string {
	var out, unknown [][]string
	at := map[[2]string]int{}
	for _, name := range nodes {
		n := v.Nodes[name]
		if n == nil || n.Record == nil {
			unknown = append(unknown, []string{name})
			continue
		}
		rack := [2]string{n.Record.Spec.Datacenter, n.Record.Spec.Rack}
		if at[rack] == len(out) {
			out = append(out, nil)
		}
		out[at[rack]] = append(out[at[rack]], name)
		at[rack]++
	}
	return append(out, unknown...)
}

// RepairRows are rows of nodes that repair at a time the ranges of which each is the first replica:
// at most one of each rack, and no more than a rack has. Where each range has a replica in every
// rack, a node takes part in one of these repairs at a time on average.
func RepairRows(v *assess.View, nodes []string) [][]string {
	rows := OnePerRack(v, nodes)
	var out [][]string
	for _, row := range rows {
		out = slices.AppendSeq(out, slices.Chunk(row, len(rows)))
	}
	return out
}

// FirstRack are those of the nodes that are in the first rack, in the order of the spec, that any
// of them is in.
func FirstRack(v *assess.View, names []string) []string {
	for _, w := range v.Wanted {
		if slices.Contains(names, w.Name) {
			return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				n := v.Nodes[name]
				return n == nil || n.Record == nil || n.Record.Spec.Datacenter != w.Datacenter ||
					n.Record.Spec.Rack != w.Rack
			})
		}
	}
	return nil
}

// Alter has one of the nodes alter keyspaces for all, and goes on to the next stage.
func (s *Step) Alter(o Operation, among []string, next ledger.Stage, what string) plan.Result {
	r, over := s.RunOnOne(o, among, what)
	if !over {
		return r
	}
	if s.ClearOperations(among) { // of others, too, that were asked before and failed
		return r
	}
	s.Advance(false, "a node "+what, next)
	return r
}

// RunOnce has a node run an operation that is attempted once, and says whether it is asked now.
func (s *Step) RunOnce(o Operation, n *facts.Node) bool {
	id := s.IntentID(o.Purpose, n.Name)
	return n.Record.Status.Operation(id) == nil && s.ask(o, n, id, true)
}
