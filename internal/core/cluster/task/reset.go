package task

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const (
	// resetBackoff is the longest time between two attempts of what comes before the proof of the
	// login: until then the ring has a role more that may log in.
	resetBackoff = 10 * time.Second
	// downGrace is how long nodes that are down are waited for.
	downGrace = time.Minute
)

// resetRefused is why no superuser can be reset: there is no password that he could get.
func resetRefused(v *assess.View, _ guard.Rules) []guard.Refusal {
	switch problem := procedure.SuperuserProblem(v); {
	case v.Passwords.Roles == nil || v.Passwords.Superuser == nil:
		return []guard.Refusal{{Reason: v1alpha1.BlockedPasswordsMissing, Until: "they are restored",
			Finding: guard.Finding{Message: "the Secrets with the passwords of this ring's roles are not all there"}}}
	case problem != "":
		return []guard.Refusal{{Reason: v1alpha1.BlockedSuperuserInvalid, Until: "that is put right",
			Finding: guard.Finding{Message: problem}}}
	}
	return nil
}

// importAgain has each node get the role helenus_root anew, one after the other: written now, it
// wins over the one that is locked, also on a node that is down and comes back with that. When the
// first has begun, all comes to its end until the role is locked again, whatever becomes of the
// task.
func importAgain(v *assess.View, s *procedure.Step) plan.Result {
	begun := func(name string) bool { n := v.Live(name); return n != nil && s.HasBegun(n) }
	if !slices.ContainsFunc(s.Wave(), begun) {
		if t, r := goesOn(v, s); t == nil {
			return r
		}
		if v.Passwords.Changed && procedure.SuperuserProblem(v) == "" {
			s.CopyPassword("the superuser is to get it")
			return plan.Acting("copying the password of Secret %s", v.SuperuserSecret())
		}
	}
	names, up := s.Wave(), v.UpAmong(s.Wave())
	if left := s.StageSince().Add(downGrace).Sub(v.Now); left > 0 {
		s.WakeIn(left)
	} else if len(up) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(up, name) && !begun(name) })
	}
	now := metav1.NewTime(v.Now).Rfc3339Copy()
	r, over := s.RunInTurn(before("superuser", v1alpha1.OperationImportSuperuser,
		&v1alpha1.OperationArguments{WrittenAt: &now}), procedure.OneAtATime(names), "the superuser is imported again")
	if over {
		s.Advance(false, "the superuser is imported again", ledger.StageKeyspaces)
		return plan.Acting("the superuser is imported again")
	}
	return r
}

// resetRoles has one node give the superuser his password, and lock helenus_root again.
func resetRoles(v *assess.View, s *procedure.Step) plan.Result {
	r, over := s.RunOnOne(before("roles", v1alpha1.OperationSetRoles, &v1alpha1.OperationArguments{
		SuperuserSecret: v.AppliedSuperuser(), Replication: v.OneReplica()}), s.Wave(), "resets the superuser")
	if over {
		s.Advance(false, "the superuser is reset", ledger.StageOperations)
		s.Warn("SuperuserReset", "the superuser has got the password of Secret %s, whatever he had before",
			v.SuperuserSecret())
	}
	return r
}

// before is an operation that comes before the one whose results the task is about.
func before(purpose string, of v1alpha1.OperationType, a *v1alpha1.OperationArguments) procedure.Operation {
	return procedure.Operation{Purpose: purpose, Type: of, Arguments: a, LastBackoff: resetBackoff,
		NeverPostponed: true}
}
