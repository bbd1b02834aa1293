package keeproles

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// forgottenAfter is how long a role that the spec has no longer is recommended for dropping: nobody
// says when that is done.
const forgottenAfter = 7 * 24 * time.Hour

// KeepRoles has one node give the roles of applications what the spec says, wherever that or their
// Secrets have changed. No node restarts.
func KeepRoles() procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.KeepRoles, Class: ledger.Maintenance,
		Runs: []v1alpha1.OperationType{v1alpha1.OperationKeepRoles},
		Due:  due,
		Stages: []procedure.Stage{{Name: ledger.StageOperations, Run: keep},
			{Name: ledger.StageComplete, Run: end}},
	}
}

func due(v *assess.View) *procedure.Proposal {
	if !v.AsksForPassword() || v.Passwords.Applied == nil {
		return nil
	}
	if p := removed(v); p != nil {
		return p
	}
	changed, problem := procedure.ChangedRoles(v)
	out := &procedure.Proposal{What: "roles of applications are to be as the spec says"}
	switch {
	case problem != "":
		out.Refusals = []guard.Refusal{procedure.RoleInvalid(problem)}
		return out
	case len(changed) == 0:
		return nil
	}
	var names []string
	for _, r := range changed {
		names = append(names, r.Name)
	}
	out.Open = func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: ledger.StageOperations, Nodes: v.Members(), Why: out.What, Event: string(ledger.KeepRoles),
			EventMessage:  "making roles what the spec says: " + words.List(names, 5),
			ResultMessage: "roles are what the spec says",
		}, nil
	}
	return out
}

// removed writes down which roles the spec has no longer, and forgets them after a while.
func removed(v *assess.View) *procedure.Proposal {
	inSpec := func(name string) bool {
		return slices.ContainsFunc(v.Cluster.Spec.ApplicationRoles(),
			func(r v1alpha1.ApplicationRole) bool { return r.Name == name })
	}
	gone := func(r ledger.KeptRole) bool { return r.RemovedAt.IsZero() && !inSpec(r.Name) }
	old := func(r ledger.KeptRole) bool {
		return !r.RemovedAt.IsZero() && v.Now.Sub(r.RemovedAt) >= forgottenAfter && !inSpec(r.Name)
	}
	if !slices.ContainsFunc(v.Ledger.Roles, gone) && !slices.ContainsFunc(v.Ledger.Roles, old) {
		return nil
	}
	now := v.Now
	const what = "roles are in the spec no longer"
	return &procedure.Proposal{What: what, Settled: &procedure.Settled{Why: what, Change: func(r *ledger.Ring) {
		r.Roles = slices.DeleteFunc(slices.Clone(r.Roles), old)
		for i := range r.Roles {
			if gone(r.Roles[i]) {
				r.Roles[i].RemovedAt = now
			}
		}
	}}}
}

func keep(v *assess.View, s *procedure.Step) plan.Result {
	r, over := s.KeepRoles(v, "roles", s.Wave())
	if over {
		s.Advance(false, "the roles are what the spec says", ledger.StageComplete)
	}
	return r
}

func end(_ *assess.View, s *procedure.Step) plan.Result {
	if s.ClearOperations(s.Nodes()) {
		return plan.Acting("the operations are over")
	}
	s.Close(false, v1alpha1.StepSucceeded, "roles of applications are what the spec says")
	return plan.Nothing()
}
