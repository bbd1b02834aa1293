package rollout

import (
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// closeUntilRoles keeps clients away from a node that is to ask for passwords before a person has
// said that their roles are made. They go on at the others.
func (p *pass) closeUntilRoles(spec *v1alpha1.CassandraNodeSpec, w render.Wanted) {
	asks := w.Configuration.Authentication == v1alpha1.AuthenticationPassword
	asked := spec.Configuration.Authentication == v1alpha1.AuthenticationPassword
	if spec.ClientTraffic == v1alpha1.TrafficOpen && asks && !asked && !p.RolesReady() {
		spec.ClientTraffic = v1alpha1.TrafficAdministrative
	}
}

// closedForRoles says that a member is open for administration alone since the roles of the
// applications are to be made there: in a ring that serves nothing else has it so.
func (p *pass) closedForRoles(n *facts.Node) bool {
	return p.Ledger.Authentication != nil && n.Record.Spec.ClientTraffic == v1alpha1.TrafficAdministrative
}

// openToRoles brings those nodes of the wave that are closed for it to where clients come, and says
// whether that is over: what could not be done by rows is done by CQL, logins are proven, and a
// person says that the roles of the applications are made. A node that asks for nothing any more
// opens at once.
func (p *pass) openToRoles() (plan.Result, bool) {
	for _, name := range p.state.Wave {
		n := p.Live(name)
		if n == nil || !p.closedForRoles(n) {
			continue
		}
		if n.Record.Spec.Configuration.Authentication == v1alpha1.AuthenticationPassword {
			if r, over := p.makeRoles(name); !over {
				return r, false
			}
		}
		p.write(false, "node "+name+" opens", func(s *State) { s.Resting, s.Roles = false, "" })
		p.step.UpdateRecord(name, false, "clients have roles", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.ClientTraffic = v1alpha1.TrafficOpen
		})
		return plan.Acting("node %s opens to clients", name), false
	}
	return plan.Nothing(), true
}

// makeRoles is openToRoles until clients may come to a node that asks for passwords.
func (p *pass) makeRoles(name string) (plan.Result, bool) {
	o := procedure.Operation{LastBackoff: time.Minute, NeverPostponed: true,
		Arguments: &v1alpha1.OperationArguments{SuperuserSecret: p.AppliedSuperuser()}}
	switch p.state.Roles {
	case ledger.StageOpen:
	case ledger.StageLogin:
		o.Purpose, o.Type = fmt.Sprintf("login-%d", p.state.Round), v1alpha1.OperationProveLogin
		r, over := p.step.RunOnOne(o, []string{name}, "proves that the roles can log in")
		if !over {
			return r, false
		}
		p.write(false, "logins are proven", func(s *State) { s.Roles = ledger.StageOperations })
	case ledger.StageOperations:
		if _, problem := procedure.ChangedRoles(p.View); problem != "" {
			return p.step.Refused([]guard.Refusal{procedure.RoleInvalid(problem)}), false
		}
		r, over := p.step.KeepRoles(p.View, fmt.Sprintf("applications-%d", p.state.Round), []string{name})
		if !over {
			return r, false
		}
		p.write(false, "roles of applications are kept", func(s *State) { s.Roles = ledger.StageOpen })
	default:
		o.Purpose, o.Type = fmt.Sprintf("roles-%d", p.state.Round), v1alpha1.OperationSetRoles
		o.Arguments.Replication = p.SystemReplication()
		r, over := p.step.RunOnOne(o, []string{name}, "grants the roles of Helenus what they need")
		if over {
			p.write(false, "its roles are made", func(s *State) { s.Roles = ledger.StageLogin })
		}
		return r, false
	}
	switch {
	case p.RolesReady():
	case p.RolesSaidReady(name):
		p.step.Write(false, "the roles of the applications are made", func(r *ledger.Ring, _ *ledger.Step) {
			r.Authentication.Ready = true
		})
	default:
		p.rest(true)
		p.describe("node %s asks for passwords, and waits for roles of the applications", name)
		p.step.Block(v1alpha1.BlockedRolesNotReady, []string{name}, "node %s, the first, asks for passwords and "+
			"is closed to clients; the others let everybody in. Make the roles of your applications there: "+
			"kubectl exec -it %s --container cassandra -- cqlsh -u USER, with user and password of Secret %s. "+
			"Give each application its password; nodes that ask nobody pass over it. "+
			"Then: kubectl helenus roles-ready %s --reason '...'. "+
			"To go back, set security.authentication.mode to None", name, name, p.SuperuserSecret(), name)
		return plan.Waiting("waiting until the user says that the roles of the applications are made"), false
	}
	return plan.Nothing(), true
}
