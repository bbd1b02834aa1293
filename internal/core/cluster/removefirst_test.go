package cluster

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

// removeFirst is a person's word that a node leaves before others of its rack.
func removeFirst(w *world, node string) v1alpha1.Exception {
	return v1alpha1.Exception{Name: "first", Type: v1alpha1.ExceptionRemoveFirst, Node: node, Reason: "its host goes",
		Until: metav1.NewTime(w.now.Add(time.Hour))}
}

// gap is a ring of six that has lost the first node of its first rack before the second, and one of
// each of the others.
func gap(t *testing.T) *world {
	t.Helper()
	w := six(t)
	w.except(removeFirst(w, first))
	wantExceptions(t, w, map[string][2]string{"first": {"Waiting", "fewer nodes of rack r1 in datacenter dc1"}})
	w.change(nodesPerRack(1))
	wantExceptions(t, w, map[string][2]string{"first": {"Active", first + " leaves before others"}})
	want := []string{"LeaveNode " + first, "LeaveNode orders-dc1-r2-1", "LeaveNode orders-dc1-r3-1"}
	if got := w.leaversUntilIdle(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q:\n%s", got, want, next(w))
	}
	return w
}

// What is left keeps its name, whatever is lost afterwards, and when the word is over. Another node
// gets the ordinal that is free.
func TestANodeLeavesFirst(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"nothing":         func(*world) {},
		"the exception":   func(w *world) { w.except() },
		"its time":        func(w *world) { w.now = w.now.Add(2 * time.Hour) },
		"the ledger":      func(w *world) { w.except(); w.snapshot.Ledger = nil; w.agents() },
		"a record":        func(w *world) { w.except(); w.snapshot.Nodes[newcomer].Record = nil },
		"the pod as well": func(w *world) { w.except(); n := w.snapshot.Nodes[newcomer]; n.Record, n.Pod = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := gap(t)
			w.held = map[string]v1alpha1.DiskState{newcomer: v1alpha1.DiskMember}
			lose(w)
			w.settle()
			w.wantNames(newcomer, second, third)
			w.wantOpen()
			delete(w.snapshot.Nodes[first].Claims, v1alpha1.VolumeData) // else it does not join with it
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(3)) })
			w.settle()
			w.wantNames(first, newcomer, "orders-dc1-r1-2", second, third)
		})
	}
}

// The word is taken back, or over, before its node has begun to leave: the last one leaves in its
// place.
func TestANodeLeavesFirstNoMore(t *testing.T) {
	w := six(t)
	w.except(removeFirst(w, first))
	w.change(nodesPerRack(1))
	w.undecided()
	w.until(func(*ledger.Step) bool { return len(w.snapshot.Nodes[first].Record.Spec.Operations) > 0 })
	w.except()
	w.until(func(s *ledger.Step) bool { return s.Has(newcomer) })
	w.operate = nil
	got := w.leaversUntilIdle()
	want := []string{"LeaveNode " + newcomer, "LeaveNode orders-dc1-r2-1", "LeaveNode orders-dc1-r3-1"}
	if !slices.Equal(got, want) || !slices.Contains(w.events, "LeaveTakenBack") {
		t.Errorf("%q, want %q; events %v", got, want, w.events)
	}
	w.wantNames(first, second, third)
}

// A rack that goes loses the named node before the others.
func TestANodeOfARackThatGoesLeavesFirst(t *testing.T) {
	w := fourRacks(t)
	w.except(removeFirst(w, inR4))
	w.change(racks(3))
	want := []string{"LeaveNode " + inR4, "LeaveNode " + alsoInR4}
	if got := w.leaversUntilIdle(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A member stays, whatever its ordinal is, and not a node that is still to join.
func TestAMemberStaysBeforeANodeThatIsToJoin(t *testing.T) {
	w := gap(t)
	w.except()
	delete(w.snapshot.Nodes[first].Claims, v1alpha1.VolumeData)
	w.late[first] = true
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	w.settle()
	w.change(nodesPerRack(1))
	w.settle()
	if _, member := w.snapshot.Ledger.Members[newcomer]; !member {
		t.Errorf("%s", ledgerInWords(w.snapshot.Ledger))
	}
}
