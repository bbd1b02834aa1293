package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// TestRolesOfApplications are made what the spec says by one operation for each change, and nothing
// is asked for what is so already.
func TestRolesOfApplications(t *testing.T) {
	var asked []string
	w := withPasswords(t)
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		status := n.Record.Status.Operations
		if n.Record.Status.Operation(o.ID) != nil {
			return status
		}
		if o.Type == v1alpha1.OperationKeepRoles {
			for _, r := range o.Arguments.Roles {
				asked = append(asked, fmt.Sprintf("%s: %v %v", r.Name, r.Grants, r.Revokes))
			}
		}
		at := metav1.NewTime(w.now)
		return append(slices.Clone(status), v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationSucceeded,
			StartedAt: &at, FinishedAt: &at})
	}
	w.keyspaces = map[string]string{}
	w.settle()
	role := func(name string, grants ...v1alpha1.RoleGrant) v1alpha1.ApplicationRole {
		return v1alpha1.ApplicationRole{Name: name, SecretName: name + "-login", Grants: grants}
	}
	on := func(keyspace string, permissions ...v1alpha1.Permission) v1alpha1.RoleGrant {
		return v1alpha1.RoleGrant{Keyspace: keyspace, Permissions: permissions}
	}
	are := func(roles ...v1alpha1.ApplicationRole) func() {
		return func() {
			w.change(securedBy(v1alpha1.Authentication{Roles: roles}))
		}
	}
	secret := func(name, version, problem string) func() {
		return func() {
			if w.snapshot.Passwords.Applications == nil {
				w.snapshot.Passwords.Applications = map[string]facts.ApplicationSecret{}
			}
			w.snapshot.Passwords.Applications[name] = facts.ApplicationSecret{Version: version, Problem: problem}
		}
	}
	drop := "recommends DropRole"
	for _, c := range []struct {
		name    string
		changes []func()
		asked   string
		says    string
	}{
		{"a role", []func(){secret("app", "1", ""), are(role("app", on("*", "MODIFY", "SELECT")))},
			"app: [{* [MODIFY SELECT]}] []", ""},
		{"the same in another order", []func(){are(role("app", on("*", "SELECT", "MODIFY")))}, "", ""},
		{"another password", []func(){secret("app", "2", "")}, "app: [{* [MODIFY SELECT]}] []", ""},
		{"less permissions", []func(){are(role("app", on("*", "SELECT")))}, "app: [{* [SELECT]}] [{* [MODIFY]}]", ""},
		{"a keyspace that does not exist", []func(){are(role("app", on("*", "SELECT"), on("shop", "DROP")))}, "",
			"KeyspaceMissing"},
		{"it is made", []func(){func() { w.keyspaces["shop"] = "SimpleStrategy {replication_factor=1}" }},
			"app: [{* [SELECT]} {shop [DROP]}] []", ""},
		{"a Secret that is missing", []func(){secret("etl", "", "does not exist"),
			are(role("app", on("*", "SELECT"), on("shop", "DROP")), role("etl"))}, "",
			"RoleInvalid: spec.security.authentication.roles[1].secretName: Secret etl-login of role etl does not exist"},
		{"it is there", []func(){secret("etl", "1", "")}, "etl: [] []", ""},
		{"the keyspace is gone", []func(){func() { delete(w.keyspaces, "shop") }}, "app: [{* [SELECT]}] []",
			"KeyspaceMissing"},
		{"a role is taken out", []func(){are(role("app", on("*", "SELECT")))}, "", drop},
		{"it comes back", []func(){are(role("app", on("*", "SELECT")), role("etl"))}, "etl: [] []", ""},
		{"and goes", []func(){are(role("app", on("*", "SELECT")))}, "", drop},
		{"a week later", []func(){func() { w.now = w.now.Add(8 * 24 * time.Hour) }}, "", ""},
		{"the ledger forgets", []func(){func() { w.snapshot.Ledger.Roles = nil }}, "app: [{* [SELECT]}] []", ""},
	} {
		asked = nil
		for _, change := range c.changes {
			change()
		}
		var made plan.Plan
		for range 12 {
			made = w.pass()
		}
		var says []string
		for _, r := range reported(made) {
			says = append(says, string(r.Reason)+": "+r.Message)
		}
		for _, r := range made.Recommended {
			says = append(says, "recommends "+r.Operation+": "+r.Message)
		}
		all := strings.Join(says, "; ")
		if strings.Join(asked, "; ") != c.asked || c.says == "" && all != "" || !strings.Contains(all, c.says) {
			t.Errorf("%s: asked for %q, want %q; says %q, want %q", c.name, asked, c.asked, all, c.says)
		}
	}
}

// TestARoleThatCannotBeKept is attempted again, on whatever node, and holds nothing once the spec
// takes it back.
func TestARoleThatCannotBeKept(t *testing.T) {
	w := withPasswords(t)
	attempts := 0
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		status := n.Record.Status.Operations
		if n.Record.Status.Operation(o.ID) != nil {
			return status
		}
		phase := v1alpha1.OperationSucceeded
		if o.Type == v1alpha1.OperationKeepRoles {
			phase = v1alpha1.OperationFailed
			attempts++
		}
		at := metav1.NewTime(w.now)
		return append(slices.Clone(status), v1alpha1.OperationStatus{ID: o.ID, Phase: phase, Message: "it is a superuser",
			StartedAt: &at, FinishedAt: &at})
	}
	w.settle()
	w.snapshot.Passwords.Applications = map[string]facts.ApplicationSecret{"app": {Version: "1"}}
	w.change(securedBy(v1alpha1.Authentication{Roles: []v1alpha1.ApplicationRole{{Name: "app", SecretName: "app"}}}))
	for range 60 {
		w.pass()
		w.now = w.now.Add(2 * time.Minute)
	}
	if l := w.snapshot.Ledger; attempts < 20 || len(l.Postponed) > 0 || len(l.Maintenance) != 1 {
		t.Errorf("%d attempts, postponed %v, open %v", attempts, l.Postponed, l.Maintenance)
	}
	w.change(securedBy(v1alpha1.Authentication{}))
	for range 10 {
		w.pass()
		w.now = w.now.Add(2 * time.Minute)
	}
	if l := w.snapshot.Ledger; len(l.Maintenance) > 0 || len(l.Roles) > 0 {
		t.Errorf("open %v, roles %v", l.Maintenance, l.Roles)
	}
}
