package rotate

import (
	"fmt"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// backoff is the longest time between two attempts.
const backoff = time.Minute

// Rotate applies a password that the Secret of the superuser has, and the ring has not: one node
// changes it, by the one before, which is kept until every node has refused it. No node restarts.
func Rotate() procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.Rotate, Class: ledger.Maintenance,
		Runs: []v1alpha1.OperationType{v1alpha1.OperationSetPassword, v1alpha1.OperationProveLogin},
		Due:  due,
		Stages: []procedure.Stage{{Name: ledger.StagePassword, Run: change},
			{Name: ledger.StageLogin, Run: prove}},
	}
}

func due(v *assess.View) *procedure.Proposal {
	p := v.Passwords
	if !v.AsksForPassword() || p.Superuser == nil || p.Applied == nil || !p.Changed && proven(v) || v.ResetsSuperuser() {
		return nil
	}
	out := &procedure.Proposal{What: "the superuser is to get another password"}
	if problem := procedure.SuperuserProblem(v); problem != "" && proven(v) {
		out.Refusals = []guard.Refusal{{Reason: v1alpha1.BlockedSuperuserInvalid, Until: "that is put right",
			Finding: guard.Finding{Message: problem, Stalled: v1alpha1.ReasonInvalidSpec}}}
		return out
	}
	out.Open = func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: ledger.StagePassword, Nodes: v.Members(), Why: out.What, Event: string(ledger.Rotate),
			EventMessage:  "the password in Secret " + v.SuperuserSecret() + " is applied",
			ResultMessage: "the superuser gets another password",
		}, nil
	}
	return out
}

// proven says that every node has proven what is applied, and refused what was before.
func proven(v *assess.View) bool {
	return !v.Passwords.Old && v.Passwords.Applied.Annotations[v1alpha1.AnnotationAppliedAt] != ""
}

// change has one node change the password. Before, both are in a Secret that nobody else changes.
func change(v *assess.View, s *procedure.Step) plan.Result {
	p, failed := v.Passwords, unknownOn(v, s)
	if p.Applied != nil && p.Changed && (!p.Old || failed != "") && p.Superuser != nil && procedure.SuperuserProblem(v) == "" {
		s.CopyPassword("it is applied")
		if failed != "" { // the new one is tried at once
			s.AttemptAgain(failed)
		}
		return plan.Acting("copying the password of Secret %s", v.SuperuserSecret())
	}
	if p.Applied == nil {
		return plan.Waiting("waiting for Secret %s", v.AppliedSuperuser())
	}
	r, over := s.RunOnOne(operation(v, "password", v1alpha1.OperationSetPassword), s.Wave(),
		"gives the superuser another password")
	if over {
		s.Advance(false, "the password is changed", ledger.StageLogin)
		return r
	}
	switch {
	case failed != "" && v.ResetsSuperuser():
		if s.ClearOperations(s.Nodes()) {
			return plan.Acting("the operations are over")
		}
		s.Close(false, v1alpha1.StepWithdrawn, "a task resets the superuser")
		return plan.Nothing()
	case failed != "":
		return s.Refused([]guard.Refusal{{
			Reason: v1alpha1.BlockedSuperuserPasswordUnknown, Until: "one of them works, which is tried each minute",
			Finding: guard.Finding{Stalled: v1alpha1.ReasonSuperuserPasswordUnknown, Message: fmt.Sprintf(
				"%s: somebody has changed it by CQL. Put that password into Secret %s, or change it to the one there, "+
					"as a superuser: ALTER ROLE … WITH PASSWORD = '…'. If nobody knows it: kubectl helenus superuser "+
					"reset %s",
				v1alpha1.PasswordUnknown, v.SuperuserSecret(), v.Cluster.Name)},
		}})
	}
	return r
}

// unknownOn is the node on which the last attempt has failed since neither password works; empty if
// there is none.
func unknownOn(v *assess.View, s *procedure.Step) string {
	for _, name := range s.Wave() {
		n := v.Live(name)
		if n == nil {
			continue
		}
		status := n.Record.Status.Operation(s.Attempt(operation(v, "password", v1alpha1.OperationSetPassword), name))
		if status != nil && status.Phase == v1alpha1.OperationFailed &&
			strings.Contains(status.Message, v1alpha1.PasswordUnknown) {
			return name
		}
	}
	return ""
}

// prove has every node empty its caches, let the superuser in by the new password, and refuse the
// one before, which is forgotten at last.
func prove(v *assess.View, s *procedure.Step) plan.Result {
	names := s.Wave()
	login := operation(v, "login", v1alpha1.OperationProveLogin)
	login.Arguments.SuperuserAlone = true // the other roles have the passwords that they had
	p := s.Run(login, names)
	s.Describe(len(p.Finished), "proving the new password: %s", words.List(p.Waiting, 3))
	applied := v.Passwords.Applied
	switch {
	case len(p.Finished) < len(names):
		return p.Result("proving the new password on %s", words.Plural(p.Begun, "node"))
	case applied == nil:
		return plan.Waiting("waiting for Secret %s", v.AppliedSuperuser())
	case !proven(v):
		s.DropOldPassword("the new one is proven on every node")
		return plan.Acting("the password before is forgotten")
	case s.ClearOperations(s.Nodes()):
		return plan.Acting("the operations are over")
	}
	s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(names), "node"))
	s.Event("SuperuserRotated", "the superuser has the password of Secret %s on every node; open sessions stay",
		v.SuperuserSecret())
	return plan.Nothing()
}

func operation(v *assess.View, purpose string, of v1alpha1.OperationType) procedure.Operation {
	return procedure.Operation{Purpose: purpose, Type: of, LastBackoff: backoff, NeverPostponed: true,
		Arguments: &v1alpha1.OperationArguments{SuperuserSecret: v.AppliedSuperuser()}}
}
