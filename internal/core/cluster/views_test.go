package cluster

import (
	"reflect"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// The ring stands when every node is NORMAL and live in the view of every other, with the tokens
// that it was given, and all have one schema.
func TestDoubtsAboutTheRing(t *testing.T) {
	ring := func(w *world, name string) *facts.Ring { return w.snapshot.Nodes[name].Agent.Ring }
	seen := func(w *world, by, of string) *facts.Endpoint {
		r := ring(w, by)
		for i := range r.Endpoints {
			if r.Endpoints[i].HostID == hostID(of) {
				return &r.Endpoints[i]
			}
		}
		t.Fatalf("%s does not see %s", by, of)
		return nil
	}
	for name, c := range map[string]struct {
		change func(*world)
		doubts string // all of them
		normal int
	}{
		"none": {func(*world) {}, "", 3},
		"one agent is silent": {func(w *world) { w.snapshot.Nodes[first].Agent = nil },
			first + ": its pod is starting", 2},
		"one has no JVM": {func(w *world) { w.snapshot.Nodes[first].Agent.Ring = nil },
			first + ": Normal", 2},
		"one has no JVM, and says why": {func(w *world) {
			a := w.snapshot.Nodes[first].Agent
			a.Ring, a.Message = nil, "no heap"
		}, first + ": no heap", 2},
		"one joins": {func(w *world) { ring(w, first).Mode = facts.ModeJoining },
			first + " is JOINING", 2},
		"one does not know itself": {func(w *world) { ring(w, first).HostID = "x" },
			first + " does not have the tokens of its ticket", 2},
		"one has other tokens": {func(w *world) { seen(w, first, first).Tokens = []int64{1, 2, 3, 4} },
			first + " does not have the tokens of its ticket", 2},
		"one has fewer tokens": {func(w *world) { e := seen(w, first, first); e.Tokens = e.Tokens[:3] },
			first + " does not have the tokens of its ticket", 2},
		"one does not know another": {func(w *world) { seen(w, first, third).HostID = "x" },
			first + " does not know " + third + " yet", 3},
		"one sees another joining": {func(w *world) { seen(w, second, first).Status = facts.StatusBootstrap },
			second + " sees " + first + " as BOOT", 3},
		"one sees another down": {func(w *world) { seen(w, second, first).Live = false },
			second + " sees " + first + " as NORMAL and down", 3},
		"one sees no status": {func(w *world) { e := seen(w, second, first); e.Status, e.Live = "", false },
			second + " sees " + first + " as unknown and down", 3},
		"one does not see the tokens": {func(w *world) { seen(w, third, first).Tokens = nil },
			third + " does not see the tokens of " + first + " yet", 3},
		"two schemas": {func(w *world) { ring(w, third).SchemaVersion = "zz" },
			second + " and " + third + " have different schemas", 3},
		"a schema of one that joins": {func(w *world) {
			r := ring(w, first)
			r.Mode, r.SchemaVersion = facts.ModeJoining, "zz"
		}, first + " is JOINING", 2},
		"a ticket that names no tokens": {func(w *world) { w.takeTokens(first) }, "", 3},
		"a ticket of no number": {func(w *world) { w.takeTokens(first, "many") },
			first + " does not have the tokens of its ticket", 2},
		"the first joins, and the second does not know the third": {func(w *world) {
			ring(w, first).Mode = facts.ModeJoining
			seen(w, second, third).HostID = "x"
		}, first + " is JOINING; " + second + " does not know " + third + " yet", 2},
		"nothing is known of the first, and the second has other tokens": {func(w *world) {
			w.snapshot.Nodes[first].Agent = nil
			seen(w, second, second).Tokens = []int64{1}
		}, first + ": its pod is starting; " + second + " does not have the tokens of its ticket", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageTickets)
			w.agents()
			for _, name := range three { // a view of its own for each
				r := ring(w, name)
				r.Endpoints = append([]facts.Endpoint{}, r.Endpoints...)
			}
			c.change(w)
			look := func(v *assess.View) (out ticket.Views) {
				during(v, func(s *procedure.Step) { out = ticket.Look(v, s) })
				return out
			}
			observed := viewOf(w)
			observed.Snapshot = asObserved(observed.Snapshot)
			v, other := look(viewOf(w)), look(observed)
			if !reflect.DeepEqual(v, other) {
				t.Errorf("with views that are digested before: %+v, want %+v", other, v)
			}
			if got := strings.Join(v.Doubts, "; "); got != c.doubts || len(v.Normal) != c.normal ||
				len(v.HostIDs) != c.normal {
				t.Errorf("doubts %q with %d NORMAL; want %q with %d", got, len(v.Normal), c.doubts, c.normal)
			}
		})
	}
}
