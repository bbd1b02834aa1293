package makeroles

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

const backoff = time.Minute

// MakeRoles makes the roles of a ring that asks nobody for a password, and is to. It is over before
// the first node asks: roll-outs bring the nodes to that. It writes down where the ring may go, and
// where it has come.
func MakeRoles() procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.MakeRoles, Class: ledger.Maintenance,
		Runs: []v1alpha1.OperationType{v1alpha1.OperationSetRoles, v1alpha1.OperationRepair},
		Due:  due,
		Stages: []procedure.Stage{{Name: ledger.StageKeyspaces, Run: set},
			{Name: ledger.StageOperations, Run: repair}},
	}
}

func due(v *assess.View) *procedure.Proposal {
	asked, have := v.Cluster.Spec.AuthenticationMode(), v.Ledger.Authentication
	switch {
	case have != nil && have.Towards != "" && have.Towards != asked && everyMemberHas(v, have.Mode):
		return settled("the spec takes it back", func(r *ledger.Ring) { settle(r, have.Mode, have.SuperuserSecret) })
	case have != nil && have.Towards != "" && have.Towards == asked && everyMemberHas(v, asked):
		return settled("every node has it", func(r *ledger.Ring) { settle(r, asked, have.SuperuserSecret) })
	case have != nil && have.Towards != "":
		return nil // roll-outs bring it about
	case asked == v1alpha1.AuthenticationNone && v.AsksForPassword() && v.MayTurnOff():
		return settled("a person turns passwords off", func(r *ledger.Ring) {
			r.Authentication = &ledger.Authentication{Mode: v.Authentication(), Towards: asked,
				SuperuserSecret: v.SuperuserSecret()}
		})
	case asked != v1alpha1.AuthenticationPassword || v.AsksForPassword():
		return nil
	}
	out := &procedure.Proposal{What: "the ring is to ask for passwords"}
	switch p := v.Passwords; {
	case p.Roles == nil || p.Superuser == nil || p.Applied == nil:
		out.Wait = "waiting for the Secrets of the roles"
	case len(v.UpAmong(v.Members())) < len(v.Ledger.Members):
		out.Wait = "until all members are up: they get the roles"
	}
	out.Open = func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: ledger.StageKeyspaces, Nodes: v.Members(), Why: out.What, Event: string(ledger.MakeRoles),
			EventMessage: "the roles are made that passwords are asked of later", ResultMessage: "roles are made",
			Change: func(r *ledger.Ring) {
				r.Authentication = &ledger.Authentication{Mode: v.Authentication(),
					SuperuserSecret: v.SuperuserSecret()}
			},
		}, nil
	}
	return out
}

func settled(why string, change func(*ledger.Ring)) *procedure.Proposal {
	return &procedure.Proposal{What: why, Settled: &procedure.Settled{Why: "authentication: " + why, Change: change}}
}

// settle writes down the mode that all nodes have: as if the ring was made with it, if it is known
// how it was made.
func settle(r *ledger.Ring, mode v1alpha1.AuthenticationMode, superuser string) {
	if mode != v1alpha1.AuthenticationPassword {
		superuser = ""
	}
	r.Authentication = nil
	if r.MadeWith == nil {
		r.Authentication = &ledger.Authentication{Mode: mode, SuperuserSecret: superuser}
		return
	}
	r.MadeWith.Authentication, r.MadeWith.SuperuserSecret = mode, superuser
}

func everyMemberHas(v *assess.View, mode v1alpha1.AuthenticationMode) bool {
	for _, name := range v.Members() {
		if n := v.Live(name); n == nil || n.Record.Spec.Configuration.Authentication != mode ||
			n.Record.Spec.ClientTraffic == v1alpha1.TrafficAdministrative {
			return false
		}
	}
	return true
}

// set has one node give the system keyspaces their replicas and write the roles: nobody is asked
// for a password, and any node can.
func set(v *assess.View, s *procedure.Step) plan.Result {
	r, over := s.RunOnOne(procedure.Operation{Purpose: "roles", Type: v1alpha1.OperationSetRoles, LastBackoff: backoff,
		NeverPostponed: true, Arguments: &v1alpha1.OperationArguments{SuperuserSecret: v.AppliedSuperuser(),
			Replication: v.SystemReplication()}}, s.Wave(), "writes the roles")
	if over {
		s.Advance(false, "the roles are written", ledger.StageOperations)
	}
	return r
}

// repair has every replica hold what was written before, and the roles with it: a login reads them
// from a quorum of the datacenter.
func repair(v *assess.View, s *procedure.Step) plan.Result {
	nodes := s.Wave()
	if len(v.Members()) == 1 {
		nodes = nil // Cassandra has no repair of what has one replica
	}
	r, over := s.RunInTurn(procedure.Operation{Purpose: "repair", Type: v1alpha1.OperationRepair, LastBackoff: backoff,
		NeverPostponed: true, Arguments: &v1alpha1.OperationArguments{Keyspaces: []string{"system_auth"}, Full: true,
			PrimaryRange: true}}, procedure.OneAtATime(nodes), "the roles are repaired")
	switch {
	case !over:
		return r
	case s.ClearOperations(s.Nodes()):
		return plan.Acting("the operations are over")
	}
	s.Write(false, "the roles are made", func(r *ledger.Ring, _ *ledger.Step) {
		r.Authentication.Towards = v1alpha1.AuthenticationPassword
	})
	s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(s.Wave()), "node"))
	s.Event("RolesMade", "the roles are made; the first node is to ask for passwords. Give clients theirs: the "+
		"superuser and his password are in Secret %s, and roles of applications can be made at that node",
		v.SuperuserSecret())
	return plan.Nothing()
}
