package task

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// purpose of the operations of a step.
const purpose = "run"

// Kind of the steps of tasks of a type, such as FlushTask. Each type has one, so that a task waits
// for what its own operation conflicts with, and for nothing else.
func Kind(t v1alpha1.TaskType) ledger.Kind {
	if t == backup {
		return ledger.Backup
	}
	return ledger.Kind(t) + "Task"
}

// Kinds of all types.
func Kinds() []ledger.Kind {
	out := []ledger.Kind{ledger.ReplaceTask, ledger.RemoveTask}
	for _, t := range types {
		out = append(out, Kind(t.of))
	}
	return out
}

// Procedures are one for each type of task. The id of a step is the uid of its task, also after the
// ledger was lost: what nodes were asked for is found again by it.
func Procedures(rules guard.Rules) []procedure.Procedure {
	var out []procedure.Procedure
	for _, t := range types {
		out = append(out, procedure.Procedure{
			Kind: Kind(t.of), Class: ledger.Maintenance, Runs: append(t.runs, t.operation()),
			Due:    func(v *assess.View) *procedure.Proposal { return due(v, &t, rules) },
			Stages: t.stages(), Understands: t.understands(), Suspended: t.suspended(),
		})
	}
	return out
}

// due is the task whose turn it is, if it is of a type.
func due(v *assess.View, kind *taskType, rules guard.Rules) *procedure.Proposal {
	t := atTurn(v, kind.of == backup)
	if t == nil || t.task.Spec.Type != kind.of || t.expired(v) {
		return nil
	}
	p := &procedure.Proposal{What: "task " + t.task.Name}
	if kind.refusals != nil {
		p.Refusals = kind.refusals(v, rules)
	}
	if t.backup != nil {
		p.Refusals = t.snapshotsRefused(v, rules)
	}
	p.Open = func() (*procedure.Opening, []guard.Refusal) {
		o := &procedure.Opening{ID: string(t.task.UID), Stage: kind.stages()[0].Name, Nodes: t.step.Nodes,
			Attempts: t.step.Attempts, Why: "task " + t.task.Name,
			ResultMessage: "task " + t.task.Name + " begins"}
		if t.restore != nil {
			o.State = t.begins(v)
		}
		return o, nil
	}
	return p
}

// goesOn is the task of a step; nil if it is over, and the step ends.
func goesOn(v *assess.View, s *procedure.Step) (*state, plan.Result) {
	t := stateOf(v, s.ID())
	switch {
	case t == nil:
		return nil, end(v, s, "", v1alpha1.StepWithdrawn, "the task is deleted")
	case t.task.Status.Finished() && t.task.Status.Failed > 0:
		return nil, end(v, s, t.task.Name, v1alpha1.StepWithdrawn, t.task.Status.Message)
	case t.task.Status.Finished():
		return nil, end(v, s, t.task.Name, v1alpha1.StepSucceeded, words.Plural(len(s.Nodes()), "node"))
	case t.expired(v):
		waiting := cancel(v, s, "the deadline of the task is over")
		s.Describe(int(t.status.Succeeded+t.status.Failed), "task %s: its deadline is over", t.task.Name)
		return nil, plan.Waiting("task %s: its deadline is over; waiting for %s", t.task.Name, words.List(waiting, 3))
	}
	return t, plan.Nothing()
}

// cancelOver ends what runs for a task that is over, although its step is to be suspended: what
// goes first may wait for it for long.
func cancelOver(v *assess.View, s *procedure.Step) {
	t := stateOf(v, s.ID())
	if s.Stage() != ledger.StageClear && (t == nil || t.task.Status.Finished() || t.expired(v)) {
		cancel(v, s, "the task is over")
	}
}

// run has the next nodes run the operation, until the task has a result of each. The results are
// taken from the records before a step clears these: by Report, earlier in the pass.
func run(v *assess.View, s *procedure.Step) plan.Result {
	t, r := goesOn(v, s)
	if t == nil {
		return r
	}
	var over, left []string
	for _, n := range t.status.Nodes {
		if n.Phase.Final() {
			over = append(over, n.Node)
		} else {
			left = append(left, n.Node)
		}
	}
	if t.backup == nil { // of a backup they stay: a snapshot is dropped once
		s.ClearOperations(over)
	}
	if t.backup != nil && t.uploadsEnd() {
		if waiting := cancel(v, s, "every node is done"); len(waiting) > 0 {
			return plan.Waiting("backup %s: waiting for %s", t.task.Name, words.List(waiting, 3))
		}
		s.Advance(false, "what the nodes kept is in the store", ledger.StageComplete)
		return plan.Acting("backup %s: every node is done", t.task.Name)
	}
	if t.backup != nil {
		meanwhile(v, s)
	}
	p := s.Run(t.operation(v), choose(v, s, left, t.atOnce()))
	s.Describe(len(over), "task %s: %s", t.task.Name, t.status.Message)
	if len(p.Waiting) == 0 {
		return plan.Waiting("task %s: %s", t.task.Name, t.status.Message)
	}
	return p.Result("task %s: %s on %s", t.task.Name, t.task.Spec.Type, words.List(p.Waiting, 3))
}

// atOnce is how many nodes work at the same time, at least one.
func (t *state) atOnce() int {
	if t.backup == nil || t.backup.Spec.Limits == nil || t.backup.Spec.Limits.NodesAtOnce == nil {
		return int(t.task.Spec.Concurrency)
	}
	// The schema lets nothing pass that is neither a number nor a percentage.
	n, _ := intstr.GetScaledValueFromIntOrPercent(t.backup.Spec.Limits.NodesAtOnce, len(t.status.Nodes), true)
	return max(1, n)
}

// end closes a step. What runs is waited for: the next task may be the same.
func end(v *assess.View, s *procedure.Step, name string, result v1alpha1.StepResult, why string) plan.Result {
	if waiting := cancel(v, s, "the task is over"); len(waiting) > 0 {
		s.Describe(0, "%s: %s", why, words.List(waiting, 3))
		return plan.Waiting("%s: waiting for %s", why, words.List(waiting, 3))
	}
	if s.ClearOperations(s.Nodes()) {
		return plan.Acting("the operations are over")
	}
	if s.Kind() == ledger.Backup || s.Kind() == ledger.RestoreTables {
		s.Advance(false, why, ledger.StageClear)
		return plan.Acting("%s", why)
	}
	if name != "" {
		why = name + ": " + why
	}
	s.Close(false, result, words.Shorten(why, 512))
	return plan.Nothing()
}

// choose are the nodes that work on: those that were asked, and as many others as may work beside
// them. A node that was down before it was asked takes nobody's place. One that was asked and is
// silent does, until its pod is gone or it has said that it does not begin: it may be at work.
func choose(v *assess.View, s *procedure.Step, left []string, most int) []string {
	var out, others []string
	of := func(o v1alpha1.OperationIntent) bool { return strings.HasPrefix(o.ID, s.ID()+"/"+purpose) }
	for _, name := range left {
		n := v.Live(name)
		if n == nil {
			continue
		}
		up := len(v.UpAmong([]string{name})) > 0
		if !up {
			s.WithdrawOperations(name, "the node is down")
		}
		switch {
		case up && slices.ContainsFunc(n.Record.Spec.Operations, of),
			slices.ContainsFunc(procedure.Unfinished(n), of) && !procedure.AgentGone(n):
			out = append(out, name)
		case up:
			others = append(others, name)
		}
	}
	return append(out, others[:max(0, min(len(others), most-len(out)))]...)
}

// operation that each node is to run.
func (t *state) operation(v *assess.View) procedure.Operation {
	spec, notAfter := t.task.Spec, t.deadline()
	if t.restore != nil {
		return t.restores(v, purpose, v1alpha1.OperationLoadTables)
	}
	if t.backup != nil {
		return procedure.Operation{Purpose: purpose, Type: v1alpha1.OperationUpload, NeverPostponed: true,
			NotAfter: &notAfter, Arguments: &v1alpha1.OperationArguments{Backup: t.about(v)}}
	}
	o := procedure.Operation{Purpose: purpose, Type: v1alpha1.OperationType(spec.Type), NeverPostponed: true,
		NotAfter: &notAfter, Arguments: &v1alpha1.OperationArguments{Keyspaces: spec.Keyspaces, Tables: spec.Tables}}
	if kind := typeOf(spec.Type); kind != nil {
		o.Type = kind.operation()
		if kind.arguments != nil {
			kind.arguments(v, t.task, o.Arguments)
		}
	}
	return o
}
