package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

// What a plan writes already is known by its uid; what is being made has none.
func TestWhatAPlanWritesAlready(t *testing.T) {
	d := &Draft{}
	d.Write(Write{Verb: Create, Object: &v1alpha1.CassandraNode{}}, Write{Verb: Apply, UID: "a"})
	for uid, want := range map[types.UID]bool{"a": true, "b": false, "": false} {
		record := &v1alpha1.CassandraNode{}
		record.UID = uid
		if d.Has(record) != want {
			t.Errorf("the uid %q: %v", uid, !want)
		}
	}
}

func TestAPlanWakesAtTheEarliestTime(t *testing.T) {
	d := &Draft{Plan: Plan{Wake: 10 * time.Minute}}
	for _, c := range []struct{ in, want time.Duration }{
		{time.Hour, 10 * time.Minute},
		{time.Minute, time.Minute},
		{2 * time.Minute, time.Minute},
		{0, time.Second},
		{time.Millisecond, time.Millisecond},
		{-time.Hour, time.Millisecond},
	} {
		if d.WakeIn(c.in); d.Wake != c.want {
			t.Errorf("wakes in %s after being asked for %s, want %s", d.Wake, c.in, c.want)
		}
	}
}

// A plan writes the ledger once, and looks at everything live before it if any of the reasons asks
// for that.
func TestChangesOfTheLedgerAreOneWrite(t *testing.T) {
	for _, live := range [][2]bool{{true, false}, {false, true}, {false, false}} {
		d := &Draft{}
		d.Write(Write{Verb: Event})
		d.PutLedger(&ledger.Ledger{Steps: 1}, live[0], "one")
		d.PutLedger(&ledger.Ledger{Steps: 2}, live[1], "two")
		if len(d.Writes) != 2 {
			t.Fatalf("writes %v", d.Writes)
		}
		w := d.Writes[1]
		if w.Verb != PutLedger || w.Live != (live[0] || live[1]) || w.Why != "one; two" || w.Ledger.Steps != 2 {
			t.Errorf("write %+v with %d steps", w, w.Ledger.Steps)
		}
	}
}

// The ledger and events hold nothing up: only objects do.
func TestWhatAPlanWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		writes  []Write
		pending bool
	}{
		"nothing":              {},
		"the ledger, an event": {writes: []Write{{Verb: PutLedger, Live: true}, {Verb: Event}}},
		"a record":             {writes: []Write{{Verb: Event}, {Verb: Apply, Live: true}}, pending: true},
		"a pod that goes":      {writes: []Write{{Verb: Delete}}, pending: true},
	} {
		d := &Draft{}
		d.Write(c.writes...)
		if d.Pending() != c.pending {
			t.Errorf("%s: pending %v", name, d.Pending())
		}
	}
}

func TestTheFirstStallCounts(t *testing.T) {
	d := &Draft{}
	d.Stall("A", "of %d", 1)
	d.Stall("B", "of %d", 2)
	if d.Stalled.Reason != "A" || d.Stalled.Message != "of 1" {
		t.Errorf("stalled %+v", d.Stalled)
	}
}
