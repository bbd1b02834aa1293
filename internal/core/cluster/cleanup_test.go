package cluster

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// toCleanUp is a ring with two nodes in its first rack, in which the operations of the first rack's
// cleanup are written and nobody has begun them.
func toCleanUp(t *testing.T, due ...string) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 2, 1))
	w.settle()
	w.snapshot.Ledger.Cleanup = due
	for _, write := range Next(w.snapshot, w.now).Writes {
		w.do(write)
	}
	if s := w.open(); s == nil || s.Kind != ledger.Cleanup {
		t.Fatalf("step %+v", s)
	}
	return w
}

// downTimeout is how long a cleanup waits for a node that is down before its operation has begun.
const downTimeout = 10 * time.Minute

// leftForLater are the nodes that the open step takes out of its wave.
func leftForLater(w *world) []string {
	for _, write := range next(w).Writes {
		if write.Verb == plan.PutLedger && len(write.Ledger.Open()) > 0 {
			return write.Ledger.Open()[0].Withdrawn
		}
	}
	return nil
}

// Racks are cleaned up one after the other. A node that is down for long before it has begun is
// left for later.
func TestANodeThatIsDownIsCleanedUpWhenItIsBack(t *testing.T) {
	w := toCleanUp(t, firstOfRack, secondOfRack, ofNextRack)
	if got := w.open().Wave(); !slices.Equal(got, []string{firstOfRack, secondOfRack}) {
		t.Fatalf("at a time %v", got)
	}
	w.absent[secondOfRack] = true
	w.agents()
	began := w.now
	made := w.settle()
	if s := w.open(); s == nil || !slices.Equal(s.Wave(), []string{firstOfRack, secondOfRack}) ||
		made.Wake > downTimeout {
		t.Fatalf("not waited for, or for too long: %+v\n%s", s, made)
	}
	w.now = began.Add(downTimeout)
	w.settle()
	if l := w.snapshot.Ledger; len(l.Open()) > 0 || !slices.Equal(l.Cleanup, []string{secondOfRack}) {
		t.Errorf("the others wait for it: %s", ledgerInWords(l))
	}
	for _, o := range w.snapshot.Nodes[secondOfRack].Record.Spec.Operations {
		if o.Withdraw == nil {
			t.Errorf("it is still asked for: %+v", o)
		}
	}
	delete(w.absent, secondOfRack)
	w.agents()
	w.settle()
	if l := w.snapshot.Ledger; len(l.Open()) > 0 || len(l.Cleanup) > 0 {
		t.Errorf("it is back: %s", ledgerInWords(l))
	}
}

// Who may have begun, or will when it has a record again, is waited for however long it takes.
func TestWhoIsWaitedForInACleanUp(t *testing.T) {
	away := func(_ *world, n *facts.Node) { n.Agent = nil }
	for name, c := range map[string]struct {
		change  func(*world, *facts.Node)
		dropped bool
	}{
		"it is away": {away, true},
		"it is up":   {func(*world, *facts.Node) {}, false},
		"it is away, and has begun": {func(w *world, n *facts.Node) {
			away(w, n)
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID,
				Phase: v1alpha1.OperationRunning}}
		}, false},
		"it is away, and has done another step's": {func(w *world, n *facts.Node) {
			away(w, n)
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: "former/cleanup/" + n.Name,
				Phase: v1alpha1.OperationSucceeded}}
		}, true},
		"its record is away": {func(w *world, n *facts.Node) { away(w, n); n.Record = nil }, false},
		"its record is being deleted": {func(w *world, n *facts.Node) {
			away(w, n)
			deleting(n)
		}, false},
		"another pod answers for it": {func(_ *world, n *facts.Node) { n.Agent.PodUID = types.UID("former") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := toCleanUp(t, firstOfRack, secondOfRack)
			c.change(w, w.snapshot.Nodes[secondOfRack])
			w.now = w.now.Add(downTimeout + time.Second)
			if got := leftForLater(w); (len(got) > 0) != c.dropped {
				t.Errorf("left for later: %v", got)
			}
		})
	}
}

// One that is away is left for later whoever else is in the rack.
func TestWhoIsAwayDoesNotHideBehindOthers(t *testing.T) {
	for name, other := range map[string]func(*facts.Node){
		"one is up":         func(*facts.Node) {},
		"one has no record": func(n *facts.Node) { n.Record = nil },
		"one that is away, too, and has begun": func(n *facts.Node) {
			n.Agent, n.Record.Status.Operations = nil,
				[]v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID, Phase: v1alpha1.OperationRunning}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := toCleanUp(t, firstOfRack, secondOfRack)
			other(w.snapshot.Nodes[firstOfRack])
			w.snapshot.Nodes[secondOfRack].Agent = nil
			w.now = w.now.Add(downTimeout + time.Second)
			if got := leftForLater(w); !slices.Equal(got, []string{secondOfRack}) {
				t.Errorf("left for later: %v, want %s", got, secondOfRack)
			}
		})
	}
}

// Racks of two datacenters may have the same name.
func TestARackIsOfItsDatacenter(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 1), datacenter("dc2", 1))
	w.settle()
	const other = "orders-dc2-r1-0"
	w.snapshot.Ledger.Cleanup = []string{firstOfRack, secondOfRack, ofNextRack, other}
	for _, rack := range [][]string{{firstOfRack, secondOfRack}, {ofNextRack}, {other}} {
		w.until(func(s *ledger.Step) bool { return s.Kind == ledger.Cleanup && slices.Equal(s.Wave(), rack) })
	}
	w.settle()
	v := viewOf(w)
	rows := procedure.RepairRows(v, []string{firstOfRack, secondOfRack, ofNextRack, other})
	if want := [][]string{{firstOfRack, ofNextRack}, {other}, {secondOfRack}}; !reflect.DeepEqual(rows, want) {
		t.Errorf("in racks of two nodes at most these repair at a time: %v, want %v", rows, want)
	}
	v.Nodes[secondOfRack].Record = nil
	rows = procedure.OnePerRack(v, []string{secondOfRack, firstOfRack, ofNextRack, other})
	if len(rows) != 2 || len(rows[0]) != 3 || !slices.Equal(rows[1], []string{secondOfRack}) {
		t.Errorf("rows %v", rows)
	}
}
