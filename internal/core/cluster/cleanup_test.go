package cluster

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// toCleanUp is a ring with two nodes in its first rack, in which the operations of the first rack's clean-up are written and nobody has begun them.
func toCleanUp(t *testing.T, due ...string) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 2, 1))
	w.settle()
	w.snapshot.Ledger.Cleanup = due
	for _, write := range Next(w.snapshot, w.now).Writes {
		w.do(write)
	}
	if s := w.snapshot.Ledger.Step; s == nil || s.Kind != ledger.Cleanup {
		t.Fatalf("step %+v", s)
	}
	return w
}

const (
	firstOfRack, secondOfRack = "orders-dc1-r1-0", "orders-dc1-r1-1"
	ofNextRack                = "orders-dc1-r2-0"
)

// Racks are cleaned up one after the other. A node that is down for long before it has begun is left for later.
func TestANodeThatIsDownIsCleanedUpWhenItIsBack(t *testing.T) {
	w := toCleanUp(t, firstOfRack, secondOfRack, ofNextRack)
	if got := w.snapshot.Ledger.Step.Wave(); !slices.Equal(got, []string{firstOfRack, secondOfRack}) {
		t.Fatalf("at a time %v", got)
	}
	w.absent[secondOfRack] = true
	w.agents()
	began := w.now
	made := w.settle()
	if s := w.snapshot.Ledger.Step; s == nil || !slices.Equal(s.Wave(), []string{firstOfRack, secondOfRack}) || made.Wake > operationPatience {
		t.Fatalf("not waited for, or for too long: %+v\n%s", s, made)
	}
	w.now = began.Add(operationPatience)
	w.settle()
	if l := w.snapshot.Ledger; l.Step != nil || !slices.Equal(l.Cleanup, []string{secondOfRack}) || len(w.snapshot.Nodes[secondOfRack].Record.Spec.Operations) > 0 {
		t.Errorf("the others wait for it: %s", ledgerInWords(l))
	}
	delete(w.absent, secondOfRack)
	w.agents()
	w.settle()
	if l := w.snapshot.Ledger; l.Step != nil || len(l.Cleanup) > 0 {
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
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID, Phase: v1alpha1.OperationRunning}}
		}, false},
		"it is away, and has done another step's": {func(w *world, n *facts.Node) {
			away(w, n)
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: "former/cleanup/" + n.Name, Phase: v1alpha1.OperationSucceeded}}
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
			w.now = w.now.Add(operationPatience + time.Second)
			p := passOver(w)
			if got := p.dropAbsent(p.Ledger.Step); got != c.dropped {
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
			n.Agent, n.Record.Status.Operations = nil, []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID, Phase: v1alpha1.OperationRunning}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := toCleanUp(t, firstOfRack, secondOfRack)
			other(w.snapshot.Nodes[firstOfRack])
			w.snapshot.Nodes[secondOfRack].Agent = nil
			w.now = w.now.Add(operationPatience + time.Second)
			p := passOver(w)
			if !p.dropAbsent(p.Ledger.Step) || !slices.Equal(p.Ledger.Step.Withdrawn, []string{secondOfRack}) {
				t.Errorf("left for later: %v, want %s", p.Ledger.Step.Withdrawn, secondOfRack)
			}
		})
	}
}

// Racks of two datacenters may have the same name.
func TestARackIsOfItsDatacenter(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 1), datacenter("dc2", 1))
	w.settle()
	p := passOver(w)
	p.wanted = wantedOf(w)
	if got := p.firstRack([]string{"orders-dc2-r1-0", ofNextRack, secondOfRack, firstOfRack}); !slices.Equal(got, []string{secondOfRack, firstOfRack}) {
		t.Errorf("the first rack has %v", got)
	}
	p.Nodes[secondOfRack].Record = nil
	if got := p.rows([]string{secondOfRack, firstOfRack, ofNextRack, "orders-dc2-r1-0"}); len(got) != 2 || len(got[0]) != 3 || !slices.Equal(got[1], []string{secondOfRack}) {
		t.Errorf("rows %v", got)
	}
}

// A datacenter is rebuilt from one that stands, and that is not itself.
func TestWhereADatacenterIsRebuiltFrom(t *testing.T) {
	for from, want := range map[string]string{"": "dc1", "dc1": "dc1", "dc4": "dc4", "dc3": "", "dc2": "", "elsewhere": ""} {
		w := newWorld(t, datacenter("dc1", 1), datacenter("dc4", 1))
		w.settle()
		old := w.snapshot.Cluster.Spec.Datacenters
		w.snapshot.Cluster.Spec.Datacenters = slices.Concat([]v1alpha1.Datacenter{datacenter("dc3", 1), added("dc2", 1)}, old)
		dc := &w.snapshot.Cluster.Spec.Datacenters[1]
		dc.Extend.From = from
		got := ""
		if source := passOver(w).source(dc); source != nil {
			got = source.Name
		}
		if got != want {
			t.Errorf("from %q it is %q, want %q", from, got, want)
		}
	}
}
