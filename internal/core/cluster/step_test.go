package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// stragglerTimeout is how long a formation waits for a node when all others have joined.
const stragglerTimeout = 10 * time.Minute

// applied are the names of the records that a plan changes.
func applied(p plan.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		if _, ok := w.Object.(*v1alpha1.CassandraNode); ok && w.Verb == plan.Apply {
			out = append(out, w.Object.GetName())
		}
	}
	return out
}

// run continues the open step, alone.
func run(w *world) (plan.Plan, plan.Result) {
	v := viewOf(w)
	draft := &plan.Draft{Plan: plan.Plan{Wake: interval}}
	keeper, _ := keeperOver(v)
	engine := procedure.NewEngine(v, draft, procedures(guard.All()), guard.All(), keeper.PublishSeedsOf)
	r := engine.Continue(0)
	return draft.Plan, r
}

// during has the open step do something else than its stage does.
func during(v *assess.View, do func(*procedure.Step)) plan.Plan {
	draft := &plan.Draft{Plan: plan.Plan{Wake: interval}}
	s := v.Ledger.Step
	only := procedure.Procedure{Kind: s.Kind, Class: s.Class, Stages: []procedure.Stage{{
		Name: s.Stage, Run: func(_ *assess.View, s *procedure.Step) plan.Result { do(s); return plan.Nothing() },
	}}}
	procedure.NewEngine(v, draft, []procedure.Procedure{only}, guard.All(), nil).Continue(0)
	return draft.Plan
}

func want(t *testing.T, made plan.Plan, r plan.Result, outcome plan.Outcome, words string, names ...string) {
	t.Helper()
	if got := applied(made); r.Outcome != outcome || !strings.Contains(r.Message, words) || !slices.Equal(got, names) {
		t.Errorf("%s: %q, changes %v; want %s: %q, changes %v", r.Outcome, r.Message, got, outcome, words, names)
	}
}

// takeTokens has the ticket of a node in the open step name these tokens.
func (w *world) takeTokens(node string, tokens ...string) {
	state := ticket.Of(w.snapshot.Ledger.Step)
	state.Tokens[node] = tokens
	w.snapshot.Ledger.Step.State = ledger.Encoded(state)
}
