package ticket

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// Administer opens a node for administration.
func Administer(spec *v1alpha1.CassandraNodeSpec) {
	spec.ClientTraffic = v1alpha1.TrafficAdministrative
}

// ProveLogin verifies on every node that the roles can log in, before client traffic opens, and
// advances to the next stage. A change of the superuser's password, or a reset, that was suspended
// for the step is completed first: until then the ring may have another password, and helenus_root
// may log in.
func ProveLogin(v *assess.View, s *procedure.Step, next ledger.Stage) plan.Result {
	suspended := procedure.Operation{LastBackoff: time.Minute, Also: Administer,
		Arguments: &v1alpha1.OperationArguments{SuperuserSecret: v.AppliedSuperuser()}}
	switch {
	case slices.ContainsFunc(v.Ledger.Suspended, func(s *ledger.Step) bool {
		return s.Kind == ledger.ResetSuperuser && s.Stage == ledger.StageKeyspaces
	}):
		suspended.Purpose, suspended.Type = "roles", v1alpha1.OperationSetRoles
		suspended.Arguments.Replication = v.OneReplica()
	case v.Passwords.Old:
		suspended.Purpose, suspended.Type = "password", v1alpha1.OperationSetPassword
	}
	if suspended.Type != "" {
		if r, over := s.RunOnOne(suspended, s.Wave(), "gives the superuser another password"); !over {
			return r
		}
	}
	p := s.Run(procedure.Operation{
		Purpose: "login", Type: v1alpha1.OperationProveLogin, LastBackoff: 5 * time.Second,
		Arguments: &v1alpha1.OperationArguments{SuperuserSecret: v.AppliedSuperuser()}, Also: Administer,
	}, s.Wave())
	return Everywhere(s, p, len(s.Wave()), next, "proving that the roles can log in")
}

// Everywhere goes on to the next stage when an operation has succeeded on all nodes.
func Everywhere(s *procedure.Step, p procedure.Progress, nodes int, next ledger.Stage, what string) plan.Result {
	s.Describe(len(p.Finished), "%s: %s", what, words.List(p.Waiting, 3))
	if len(p.Finished) < nodes {
		return p.Result("%s on %s", what, words.Plural(p.Begun, "node"))
	}
	s.Advance(false, what+": all nodes are done", next)
	return plan.Acting("%s: all nodes are done", what)
}
