package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// ringOf is what a node sees, as long as it is up.
func (w *world) ringOf(node string) *facts.Ring {
	return w.running[w.snapshot.Nodes[node].Pod.UID].Ring
}

// passesUntil makes passes, one a second, until something holds; at most so many.
func (w *world) passesUntil(most int, holds func(plan.Plan) bool) (int, plan.Plan) {
	w.t.Helper()
	var made plan.Plan
	for i := range most {
		if made = w.pass(); holds(made) {
			return i, made
		}
	}
	w.t.Fatalf("not after %d s:\n%s", most, made)
	return 0, made
}

func asked(w *world, node string) func(plan.Plan) bool {
	return func(plan.Plan) bool {
		n := w.snapshot.Nodes[node].Record
		return n.Spec.Restart != nil || n.Status.Restart != nil || n.Spec.State == v1alpha1.StateStopped
	}
}

// A wave waits for the hints for the last one as long as they become fewer, and names what is left.
func TestAWaveWaitsForHints(t *testing.T) {
	first, second, third := three[0], three[1], three[2]
	for name, c := range map[string]struct {
		// hints are what the third node keeps so many seconds after the soak.
		hints func(second int) map[string]int
		// seconds are how long the next wave waits, and left what the notice says then.
		seconds int
		left    string
	}{
		"none":        {func(int) map[string]int { return map[string]int{} }, 0, ""},
		"for another": {func(int) map[string]int { return map[string]int{hostID(second): 3, "gone": 1} }, 0, ""},
		"they are sent": {func(s int) map[string]int {
			return map[string]int{hostID(first): max(0, 3-s/60)}
		}, 180, ""},
		"they stay": {func(int) map[string]int { return map[string]int{hostID(first): 3} }, 120,
			"node " + third + " keeps hints for " + first},
		"they become fewer, and stay": {func(s int) map[string]int {
			return map[string]int{hostID(first): max(1, 3-s/60)}
		}, 240, "node " + third + " keeps hints for " + first},
		"they become more": {func(s int) map[string]int {
			return map[string]int{hostID(first): 1 + s}
		}, 120, "node " + third + " keeps hints for " + first},
		"it does not say": {func(int) map[string]int { return nil }, 120,
			"node " + third + " does not say whether it keeps hints"},
	} {
		t.Run(name, func(t *testing.T) {
			w := inSoak(t)
			w.now = w.now.Add(time.Minute)
			begun := w.now
			blocked := false
			w.ringOf(third).Hints = c.hints(0)
			waited, made := w.passesUntil(c.seconds+10, func(made plan.Plan) bool {
				blocked = blocked || slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
					return b.Reason == v1alpha1.BlockedHintsNotDelivered
				})
				at := int(w.now.Sub(begun).Seconds())
				w.ringOf(third).Hints = c.hints(at)
				return asked(w, second)(made)
			})
			if waited < c.seconds-2 || waited > c.seconds+4 || blocked != (c.seconds > 0) {
				t.Errorf("it has waited for %d s, want %d; blocked by name: %v", waited, c.seconds, blocked)
			}
			said := ""
			for _, n := range made.Notices {
				if n.Reason == v1alpha1.BlockedHintsNotDelivered {
					said = n.Message
				}
			}
			if !strings.HasPrefix(said, c.left) || (said == "") != (c.left == "") {
				t.Errorf("it says %q, want %q", said, c.left)
			}
			w.ringOf(third).Hints = map[string]int{}
			w.rolledOut()
		})
	}
}

// Nobody waits for hints for a member whose disk is lost.
func TestNobodyWaitsForHintsForALostDisk(t *testing.T) {
	w := inSoak(t)
	w.now = w.now.Add(time.Minute)
	w.ringOf(three[2]).Hints = map[string]int{hostID(three[0]): 3}
	if w.pass(); w.snapshot.Ledger.Step == nil || asked(w, three[1])(plan.Plan{}) {
		t.Fatal("it has not waited before")
	}
	agent := w.running[w.snapshot.Nodes[three[0]].Pod.UID]
	agent.Ring, agent.Process, agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
	agent.Disk = v1alpha1.DiskEmpty
	w.agents()
	w.passesUntil(5, asked(w, three[1]))
}

// Before the first node hints are delivered, which a step before may have left, and before that of
// another release batches, too.
func TestWhatIsDeliveredBeforeTheFirstNode(t *testing.T) {
	release := func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }
	for name, c := range map[string]struct {
		change  func(*v1alpha1.CassandraClusterSpec)
		kept    func(*facts.Ring)
		seconds int
	}{
		"hints, and a setting":   {setting("concurrent_reads", "16"), func(r *facts.Ring) { r.Hints[hostID(three[1])] = 1 }, 120},
		"batches, and a setting": {setting("concurrent_reads", "16"), func(r *facts.Ring) { r.Unfinished.Batches = 4 }, 0},
		"nothing":                {release, func(*facts.Ring) {}, 0},
		"hints":                  {release, func(r *facts.Ring) { r.Hints[hostID(three[1])] = 1 }, 120},
		"batches":                {release, func(r *facts.Ring) { r.Unfinished.Batches = 4 }, 120},
		"nobody has counted":     {release, func(r *facts.Ring) { r.Unfinished = nil }, 120},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
			c.kept(w.ringOf(three[2]))
			w.change(c.change)
			w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
			waited, made := w.passesUntil(c.seconds+10, asked(w, three[0]))
			noticed := slices.ContainsFunc(made.Notices,
				func(n v1alpha1.Notice) bool { return n.Reason == v1alpha1.BlockedHintsNotDelivered })
			if waited < c.seconds-4 || waited > c.seconds+4 || noticed != (c.seconds > 0) {
				t.Errorf("it has waited for %d s, want %d; it is said: %v", waited, c.seconds, noticed)
			}
		})
	}
}
