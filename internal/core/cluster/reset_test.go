package cluster

import (
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// forgotten is a ring whose superuser has a password that nobody knows, which shows when another
// one is to be applied. It is set when all nodes that are up have imported helenus_root anew.
func forgotten(t *testing.T) (w *world, asked *[]v1alpha1.OperationType) {
	t.Helper()
	asked = &[]v1alpha1.OperationType{}
	imported, set := map[string]bool{}, false
	w = changed(t, func(of v1alpha1.OperationType, node string) (v1alpha1.OperationPhase, string) {
		*asked = append(*asked, of)
		switch of {
		case v1alpha1.OperationImportSuperuser:
			imported[node] = true
		case v1alpha1.OperationSetRoles:
			if set = len(imported) >= 2; !set {
				return v1alpha1.OperationFailed, "log in as helenus_root"
			}
		case v1alpha1.OperationSetPassword, v1alpha1.OperationProveLogin:
			if !set {
				return v1alpha1.OperationFailed, v1alpha1.PasswordUnknown
			}
		default:
		}
		return v1alpha1.OperationSucceeded, ""
	})
	return w, asked
}

func traceReset(t *testing.T, s *trace) {
	w := withPasswords(t)
	w.settle()
	s.ledger = w.snapshot.Ledger
	w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
	s.runUntilIdle(w, nil)
}

func resetting(w *world) *ledger.Step {
	for _, s := range slices.Concat(w.snapshot.Ledger.Maintenance, w.snapshot.Ledger.Suspended) {
		if s.Kind == ledger.ResetSuperuser {
			return s
		}
	}
	return nil
}

func (w *world) passes(n int, until func() bool) bool {
	for range n {
		if until() {
			return true
		}
		w.pass()
	}
	return until()
}

// The change that is stuck makes way for the reset, which imports on each node before it sets the
// roles, and has every node prove the login; then the change is brought to its end.
func TestATaskResetsTheSuperuser(t *testing.T) {
	w, asked := forgotten(t)
	if !w.passes(60, func() bool { return slices.Contains(*asked, v1alpha1.OperationSetPassword) }) {
		t.Fatal("no other password is tried")
	}
	*asked = nil
	uid := w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
	warned := false
	for i := 0; i < 300 && (!w.snapshot.Task(string(uid)).Status.Finished() || w.snapshot.Passwords.Old); i++ {
		for _, write := range w.pass().Writes {
			warned = warned || write.Reason == "SuperuserReset"
		}
	}
	w.wantTask(uid, "Succeeded 3/3")
	var imports []v1alpha1.OperationType
	for _, of := range *asked {
		if of != v1alpha1.OperationSetPassword {
			imports = append(imports, of)
		}
	}
	want := []v1alpha1.OperationType{v1alpha1.OperationImportSuperuser, v1alpha1.OperationImportSuperuser,
		v1alpha1.OperationImportSuperuser, v1alpha1.OperationSetRoles, v1alpha1.OperationProveLogin}
	if p := w.snapshot.Passwords; len(imports) < 8 || !slices.Equal(imports[:5], want) || p.Old || !warned {
		t.Errorf("asked %v, told %v, passwords %+v", *asked, warned, p)
	}
}

// What has begun is brought to its end although the task is deleted: helenus_root is locked again.
// Nothing is begun for a task that was deleted before.
func TestAResetThatHasBegunLocksItsRole(t *testing.T) {
	for name, at := range map[string]ledger.Stage{"begun": ledger.StageSuperuser, "imported": ledger.StageKeyspaces} {
		w, asked := forgotten(t)
		w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
		if !w.passes(120, func() bool {
			s := resetting(w)
			return s != nil && s.Stage == at && slices.Contains(*asked, v1alpha1.OperationImportSuperuser)
		}) {
			t.Fatalf("%s: it does not come so far", name)
		}
		w.snapshot.Tasks = nil
		w.passes(120, func() bool { return resetting(w) == nil })
		if resetting(w) != nil || !slices.Contains(*asked, v1alpha1.OperationSetRoles) {
			t.Errorf("%s: asked %v, open %+v", name, *asked, resetting(w))
		}
	}
	w, asked := forgotten(t)
	w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
	w.passes(120, func() bool { return resetting(w) != nil })
	w.snapshot.Tasks = nil
	w.passes(60, func() bool { return resetting(w) == nil })
	if resetting(w) != nil || slices.Contains(*asked, v1alpha1.OperationImportSuperuser) {
		t.Errorf("asked %v, open %+v", *asked, resetting(w))
	}
}

// A node that is down is waited for a minute: what it has is older, and loses when it comes back.
func TestANodeThatIsDownHoldsNoResetUp(t *testing.T) {
	w, _ := forgotten(t)
	const down = "orders-dc1-r2-0"
	w.absent[down] = true
	uid := w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
	w.passes(600, func() bool { return w.snapshot.Task(string(uid)).Status.Succeeded == 2 })
	w.wantTask(uid, "2/3", "r2-0: it is down")
	delete(w.absent, down)
	w.passes(120, func() bool { return w.snapshot.Task(string(uid)).Status.Finished() })
	w.wantTask(uid, "Succeeded 3/3")
}

// There is nothing to reset where nobody is asked for a password, and nothing to reset it to
// without one that can be applied.
func TestWhatIsNotReset(t *testing.T) {
	w := formed(t)
	uid := w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
	w.settle()
	w.wantTask(uid, "Failed", "nobody for a password")
	for want, change := range map[string]func(*facts.Passwords){
		"are not all there": func(p *facts.Passwords) { p.Roles = nil },
		"has no password":   func(p *facts.Passwords) { p.Problem = "has no password" },
	} {
		w, asked := forgotten(t)
		change(&w.snapshot.Passwords)
		uid := w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
		w.passes(30, func() bool { return false })
		w.wantTask(uid, "Pending 0/3", want)
		if slices.Contains(*asked, v1alpha1.OperationImportSuperuser) {
			t.Errorf("%s: asked %v", want, *asked)
		}
	}
}

// A datacenter that is added suspends the reset: its nodes bring it to its end, since they cannot
// prove that helenus_root is refused before.
func TestASuspendedResetHoldsNoDatacenterBack(t *testing.T) {
	imported, locked, proven := 0, false, 0
	w := changed(t, func(of v1alpha1.OperationType, node string) (v1alpha1.OperationPhase, string) {
		inside := strings.HasPrefix(node, "orders-dc2")
		switch of {
		case v1alpha1.OperationImportSuperuser:
			imported++
		case v1alpha1.OperationSetRoles:
			if !inside {
				return v1alpha1.OperationFailed, "the node was too slow"
			}
			locked = true
		case v1alpha1.OperationProveLogin:
			if inside && !locked {
				t.Errorf("node %s is to prove that helenus_root is refused, which may log in", node)
			}
			proven++
		default:
		}
		return v1alpha1.OperationSucceeded, ""
	})
	w.give("reset", v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser})
	w.passes(120, func() bool { s := resetting(w); return s != nil && s.Stage == ledger.StageKeyspaces })
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 2, 1, 1)) })
	w.passes(300, func() bool { return w.snapshot.Ledger.IsFormed("dc2") && w.snapshot.Ledger.Step == nil })
	if l := w.snapshot.Ledger; !locked || imported < 3 || proven < 2 || !l.IsFormed("dc2") {
		t.Errorf("%d imports, locked %v, %d proofs, open %+v and %+v", imported, locked, proven, l.Step, l.Maintenance)
	}
}
