package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

func debugException(w *world, name, node string, length time.Duration) v1alpha1.Exception {
	return v1alpha1.Exception{
		Name: name, Type: v1alpha1.ExceptionDebug, Node: node, Reason: "corrupt file",
		Until: metav1.NewTime(w.now.Add(length)),
	}
}

func (w *world) except(all ...v1alpha1.Exception) {
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Exceptions = all })
}

// wantExceptions says which state each exception is in, by its name, and words of its message.
func wantExceptions(t *testing.T, w *world, want map[string][2]string) {
	t.Helper()
	all := next(w).Exceptions
	if len(all) != len(want) {
		t.Errorf("exceptions %+v", all)
	}
	for _, e := range all {
		if c := want[e.Name]; string(e.State) != c[0] || !strings.Contains(e.Message, c[1]) {
			t.Errorf("exception %s is %s: %s; want %s: %s", e.Name, e.State, e.Message, c[0], c[1])
		}
	}
}

func TestANodeIsStoppedForAPerson(t *testing.T) {
	w := formed(t)
	w.settle()
	w.except(debugException(w, "look", second, time.Hour))
	w.pass()
	debug := w.snapshot.Nodes[second].Record.Spec.Debug
	if debug == nil || debug.Reason != "corrupt file" ||
		!debug.Until.Time.Equal(w.snapshot.Cluster.Spec.Exceptions[0].Until.Time) {
		t.Fatalf("the record says %+v", debug)
	}
	if !slices.Contains(w.events, "DebugStarted") {
		t.Errorf("events %v", w.events)
	}
	wantExceptions(t, w, map[string][2]string{"look": {"Active", "is being stopped"}})
	w.snapshot.Nodes[second].Record.Status.Phase = v1alpha1.PhaseStopped
	wantExceptions(t, w, map[string][2]string{"look": {"Active", "kubectl exec -it " + second}})
	n := w.snapshot.Nodes[second]
	n.Record.Status.Phase, n.Record.Status.Blocked = v1alpha1.PhaseDeferred,
		&v1alpha1.NodeBlocked{Message: "node x is down"}
	wantExceptions(t, w, map[string][2]string{"look": {"Active", "does not stop yet: node x is down"}})

	w.now = w.now.Add(time.Hour)
	w.pass()
	if w.snapshot.Nodes[second].Record.Spec.Debug != nil || !slices.Contains(w.events, "DebugEnded") {
		t.Errorf("its time is over: %+v, events %v", w.snapshot.Nodes[second].Record.Spec.Debug, w.events)
	}
	wantExceptions(t, w, map[string][2]string{"look": {"Over", "take it out"}})
}

func TestAnExceptionThatIsTakenOutHasNoEffectAnyMore(t *testing.T) {
	w := formed(t)
	w.settle()
	w.except(debugException(w, "look", second, time.Hour))
	w.pass()
	w.except()
	w.pass()
	if w.snapshot.Nodes[second].Record.Spec.Debug != nil {
		t.Error("the node is still to be stopped")
	}
	wantExceptions(t, w, nil)
}

func TestNodesAreStoppedForPeopleOneAfterTheOther(t *testing.T) {
	w := formed(t)
	w.settle()
	w.except(debugException(w, "a", first, time.Hour), debugException(w, "b", second, time.Hour))
	w.pass()
	if w.snapshot.Nodes[first].Record.Spec.Debug == nil || w.snapshot.Nodes[second].Record.Spec.Debug != nil {
		t.Fatal("want the first alone to be told")
	}
	wantExceptions(t, w, map[string][2]string{"a": {"Active", ""}, "b": {"Waiting", "waits until node " + first}})
	w.snapshot.Nodes[first].Record.Status.Phase = v1alpha1.PhaseStopped
	wantExceptions(t, w, map[string][2]string{"a": {"Active", "is stopped"}, "b": {"Active", ""}})
}

func TestExceptionsWithoutEffect(t *testing.T) {
	w := formed(t)
	w.settle()
	w.except(debugException(w, "long", first, 7*24*time.Hour+time.Second), debugException(w, "past", first, 0),
		debugException(w, "nobody", "orders-dc9-r1-0", time.Hour))
	wantExceptions(t, w, map[string][2]string{
		"long": {"Refused", "at most 7 days ahead"}, "past": {"Over", "its time is over"},
		"nobody": {"Waiting", "there is no node orders-dc9-r1-0"},
	})
	if made := w.pass(); len(made.Writes) > 0 {
		t.Errorf("want nothing:\n%s", made)
	}
	w.except(debugException(w, "one", first, time.Hour), debugException(w, "two", first, 2*time.Hour))
	wantExceptions(t, w, map[string][2]string{"one": {"Active", ""},
		"two": {"Refused", "another exception has stopped node " + first}})

	w = preparing(t)
	w.except(debugException(w, "early", first, time.Hour))
	wantExceptions(t, w, map[string][2]string{"early": {"Waiting", "is a member of a ring that has formed"}})
}
