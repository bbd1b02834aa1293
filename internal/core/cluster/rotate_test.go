package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

func traceRotation(t *testing.T, s *trace) {
	w := withPasswords(t)
	w.settle()
	s.ledger = w.snapshot.Ledger
	w.snapshot.Passwords.Changed = true
	s.runUntilIdle(w, nil)
}

// changed is a ring whose superuser is to get another password. Each operation comes to what the
// test says of it; what it says nothing of succeeds.
func changed(t *testing.T, comesTo func(of v1alpha1.OperationType, node string) (v1alpha1.OperationPhase, string)) *world {
	t.Helper()
	w := withPasswords(t)
	w.settle()
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		status := n.Record.Status.Operations
		if n.Record.Status.Operation(o.ID) != nil {
			return status
		}
		phase, message := comesTo(o.Type, n.Name)
		if phase == "" {
			return status
		}
		at := metav1.NewTime(w.now)
		return append(slices.Clone(status), v1alpha1.OperationStatus{ID: o.ID, Phase: phase, Message: message,
			StartedAt: &at, FinishedAt: &at})
	}
	w.snapshot.Passwords.Changed = true
	return w
}

func verbsOf(made plan.Plan, of ...plan.Verb) (n int) {
	for _, write := range made.Writes {
		if slices.Contains(of, write.Verb) {
			n++
		}
	}
	return n
}

// The password before is kept before anything is changed, and until every node has proven the new
// one: whatever takes how long.
func TestThePasswordBeforeIsKeptUntilTheNewOneIsProven(t *testing.T) {
	proven, late := map[string]bool{}, "orders-dc1-r2-0"
	waits := true
	w := changed(t, func(of v1alpha1.OperationType, node string) (v1alpha1.OperationPhase, string) {
		if of == v1alpha1.OperationProveLogin {
			if node == late && waits {
				return "", ""
			}
			proven[node] = true
		}
		return v1alpha1.OperationSucceeded, ""
	})
	rotated := false
	for i := range 40 {
		waits = i < 20
		if i == 10 { // again, before the first is over
			w.snapshot.Passwords.Changed = true
		}
		made := w.pass()
		p := w.snapshot.Passwords
		for _, n := range w.snapshot.Records() {
			unbegun := func(o v1alpha1.OperationIntent) bool { return n.Record.Status.Operation(o.ID) == nil }
			if slices.ContainsFunc(n.Record.Spec.Operations, unbegun) && !p.Old {
				t.Fatalf("pass %d: node %s is asked, and the password before is not kept", i, n.Name)
			}
		}
		if verbsOf(made, plan.CopyPassword)+verbsOf(made, plan.DropOldPassword) > 0 && made.Wake > time.Second {
			t.Fatalf("pass %d: nobody is told of the Secret, and the next pass is in %s", i, made.Wake)
		}
		if verbsOf(made, plan.DropOldPassword) > 0 && len(proven) < 3 {
			t.Fatalf("pass %d: the password before is forgotten, and is proven on %v alone", i, proven)
		}
		if i > 0 && i < 20 && (w.snapshot.Ledger.HasRing() && len(w.snapshot.Ledger.Maintenance) != 1 ||
			verbsOf(made, plan.CopyPassword) > 0 && i > 5) {
			t.Fatalf("pass %d: another password is copied before the first is proven:\n%s", i, made)
		}
		for _, write := range made.Writes {
			if write.Reason == "SuperuserRotated" {
				rotated, proven = true, map[string]bool{}
			}
		}
	}
	p := w.snapshot.Passwords
	if !rotated || p.Changed || p.Old || p.Applied.Annotations[v1alpha1.AnnotationAppliedAt] == "" ||
		len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("rotated %v, passwords %+v, open %v", rotated, p, w.snapshot.Ledger.Maintenance)
	}
}

// A password that somebody has changed by CQL is said to be unknown, and tried again each minute,
// also by a node whose clock is behind; another one in the Secret at once.
func TestAPasswordThatNobodyKnows(t *testing.T) {
	for _, behind := range []time.Duration{0, 2 * time.Minute} {
		t.Run(behind.String(), func(t *testing.T) { passwordUnknown(t, behind) })
	}
}

func passwordUnknown(t *testing.T, behind time.Duration) {
	t.Helper()
	known, attempts := false, 0
	w := changed(t, func(of v1alpha1.OperationType, _ string) (v1alpha1.OperationPhase, string) {
		if of == v1alpha1.OperationSetPassword && !known {
			attempts++
			return v1alpha1.OperationFailed, "superuser admin: " + v1alpha1.PasswordUnknown
		}
		return v1alpha1.OperationSucceeded, ""
	})
	operate := w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		out := operate(n, o)
		if last := len(out) - 1; len(out) > len(n.Record.Status.Operations) {
			out[last].FinishedAt = new(metav1.NewTime(w.now.Add(-behind)))
		}
		return out
	}
	for range 10 * 60 {
		w.pass()
	}
	if attempts < 8 || attempts > 15 {
		t.Errorf("%d attempts in 10 min", attempts)
	}
	made := w.pass()
	for verbsOf(made, plan.PutLedger, plan.Apply) > 0 {
		made = w.pass()
	}
	wantStalled(t, made, v1alpha1.ReasonSuperuserPasswordUnknown, "ALTER ROLE … WITH PASSWORD",
		"Secret orders-superuser")
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != v1alpha1.BlockedSuperuserPasswordUnknown {
		t.Errorf("blocked %+v", made.Blocked)
	}
	w.snapshot.Passwords.Changed, known = true, true
	if made := w.pass(); verbsOf(made, plan.CopyPassword) != 1 {
		t.Errorf("the password is put right, and not copied:\n%s", made)
	}
	began := w.now
	w.settle()
	if took := w.now.Sub(began); w.snapshot.Passwords.Old || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, w.snapshot.Passwords)
	}
}

// What cannot be applied is refused by the field's name, and the ring keeps the password that it
// has; nothing else is held back.
func TestWhatIsNoPasswordIsNotApplied(t *testing.T) {
	for want, change := range map[string]func(*facts.Passwords){
		"Secret orders-superuser has no password":         func(p *facts.Passwords) { p.Problem = "has no password" },
		"than the superuser of this ring, ada, which":     func(p *facts.Passwords) { p.Renamed = "ada" },
		"spec.security.authentication.superuser.secretNa": func(p *facts.Passwords) { p.Renamed = "ada" },
	} {
		w := changed(t, func(v1alpha1.OperationType, string) (v1alpha1.OperationPhase, string) {
			return v1alpha1.OperationSucceeded, ""
		})
		change(&w.snapshot.Passwords)
		made := w.settle()
		wantStalled(t, made, v1alpha1.ReasonInvalidSpec, want)
		if len(made.Blocked) != 1 || made.Blocked[0].Reason != v1alpha1.BlockedSuperuserInvalid ||
			len(w.snapshot.Ledger.Maintenance) > 0 {
			t.Errorf("blocked %+v", made.Blocked)
		}
		w.snapshot.Passwords.Problem, w.snapshot.Passwords.Renamed = "", ""
		if w.settle(); w.snapshot.Passwords.Changed {
			t.Error("put right, it is not applied")
		}
	}
}

// What is known of a change is in the Secrets: a ledger that is lost loses none. A copy that is
// lost is made again, and proven before it counts.
func TestARotationIsResumed(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"the ledger is lost": func(w *world) { w.snapshot.Ledger = nil },
		"the copy is lost": func(w *world) {
			w.snapshot.Passwords.Applied, w.snapshot.Passwords.Old, w.snapshot.Passwords.Changed = nil, false, false
		},
	} {
		asked := map[v1alpha1.OperationType]int{}
		w := changed(t, func(of v1alpha1.OperationType, _ string) (v1alpha1.OperationPhase, string) {
			asked[of]++
			return v1alpha1.OperationSucceeded, ""
		})
		for !w.snapshot.Passwords.Old {
			w.pass()
		}
		lose(w)
		w.settle()
		p := w.snapshot.Passwords
		if p.Applied == nil || p.Old || asked[v1alpha1.OperationSetPassword] == 0 ||
			asked[v1alpha1.OperationProveLogin] < 3 {
			t.Errorf("%s: passwords %+v, asked %v", name, p, asked)
		}
	}
}

// A node that is down is waited for by its name; the others have the new password meanwhile.
func TestARotationWaitsForANodeThatIsDown(t *testing.T) {
	w := changed(t, func(v1alpha1.OperationType, string) (v1alpha1.OperationPhase, string) {
		return v1alpha1.OperationSucceeded, ""
	})
	const down = "orders-dc1-r1-0"
	w.absent[down] = true
	for range 30 * 60 {
		w.pass()
	}
	made := w.pass()
	if s := w.snapshot.Ledger.Maintenance; len(s) != 1 || s[0].Stage != ledger.StageLogin || !w.snapshot.Passwords.Old {
		t.Fatalf("open %+v:\n%s", s, made)
	}
	if !slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticeNodeDown && strings.Contains(n.Message, "until node "+down+" is up")
	}) {
		t.Errorf("notices %+v", made.Notices)
	}
	delete(w.absent, down)
	for range 120 {
		w.pass()
	}
	if w.snapshot.Passwords.Old || len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("it is up, and not proven:\n%s", w.pass())
	}
}

// A datacenter that is added suspends the change. Its nodes cannot prove a password that the ring
// has not: the change is brought to its end there.
func TestASuspendedRotationHoldsNoDatacenterBack(t *testing.T) {
	set, proven := false, 0
	w := changed(t, func(of v1alpha1.OperationType, node string) (v1alpha1.OperationPhase, string) {
		inside := strings.HasPrefix(node, "orders-dc2")
		switch of {
		case v1alpha1.OperationSetPassword:
			if !inside {
				return v1alpha1.OperationFailed, "the node was too slow"
			}
			set = true
		case v1alpha1.OperationProveLogin:
			if !set {
				t.Errorf("node %s is to prove a password that no role has", node)
			}
			proven++
		default:
		}
		return v1alpha1.OperationSucceeded, ""
	})
	for !w.snapshot.Passwords.Old {
		w.pass()
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 2, 1, 1)) })
	for range 300 {
		w.pass()
	}
	if l := w.snapshot.Ledger; !set || proven < 3 || !l.IsFormed("dc2") || l.Step != nil {
		t.Errorf("set %v, %d proofs, open %+v and %+v", set, proven, l.Step, l.Maintenance)
	}
}
