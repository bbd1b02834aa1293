package cluster

import (
	"slices"
	"testing"
)

func TestALostAuthorityIsNotMadeAgainWhileAnythingRestsOnIt(t *testing.T) {
	const name = "orders-ca"
	w := formed(t)
	w.settle()
	lost := w.snapshot.Shared.Secrets[name]
	delete(w.snapshot.Shared.Secrets, name)
	w.snapshot.Nodes[second].Secret = nil // and one certificate, which nobody can sign now
	plan := w.pass()
	if !plan.Idle() || plan.Wake != secretsAgain {
		t.Errorf("wakes in %s:\n%s", plan.Wake, plan)
	}
	guard := func(p Plan) string {
		if len(p.Blocked) != 1 {
			return ""
		}
		return p.Blocked[0].Guard
	}
	if guard(plan) != "the_certificate_authority_is_there" {
		t.Errorf("blocked %+v", plan.Blocked)
	}
	// Put back, it signs again.
	w.snapshot.Shared.Secrets[name] = lost
	wantWrites(t, w.pass(), second+"-tls", "IssueCertificate Secret")
	// One that somebody edited signs nothing, and is not overwritten.
	w.snapshot.AuthorityEdited = true
	w.snapshot.Nodes[second].SecretEdited = true
	if plan := w.pass(); !plan.Idle() || guard(plan) != "the_certificate_authority_is_as_it_was_made" {
		t.Errorf("blocked %+v:\n%s", plan.Blocked, plan)
	}
	// Without any certificate nothing rests on it.
	w.snapshot.AuthorityEdited = false
	delete(w.snapshot.Shared.Secrets, name)
	for _, node := range three {
		w.snapshot.Nodes[node].Secret, w.snapshot.Nodes[node].SecretEdited = nil, false
	}
	plan = w.pass()
	wantWrites(t, plan, name, "IssueAuthority Secret")
	for _, node := range three {
		wantWrites(t, plan, node+"-tls", "IssueCertificate Secret")
	}
	if !slices.Contains(w.events, "AuthorityRenewed") {
		t.Errorf("events %v", w.events)
	}
}

func TestANewAuthorityIsNoNews(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	if slices.Contains(w.events, "AuthorityRenewed") {
		t.Errorf("events %v", w.events)
	}
}
