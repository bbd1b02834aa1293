package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// downTooLong is a ring of which the first node was away for two hours, where deletions are kept
// for one. The others were NORMAL until a minute after.
func downTooLong(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.settle()
	for _, name := range w.snapshot.Names() {
		n := w.snapshot.Nodes[name]
		n.Agent.Normal = []facts.Stretch{{From: w.now.Add(-24 * time.Hour), Until: w.now.Add(-2*time.Hour + time.Minute)}}
		n.Agent.GCGrace = time.Hour
	}
	n := w.snapshot.Nodes[first]
	n.Agent.Normal[0].Until = w.now.Add(-2 * time.Hour)
	n.Agent.Phase, n.Record.Status.Phase = v1alpha1.PhaseDownTooLong, v1alpha1.PhaseDownTooLong
	return w
}

func TestWhoStartsByItselfAfterALongAbsence(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, other *facts.Node)
		held   string
	}{
		"the ring was off": {func(*world, *facts.Node) {}, ""},
		"another is up for a while": {func(w *world, o *facts.Node) {
			o.Agent.Normal = append(o.Agent.Normal, facts.Stretch{From: w.now.Add(-time.Hour)})
		}, ""},
		"another went on": {func(_ *world, o *facts.Node) { o.Agent.Normal[0].Until = time.Time{} },
			"node " + second + " was NORMAL after it"},
		"another went on for long": {func(w *world, o *facts.Node) {
			o.Agent.Normal[0].Until = w.now.Add(-50 * time.Minute)
		}, "node " + second + " was NORMAL after it"},
		"another went on for a while, and began again": {func(w *world, o *facts.Node) {
			o.Agent.Normal[0].Until = w.now.Add(-90 * time.Minute)
			o.Agent.Normal = append(o.Agent.Normal, facts.Stretch{From: w.now.Add(-time.Minute)})
		}, "node " + second + " was NORMAL after it"},
		"another does not answer": {func(_ *world, o *facts.Node) { o.Agent = nil },
			"node " + second + " does not answer"},
		"another does not know": {func(_ *world, o *facts.Node) { o.Agent.Normal = nil },
			"node " + second + " does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			w := downTooLong(t)
			c.change(w, w.snapshot.Nodes[second])
			made := w.pass()
			start := w.snapshot.Nodes[first].Record.Spec.StartAnyway
			if (start != nil) != (c.held == "") {
				t.Errorf("the record says %+v", start)
			}
			if start != nil && (start.HostID != w.snapshot.Ledger.Members[first] || !start.Until.After(w.now)) {
				t.Errorf("the record says %+v", start)
			}
			said := slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
				return slices.Equal(n.Nodes, []string{first}) && strings.Contains(n.Message, c.held) &&
					strings.Contains(n.Message, "kubectl helenus start-anyway "+first)
			})
			if said != (c.held != "") {
				t.Errorf("notices %+v", made.Notices)
			}
		})
	}
}

// What was true of the ring does not stay so: the word holds for minutes, and is taken back.
func TestAStartByItselfIsForMinutes(t *testing.T) {
	w := downTooLong(t)
	w.pass()
	n := w.snapshot.Nodes[first]
	if n.Record.Spec.StartAnyway == nil || n.Record.Spec.StartAnyway.Until.Sub(w.now) > 10*time.Minute {
		t.Fatalf("the record says %+v", n.Record.Spec.StartAnyway)
	}
	w.snapshot.Nodes[second].Agent.Normal[0].Until = time.Time{}
	if w.pass(); n.Record.Spec.StartAnyway != nil {
		t.Errorf("another was NORMAL, and the record says %+v", n.Record.Spec.StartAnyway)
	}
}

func TestAPersonLetsANodeStart(t *testing.T) {
	w := downTooLong(t)
	w.snapshot.Nodes[second].Agent.Normal[0].Until = time.Time{}
	e := v1alpha1.Exception{Name: "start", Type: v1alpha1.ExceptionStartAnyway, Node: first, Reason: "never deletes",
		HostID: "eeeeeeee-0000-4000-8000-000000000000", Until: metav1.NewTime(w.now.Add(time.Hour))}
	w.except(e)
	wantExceptions(t, w, map[string][2]string{"start": {"Refused", "is the member with host id"}})
	e.HostID = w.snapshot.Ledger.Members[first]
	w.except(e)
	wantExceptions(t, w, map[string][2]string{"start": {"Active", "may start"}})
	w.pass()
	start := w.snapshot.Nodes[first].Record.Spec.StartAnyway
	if start == nil || start.HostID != e.HostID || start.Reason != e.Reason || !start.Until.Time.Equal(e.Until.Time) {
		t.Errorf("the record says %+v", start)
	}
	if !slices.Contains(w.events, "StartAllowed") {
		t.Errorf("events %v", w.events)
	}
	w.except()
	if w.pass(); w.snapshot.Nodes[first].Record.Spec.StartAnyway != nil {
		t.Error("it was taken back, and the record still says so")
	}
}

// A node that says so is written down, and stays until it was repaired, whatever becomes of its
// status. Nobody repairs it unasked.
func TestARepairIsDueUntilItIsDone(t *testing.T) {
	w := formed(t)
	w.settle()
	n := w.snapshot.Nodes[second]
	n.Record.Status.RepairDue = []v1alpha1.RepairDue{
		{Reason: v1alpha1.RepairAwayLongerThanHintWindow, Since: metav1.NewTime(w.now)},
		{Reason: v1alpha1.RepairCommitLogLost, Since: metav1.NewTime(w.now.Add(-time.Hour))},
	}
	recommended := func() []v1alpha1.Recommendation {
		w.pass()
		return next(w).Recommended
	}
	if all := recommended(); len(all) != 1 || all[0].Operation != "Repair" || !slices.Equal(all[0].Nodes, []string{second}) ||
		!strings.Contains(all[0].Message, "commit log") || !strings.Contains(all[0].Message, "kubectl helenus repair "+second) {
		t.Errorf("recommended %+v", all)
	}
	n.Record.Status.RepairDue = nil
	if all := recommended(); len(all) != 1 || len(w.snapshot.Ledger.RepairDue) != 1 {
		t.Errorf("its status is lost: recommended %+v", all)
	}
	w.settle()
	if len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("steps %+v", w.snapshot.Ledger.Maintenance)
	}
	repair := func(name, node string) v1alpha1.Exception {
		return v1alpha1.Exception{Name: name, Type: v1alpha1.ExceptionRepair, Node: node, Reason: "x",
			Until: metav1.NewTime(w.now.Add(time.Hour))}
	}
	w.except(repair("a", first), repair("b", second))
	if all := recommended(); len(all) > 0 {
		t.Errorf("recommended %+v", all)
	}
	wantExceptions(t, w, map[string][2]string{"a": {"Over", "no repair of node " + first}, "b": {"Active", "repaired"}})
	w.settle()
	operations := w.snapshot.Nodes[second].Record.Status.Operations
	if len(w.snapshot.Ledger.RepairDue) > 0 || len(operations) == 0 ||
		operations[len(operations)-1].Phase != v1alpha1.OperationSucceeded {
		t.Errorf("due %+v, operations %+v", w.snapshot.Ledger.RepairDue, operations)
	}
	wantExceptions(t, w, map[string][2]string{"a": {"Over", ""}, "b": {"Over", "take it out"}})
}
