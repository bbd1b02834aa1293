package procedure

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// ChangedRoles are the roles of applications that are not what the spec says; the problem is what
// of the spec cannot be.
func ChangedRoles(v *assess.View) (changed []v1alpha1.RoleIntent, problem string) {
	ring := v.AnyRing()
	if ring == nil {
		return nil, ""
	}
	for i, role := range v.Cluster.Spec.ApplicationRoles() {
		secret := v.Passwords.Applications[role.Name]
		if secret.Problem != "" {
			return nil, fmt.Sprintf("spec.security.authentication.roles[%d].secretName: Secret %s of role %s %s; the "+
				"role stays as it is", i, role.SecretName, role.Name, secret.Problem)
		}
		exists := func(keyspace string) bool {
			return keyspace == v1alpha1.AllKeyspaces || ring.Keyspaces[keyspace] != ""
		}
		to := v1alpha1.RoleIntent{ApplicationRole: role, SecretVersion: secret.Version}
		to.Grants = permitted(role.Grants, nil, exists)
		var have ledger.KeptRole
		if i := slices.IndexFunc(v.Ledger.Roles, func(r ledger.KeptRole) bool { return r.Name == role.Name }); i >= 0 {
			have = v.Ledger.Roles[i]
		}
		if have.RemovedAt.IsZero() && reflect.DeepEqual(have, ledger.KeptRoleOf(to)) {
			continue
		}
		to.Revokes = permitted(have.Grants, to.Grants, exists)
		changed = append(changed, to)
	}
	return changed, ""
}

// RoleInvalid is the refusal for a problem of ChangedRoles.
func RoleInvalid(problem string) guard.Refusal {
	return guard.Refusal{Reason: v1alpha1.BlockedRoleInvalid, Until: "that is put right",
		Finding: guard.Finding{Message: problem, Stalled: v1alpha1.ReasonInvalidSpec}}
}

// MissingKeyspaces are those in which roles are granted something and that do not exist yet.
func MissingKeyspaces(v *assess.View) (out []string) {
	ring := v.AnyRing()
	if ring == nil {
		return nil
	}
	for _, role := range v.Cluster.Spec.ApplicationRoles() {
		for _, g := range role.Grants {
			if g.Keyspace != v1alpha1.AllKeyspaces && ring.Keyspaces[g.Keyspace] == "" && !slices.Contains(out, g.Keyspace) {
				out = append(out, g.Keyspace)
			}
		}
	}
	return out
}

// permitted are grants in keyspaces that exist, without those of others, in one order.
func permitted(grants, without []v1alpha1.RoleGrant, exists func(string) bool) (out []v1alpha1.RoleGrant) {
	for _, g := range grants {
		if !exists(g.Keyspace) {
			continue
		}
		var left []v1alpha1.Permission
		for _, p := range g.Permissions {
			if !slices.ContainsFunc(without, func(w v1alpha1.RoleGrant) bool {
				return w.Keyspace == g.Keyspace && slices.Contains(w.Permissions, p)
			}) {
				left = append(left, p)
			}
		}
		if len(left) > 0 {
			slices.Sort(left)
			out = append(out, v1alpha1.RoleGrant{Keyspace: g.Keyspace, Permissions: left})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.RoleGrant) int { return cmp.Compare(a.Keyspace, b.Keyspace) })
	return out
}

// KeepRoles has one of the nodes give the roles of applications what the spec says, and says
// whether that is over: then the ledger says what they have.
func (s *Step) KeepRoles(v *assess.View, purpose string, among []string) (plan.Result, bool) {
	changed, _ := ChangedRoles(v)
	o := Operation{Purpose: purpose, Type: v1alpha1.OperationKeepRoles, LastBackoff: time.Minute, NeverPostponed: true,
		Arguments: &v1alpha1.OperationArguments{SuperuserSecret: v.AppliedSuperuser(), Roles: changed}}
	var asked []v1alpha1.RoleIntent
	for _, name := range among {
		if n := v.Live(name); n != nil {
			if intent := n.Record.Spec.Operation(s.Attempt(o, name)); intent != nil {
				asked = intent.Arguments.Roles
			}
		}
	}
	if len(changed) == 0 && asked == nil {
		return plan.Nothing(), true
	}
	r, over := s.RunOnOne(o, among, "keeps the roles of applications")
	if over {
		s.Write(false, "roles have what the spec says", func(r *ledger.Ring, _ *ledger.Step) { r.KeepRoles(asked) })
	}
	return r, over
}
