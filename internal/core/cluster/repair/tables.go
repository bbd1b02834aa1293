package repair

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	core "helenus.io/helenus/internal/core/repair"
	"helenus.io/helenus/internal/core/words"
)

// purpose of the one operation that a node is asked for by a step.
const purpose = "tables"

// State of a step: a wave of units that run side by side.
type State struct {
	Units []core.Unit `json:"units"`
}

// Tables repairs every table before its deletions expire. A step is a wave of units, no two of
// which have a replica in common, and is about all of their replicas.
func Tables(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.RepairTables, Class: ledger.Maintenance, Runs: []v1alpha1.OperationType{v1alpha1.OperationRepair},
		Due:         func(v *assess.View) *procedure.Proposal { return dueTables(v, rules) },
		Stages:      []procedure.Stage{{Name: ledger.StageOperations, Run: runTables(rules)}},
		Understands: procedure.Understands[State],
	}
}

func dueTables(v *assess.View, rules guard.Rules) *procedure.Proposal {
	mode := v.RepairMode()
	if mode == v1alpha1.RepairOff || others(v) != "" {
		return nil
	}
	s := sceneOf(v)
	if s == nil {
		return nil
	}
	if mode == v1alpha1.RepairRecommend {
		due := s.DueTables()
		if len(due) == 0 {
			return nil
		}
		names := make([]string, len(due))
		for i, t := range due {
			names[i] = t.String()
		}
		return &procedure.Proposal{Recommend: &v1alpha1.Recommendation{Operation: string(v1alpha1.OperationRepair),
			Message: fmt.Sprintf("no repair of table %s is known that is recent enough: set spec.repair.mode to "+
				"Automatic, or to Off if something else repairs it", words.List(names, 3))}}
	}
	units, down, _ := s.Next()
	p := &procedure.Proposal{What: words.Plural(len(units), "unit") + " to repair"}
	if len(down) > 0 {
		p.Notices = []v1alpha1.Notice{{Reason: v1alpha1.NoticeNodeDown, Nodes: down, Message: fmt.Sprintf(
			"node %s is down: tables of which it has a replica are repaired when it is up", words.List(down, 3))}}
	}
	if len(units) == 0 {
		if len(down) == 0 {
			return resumed(v)
		}
		p.Wait = "until a node is up whose replicas are to be repaired"
		return p
	}
	var nodes []string
	for _, u := range units {
		nodes = append(nodes, u.Replicas...)
	}
	what := "repairing " + words.Plural(len(units), "unit")
	p.Refusals = guard.Check(procedure.TheseNodes(v, v.UpAmong(v.Members())...), rules.Cleanup...)
	p.Open = func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{Stage: ledger.StageOperations, Nodes: nodes, State: State{units}, Why: what,
			ResultMessage: what}, nil
	}
	return p
}

// resumed forgets what was postponed, now that its time is over and nothing is left to repair:
// others have repaired it. Nil if nothing was.
func resumed(v *assess.View) *procedure.Proposal {
	over := slices.DeleteFunc(v.Ledger.PostponedOn(ledger.RepairTables),
		func(name string) bool { return v.Ledger.IsPostponed(ledger.RepairTables, name, v.Now) })
	if len(over) == 0 {
		return nil
	}
	return &procedure.Proposal{Settled: &procedure.Settled{Why: "what was postponed is repaired",
		Change: func(r *ledger.Ring) { r.Resume(ledger.RepairTables, over...) }}}
}

func runTables(rules guard.Rules) func(*assess.View, *procedure.Step) plan.Result {
	return func(v *assess.View, s *procedure.Step) plan.Result {
		units := procedure.State[State](s).Units
		outcomes := make([]outcome, len(units))
		over := true
		for i := range units {
			outcomes[i] = follow(v, s, rules, &units[i])
			over = over && outcomes[i].over
		}
		if over {
			closeTables(v, s, units, outcomes)
		}
		return plan.Nothing() // people are told by the status of the tables
	}
}

// outcome is what a unit has come to.
type outcome struct {
	// over says that it is not waited for any more, and repaired that it is proven.
	over, repaired bool
	took           time.Duration
	// failed is why it failed on its node; empty if it did not, or was only left.
	failed string
}

// follow asks the node of a unit for it, and says how far it is. What the node's agent has seen of
// Cassandra's word alone ends it well.
func follow(v *assess.View, s *procedure.Step, rules guard.Rules, u *core.Unit) outcome {
	n := v.Live(u.Node)
	if n == nil {
		return outcome{over: v.Ledger.Members[u.Node] == ""} // else it is recreated
	}
	id := s.IntentID(purpose, u.Node)
	status := n.Record.Status.Operation(id)
	switch {
	case status != nil && status.Phase.Final():
		return ended(status)
	case (status != nil || n.Record.Spec.Operation(id) != nil) && procedure.AgentGone(n):
		s.WithdrawOperations(u.Node, "its pod is gone")
		return outcome{over: true}
	case status == nil && n.Record.Spec.Operation(id) == nil:
		held := len(guard.Check(procedure.TheseNodes(v, u.Replicas...), rules.Repair...)) > 0
		return outcome{over: held || !s.RunOnce(operationOf(u), n)}
	}
	begun := s.OpenedAt()
	if status != nil && status.StartedAt != nil {
		begun = status.StartedAt.Time
	}
	if left := begun.Add(u.Limit()).Sub(v.Now); left > 0 {
		s.WakeIn(left)
		return outcome{}
	}
	s.CancelOn([]string{u.Node}, fmt.Sprintf("it takes longer than %s", u.Limit()))
	return outcome{over: status == nil && n.CurrentAgent() == nil}
}

func ended(status *v1alpha1.OperationStatus) outcome {
	o := outcome{over: true, repaired: status.Phase == v1alpha1.OperationSucceeded}
	if status.StartedAt != nil && status.FinishedAt != nil {
		o.took = status.FinishedAt.Sub(status.StartedAt.Time)
	}
	if !o.repaired && status.Phase != v1alpha1.OperationWithdrawn {
		o.failed = cmp.Or(status.Message, string(status.Phase))
	}
	return o
}

func operationOf(u *core.Unit) procedure.Operation {
	a := &v1alpha1.OperationArguments{Full: true, Keyspaces: []string{u.Tables[0].Keyspace}}
	for _, t := range u.Tables {
		if t.Name != "" {
			a.Tables = append(a.Tables, t.Name)
		}
	}
	for _, r := range u.Ranges {
		a.Ranges = append(a.Ranges, fmt.Sprintf("%d:%d", r.Start, r.End))
	}
	return procedure.Operation{Purpose: purpose, Type: v1alpha1.OperationRepair, Arguments: a}
}

// closeTables writes down what was repaired, before the step is closed: what is lost on the way is
// due again. A unit that failed is tried by another of its replicas.
func closeTables(v *assess.View, s *procedure.Step, units []core.Unit, outcomes []outcome) {
	h := v.Repairs
	var nodes []string
	var repaired []core.Unit
	for i := range units {
		nodes = append(nodes, units[i].Node)
		if outcomes[i].repaired {
			repaired = append(repaired, units[i])
		}
		if took := outcomes[i].took; outcomes[i].repaired || took >= units[i].Limit() {
			h = h.Learn(units[i], took)
		}
	}
	scene := sceneOf(v)
	if scene != nil {
		h, _ = h.Noted(toNote(scene), v.Now)
	}
	began := s.OpenedAt() // before any of them
	h = h.With(repaired, began)
	if scene != nil {
		known := map[string]bool{}
		for _, t := range slices.Concat(scene.Tables, scene.Beside, scene.LeftOut, scene.Single) {
			known[t.ID] = true
		}
		h = h.Only(known)
	}
	s.PutRepairs(h.Ran(units, repaired, began, v.Now))
	s.ClearOperations(nodes)
	s.Write(false, "tables are repaired", func(r *ledger.Ring, _ *ledger.Step) {
		for i := range units {
			if outcomes[i].repaired {
				r.Resume(ledger.RepairTables, units[i].Node)
			} else if outcomes[i].failed != "" {
				r.Postpone(ledger.RepairTables, units[i].Node, words.Shorten(outcomes[i].failed, 512), v.Now)
			}
		}
	})
	s.End()
}

// Report says in the status when tables were repaired, and what people have to know of it.
func Report(v *assess.View, d *plan.Draft) plan.Result {
	mode := v.RepairMode()
	s := sceneOf(v)
	if s == nil {
		return plan.Nothing()
	}
	if h, changed := s.History.Noted(toNote(s), v.Now); changed {
		procedure.PutRepairs(v, d, h, "the replication of tables is noted")
	}
	d.Repair = statusOf(s, mode)
	if who := others(v); who != "" && mode != v1alpha1.RepairOff {
		d.Notice(v1alpha1.NoticeRepairedByOthers, nil, "%s: tables are left to it. Take it away, or set "+
			"spec.repair.mode to Off", who)
		return plan.Nothing()
	}
	if mode != v1alpha1.RepairAutomatic {
		return plan.Nothing()
	}
	var short, missed []string
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Short() {
			short = append(short, t.String())
		}
		if _, last, _ := s.Oldest(t); v.Now.After(t.Deadline(last)) {
			missed = append(missed, t.String())
		}
	}
	if len(short) > 0 {
		d.Notice(v1alpha1.NoticeShortGCGrace, nil, "table %s keeps deletions for less than a day: it is repaired as "+
			"if it were a day, and deleted rows may come back. Raise its gc_grace_seconds", words.List(short, 3))
	}
	if len(missed) > 0 {
		d.Notice(v1alpha1.NoticeRepairDeadlineMissed, nil, "table %s was not repaired within its gc_grace_seconds, "+
			"or since its replication was changed: deleted rows may come back, and replicas lack rows. See "+
			"status.blocked and the other notices for what holds it up",
			words.List(missed, 3))
	}
	if len(s.DueTables())+len(s.Lacking) > 0 {
		d.WakeIn(s.Look())
	}
	return plan.Nothing()
}

// mostTables is how many tables the status has.
const mostTables = 32

func statusOf(s *core.Scene, mode v1alpha1.RepairMode) *v1alpha1.RepairStatus {
	out := &v1alpha1.RepairStatus{Mode: mode}
	for i := range s.Tables {
		t := &s.Tables[i]
		part, last, made := s.Oldest(t)
		is := v1alpha1.TableRepair{Name: t.String(), Deadline: metav1.NewTime(t.Deadline(last)),
			Compaction: t.Compaction}
		if !made {
			is.LastRepaired = &metav1.Time{Time: last}
		}
		out.Tables = append(out.Tables, is)
		if o := out.Oldest; o == nil || is.Deadline.Before(&o.Deadline) {
			out.Oldest = &v1alpha1.OldestRepair{Table: is.Name, Range: part.String(), LastRepaired: is.LastRepaired,
				Deadline: is.Deadline}
		}
	}
	if n := len(s.Tables); n > 0 {
		percent := int32(100 * (n - len(s.DueTables())) / n) //nolint:gosec // at most 100
		out.Progress = &percent
	}
	if s.History != nil && s.History.Rate > 0 {
		out.Rate = rounded(s.History.Rate)
	}
	slices.SortStableFunc(out.Tables,
		func(a, b v1alpha1.TableRepair) int { return a.Deadline.Compare(b.Deadline.Time) })
	out.Tables = out.Tables[:min(len(out.Tables), mostTables)]
	slices.SortFunc(out.Tables, func(a, b v1alpha1.TableRepair) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// rounded to two digits, so that a person can read it.
func rounded(rate int64) *resource.Quantity {
	step := int64(1)
	for rate/step >= 100 {
		step *= 10
	}
	return resource.NewQuantity((rate+step/2)/step*step, resource.DecimalSI)
}
