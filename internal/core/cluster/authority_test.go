package cluster

import (
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/plan"
)

func TestALostAuthorityIsNotMadeAgainWhileAnythingRestsOnIt(t *testing.T) {
	const name = "orders-agent-ca"
	w := formed(t)
	w.settle()
	lost := w.snapshot.Shared.Secrets[name]
	delete(w.snapshot.Shared.Secrets, name)
	delete(w.snapshot.Shared.Secrets, second+"-agent-tls") // and one certificate, which nobody can sign now
	made := w.pass()
	if len(made.Writes) > 0 || made.Wake != 30*time.Second {
		t.Errorf("wakes in %s:\n%s", made.Wake, made)
	}
	guard := func(p plan.Plan) string {
		if len(p.Blocked) != 1 {
			return ""
		}
		return string(p.Blocked[0].Reason)
	}
	if guard(made) != "CAMissing" {
		t.Errorf("blocked %+v", made.Blocked)
	}
	// Put back, it signs again.
	w.snapshot.Shared.Secrets[name] = lost
	wantWrites(t, w.pass(), second+"-agent-tls", "IssueCertificate Secret")
	// One that somebody edited signs nothing, and is not overwritten.
	w.snapshot.Edited = map[string]bool{name: true, second + "-agent-tls": true}
	if made := w.pass(); len(made.Writes) > 0 || guard(made) != "CAModified" {
		t.Errorf("blocked %+v:\n%s", made.Blocked, made)
	}
	// Without any certificate nothing rests on it.
	w.snapshot.Edited = nil
	delete(w.snapshot.Shared.Secrets, name)
	for _, node := range three {
		delete(w.snapshot.Shared.Secrets, node+"-agent-tls")
	}
	made = w.pass()
	wantWrites(t, made, name, "IssueAuthority Secret")
	for _, node := range three {
		wantWrites(t, made, node+"-agent-tls", "IssueCertificate Secret")
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
