package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

func stopped(yes bool) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = yes }
}

// run passes until the ring is in a stage of its stop; an empty one is its end.
func (w *world) run(to ledger.Stage) {
	w.t.Helper()
	for range 100 {
		if w.pass(); w.snapshot.Ledger.Stops() == to {
			return
		}
		w.now = w.now.Add(2 * time.Second)
	}
	w.t.Fatalf("the ring never came to the stage %q: %s", to, ledgerInWords(w.snapshot.Ledger))
}

// stoppedRing is a ring of three racks that is stopped.
func stoppedRing(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.settle()
	w.change(stopped(true))
	w.run(ledger.StageStopped)
	return w
}

func (w *world) podsThere() (out []string) {
	for _, name := range w.snapshot.Names() {
		if w.snapshot.Nodes[name].Pod != nil {
			out = append(out, name)
		}
	}
	return out
}

// wantDown fails if anything runs, or is to.
func (w *world) wantDown() {
	w.t.Helper()
	if pods := w.podsThere(); len(pods) > 0 {
		w.t.Errorf("pods of %v are there", pods)
	}
	for _, n := range w.snapshot.Records() {
		if spec := n.Record.Spec; spec.Member != nil &&
			(spec.State != v1alpha1.StateStopped || spec.ClientTraffic != v1alpha1.TrafficClosed) {
			w.t.Errorf("node %s is to be %s, and %s to clients", n.Name, spec.State, spec.ClientTraffic)
		}
	}
}

// A ring that is stopped stays so: nothing of a changed spec, of lost objects or of a lost ledger
// has anything run, and all of it follows when the ring starts.
func TestAStoppedRingStaysDown(t *testing.T) {
	for name, disturb := range map[string]func(w *world){
		"nothing happens": func(*world) {},
		"a record is gone": func(w *world) {
			w.snapshot.Nodes[second].Record = nil
			w.held = map[string]v1alpha1.DiskState{second: v1alpha1.DiskMember}
		},
		"the ledger is gone": func(w *world) { w.snapshot.Ledger = nil },
		"a setting changes": func(w *world) {
			w.change(setting("concurrent_reads", "16"))
		},
		"it is to grow": func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
		},
		"it is paused": func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Paused = true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := stoppedRing(t)
			w.settle()
			disturb(w)
			w.settle()
			w.run(ledger.StageStopped)
			w.settle()
			w.wantDown()
			for _, n := range w.snapshot.Records() {
				if n.Record.Spec.Member != nil && len(n.Claims) == 0 {
					t.Errorf("node %s has no claim any more", n.Name)
				}
			}
			w.change(stopped(false))
			w.run("")
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Paused = false })
			for range 6 { // what waits for a time, such as the soak of a roll-out
				w.now = w.now.Add(time.Minute)
				w.settle()
			}
			w.wantOpen()
			if want := len(wantedOf(w)); len(w.snapshot.Ledger.Members) != want {
				t.Errorf("%d members, want %d", len(w.snapshot.Ledger.Members), want)
			}
		})
	}
}

// A ledger that is lost while the ring is stopped is rebuilt as that of a ring that was open to
// clients, and with a cleanup due on every node, since it is unknown which of them need one.
func TestALostLedgerOfAStoppedRing(t *testing.T) {
	w := stoppedRing(t)
	w.snapshot.Ledger = nil
	w.settle()
	l := w.snapshot.Ledger
	if !l.TrafficAllowed || !slices.Equal(l.Cleanup, three) || !l.SystemKeyspaces || l.Stops() != ledger.StageStopped {
		t.Errorf("the ledger is %s", ledgerInWords(l))
	}
}

// Taken back, a stop turns round wherever it is.
func TestAStopIsTakenBack(t *testing.T) {
	for _, stage := range []ledger.Stage{ledger.StageClose, ledger.StageDeliver, ledger.StageDrain} {
		t.Run(string(stage), func(t *testing.T) {
			w := formed(t)
			w.settle()
			w.snapshot.Nodes[first].Agent.Ring.Hints = map[string]int{hostID(second): 1}
			w.absent[third] = stage != ledger.StageDeliver
			w.change(stopped(true))
			for range 400 {
				if w.snapshot.Ledger.Stops() == stage {
					break
				}
				w.pass()
				w.now = w.now.Add(10 * time.Second)
			}
			if at := w.snapshot.Ledger.Stops(); at != stage {
				t.Fatalf("the stop is in the stage %q", at)
			}
			delete(w.absent, third)
			w.change(stopped(false))
			w.run("")
			w.settle()
			w.wantOpen()
		})
	}
}

// The start turns round, too.
func TestAStartIsTakenBack(t *testing.T) {
	for _, stage := range []ledger.Stage{ledger.StageStart, ledger.StageOpen} {
		t.Run(string(stage), func(t *testing.T) {
			w := stoppedRing(t)
			since := w.snapshot.Ledger.Stopped.Since
			w.absent[second] = true
			w.change(stopped(false))
			for range 100 {
				if w.snapshot.Ledger.Stops() == stage {
					break
				}
				w.pass()
				w.now = w.now.Add(5 * time.Second)
			}
			delete(w.absent, second)
			w.change(stopped(true))
			w.run(ledger.StageStopped)
			w.settle()
			w.wantDown()
			if again := w.snapshot.Ledger.Stopped.Since; again.Equal(since) != (stage == ledger.StageStart) {
				t.Errorf("in the stage %s: stopped since %s, before it was %s", stage, again, since)
			}
		})
	}
}

// What a stop waits for is named, and holds it for ten minutes, or until it is known that nothing
// runs.
func TestWhatAStopWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world)
		reason v1alpha1.Reason
		words  string
		stage  ledger.Stage
	}{
		"an agent that does not answer": {func(w *world) { w.absent[third] = true }, v1alpha1.BlockedClientTrafficOpen,
			"nobody knows whether node " + third + " is open to clients", ledger.StageDrain},
		"hints": {func(w *world) { w.snapshot.Nodes[first].Agent.Ring.Hints = map[string]int{hostID(second): 1} },
			v1alpha1.BlockedHintsNotDelivered, "node " + first + " keeps hints for " + second, ledger.StageStopped},
		"batches": {func(w *world) { w.snapshot.Nodes[first].Agent.Ring.Unfinished.Batches = 2 },
			v1alpha1.BlockedHintsNotDelivered, "has batches", ledger.StageStopped},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.settle()
			c.before(w)
			w.agents()
			w.change(stopped(true))
			w.settle()
			w.now = w.now.Add(12 * time.Second)
			made := w.settle()
			if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
				return b.Step == "StopRing" && b.Reason == c.reason && strings.Contains(b.Message, c.words)
			}) {
				t.Fatalf("blocked by %+v", made.Blocked)
			}
			for _, n := range w.snapshot.Records() {
				if n.Record.Spec.State != v1alpha1.StateRunning {
					t.Errorf("node %s is to be %s", n.Name, n.Record.Spec.State)
				}
			}
			for range 3 {
				w.now = w.now.Add(10 * time.Minute)
				made = w.settle()
			}
			if at := w.snapshot.Ledger.Stops(); at != c.stage {
				t.Fatalf("the stop is in the stage %q; blocked by %+v", at, made.Blocked)
			}
			said := slices.ContainsFunc(reported(made), func(b v1alpha1.BlockedStep) bool {
				return b.Reason == v1alpha1.BlockedHintsNotDelivered && strings.Contains(b.Message, c.words) ||
					b.Reason == v1alpha1.BlockedAgentUnreachable && strings.Contains(b.Message, third)
			})
			if !said {
				t.Errorf("it is not named: %+v", reported(made))
			}
			if pods := w.podsThere(); len(pods) > 1 || len(pods) == 1 && pods[0] != third {
				t.Errorf("pods of %v are there", pods)
			}
		})
	}
}

// A stop waits for a step that is open, and says so; a ring that has not formed is not stopped.
func TestWhatIsNotStopped(t *testing.T) {
	w := forming(t, v1alpha1.DiskJoining, three...)
	w.change(stopped(true))
	made := w.pass()
	if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
		return b.Reason == v1alpha1.BlockedOtherStepOpen && strings.Contains(b.Message, "FormRing")
	}) || made.Stalled != nil {
		t.Errorf("blocked by %+v, stalled %+v", made.Blocked, made.Stalled)
	}
	w = newWorld(t, datacenter("dc1", 1, 1, 1))
	w.change(stopped(true))
	wantStalled(t, w.settle(), v1alpha1.ReasonInvalidSpec, "stopped is true", "has not formed")
	if w.snapshot.Ledger.Step != nil || len(w.podsThere()) > 0 {
		t.Errorf("pods %v; %s", w.podsThere(), ledgerInWords(w.snapshot.Ledger))
	}
}

// A roll-out is left when its wave is over, and comes back with the ring.
func TestARollOutIsStopped(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.change(setting("concurrent_reads", "16"))
	w.settle() // the first node serves
	w.change(stopped(true))
	w.now = w.now.Add(30 * time.Second)
	w.run(ledger.StageStopped)
	w.settle()
	w.wantDown()
	w.change(stopped(false))
	w.run("")
	for range 4 {
		w.now = w.now.Add(time.Minute)
		w.settle()
	}
	w.wantOpen()
	for _, n := range w.snapshot.Records() {
		if string(n.Record.Spec.Configuration.CassandraYaml["concurrent_reads"].Raw) != "16" {
			t.Errorf("node %s has not taken over the setting", n.Name)
		}
	}
}

// While the ring was stopped as a whole, a member that does not answer was not NORMAL either.
func TestACommonAbsenceHoldsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		since, until time.Duration // ago
		starts       bool
	}{
		"it was stopped then":              {2*time.Hour - 5*time.Minute, time.Minute, true},
		"it was stopped later":             {time.Hour + 30*time.Minute, time.Minute, false},
		"it has started for a while since": {2 * time.Hour, 90 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := downTooLong(t)
			w.snapshot.Nodes[second].Agent = nil
			w.snapshot.Ledger.Stopped = &ledger.Stopped{Since: w.now.Add(-c.since), Until: w.now.Add(-c.until)}
			w.pass()
			if start := w.snapshot.Nodes[first].Record.Spec.StartAnyway; (start != nil) != c.starts {
				t.Errorf("the record says %+v", start)
			}
		})
	}
}

// A ring that is stopped is deleted.
func TestAStoppedRingIsDeleted(t *testing.T) {
	w := stoppedRing(t)
	w.deleteCluster()
	w.settle()
	if len(w.snapshot.Cluster.Finalizers) > 0 || len(w.snapshot.Records()) > 0 {
		t.Errorf("finalizers %v, %d records", w.snapshot.Cluster.Finalizers, len(w.snapshot.Records()))
	}
}
