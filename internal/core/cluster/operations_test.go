package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// repairing is a ring of three nodes, and a step that is to repair them.
func repairing(t *testing.T) (*world, *ledger.Step) {
	t.Helper()
	w := formed(t)
	s := &ledger.Step{ID: "step", Kind: ledger.AddDatacenter, Stage: ledger.StageOperations, Nodes: three,
		StageSince: w.now}
	w.snapshot.Ledger.Step = s
	return w, s
}

var repairOperation = procedure.Operation{Purpose: "repair", Type: v1alpha1.OperationRepair}

// runOn has nodes run an operation of the open step.
func runOn(w *world, o procedure.Operation, nodes ...string) (out procedure.Progress, made plan.Plan) {
	made = during(viewOf(w), func(s *procedure.Step) { out = s.Run(o, nodes) })
	return out, made
}

// attempts that failed, as the ledger has them that a plan writes.
func attempts(p plan.Plan) map[string]int {
	for _, w := range p.Writes {
		if w.Verb == plan.PutLedger {
			return w.Ledger.Step.Attempts
		}
	}
	return nil
}

// An operation is begun once, on several nodes at a time, and only the first write needs a look at
// everything.
func TestOperationsAreBegunTogether(t *testing.T) {
	w, _ := repairing(t)
	o, made := runOn(w, repairOperation, second, third)
	if r := o.Result("%d", o.Begun); r.Outcome != plan.Act || r.Message != "2" || len(o.Finished) > 0 ||
		len(o.Waiting) != 2 {
		t.Errorf("%+v: %+v", o, r)
	}
	if got := made.Writes; len(got) != 2 || !got[0].Live || got[1].Live {
		t.Fatalf("writes %+v", got)
	}
	for _, write := range made.Writes {
		w.do(write)
	}
	o, made = runOn(w, repairOperation, second, third)
	if r := o.Result("written"); r.Outcome != plan.Wait || !strings.Contains(r.Message, third+": it has not begun") ||
		len(made.Writes) > 0 {
		t.Errorf("%+v: %+v", o, r)
	}
}

func TestAnOperationIsBegunBesideANodeWithoutARecord(t *testing.T) {
	w, _ := repairing(t)
	w.snapshot.Nodes[second].Record = nil
	o, _ := runOn(w, repairOperation, second, third)
	if o.Begun != 1 || !slices.Equal(o.Waiting, []string{second + ": its record is recreated", third}) {
		t.Errorf("%d begun, waiting for %q", o.Begun, o.Waiting)
	}
}

// What other steps asked a node for stays until it has ended, and a record holds only so many
// operations.
func TestOperationsOfOtherStepsStay(t *testing.T) {
	var many []v1alpha1.OperationIntent
	for i := range v1alpha1.MaxOperations {
		many = append(many, v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: fmt.Sprintf("other-%d/repair/%s", i,
			second)}})
	}
	own := v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: "step/rebuild/" + second}}
	for name, c := range map[string]struct {
		have  []v1alpha1.OperationIntent
		ended bool // the first of them
		want  []string
	}{
		"one of another step":                {many[:1], false, []string{many[0].ID, "step/repair/" + second}},
		"one of another step that has ended": {many[:1], true, []string{"step/repair/" + second}},
		"one of its own": {[]v1alpha1.OperationIntent{own}, false,
			[]string{"step/repair/" + second}},
		"too many":                         {many, false, nil},
		"too many, of which one has ended": {many, true, append(idsOf(many[1:]), "step/repair/"+second)},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := repairing(t)
			n := w.snapshot.Nodes[second].Record
			n.Spec.Operations = c.have
			if c.ended {
				n.Status.Operations = []v1alpha1.OperationStatus{{ID: c.have[0].ID, Phase: v1alpha1.OperationFailed}}
			}
			o, made := runOn(w, repairOperation, second)
			var got []string
			for _, write := range made.Writes {
				got = idsOf(write.Object.(*v1alpha1.CassandraNode).Spec.Operations)
			}
			if !slices.Equal(got, c.want) || (o.Begun > 0) != (c.want != nil) || len(o.Waiting) != 1 {
				t.Errorf("operations %q, want %q; %+v", got, c.want, o)
			}
		})
	}
}

func idsOf(operations []v1alpha1.OperationIntent) []string {
	var out []string
	for _, o := range operations {
		out = append(out, o.ID)
	}
	return out
}

// What an operation has come to is what the record says of the intent that counts.
func TestWhatAnOperationHasComeTo(t *testing.T) {
	status := func(phase v1alpha1.OperationPhase) func(*world, *facts.Node) {
		return func(w *world, n *facts.Node) {
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID, Phase: phase,
				FinishedAt: new(metav1.NewTime(w.now))}}
		}
	}
	for name, c := range map[string]struct {
		change   func(*world, *facts.Node)
		finished bool
		waiting  string
		guard    v1alpha1.Reason
		begins   bool
	}{
		"nobody has begun": {func(*world, *facts.Node) {}, false, "it has not begun", "", false},
		"it runs":          {status(v1alpha1.OperationRunning), false, "begun", "", false},
		"it runs, and says how far": {func(w *world, n *facts.Node) {
			status(v1alpha1.OperationRunning)(w, n)
			n.Record.Status.Operations[0].Message = "range 3 of 7"
		}, false, "range 3 of 7", "", false},
		"it has succeeded": {status(v1alpha1.OperationSucceeded), true, "", "", false},
		"it has failed":    {status(v1alpha1.OperationFailed), false, "Failed", "OperationFailed", false},
		"it was cut off":   {status(v1alpha1.OperationInterrupted), false, "Interrupted", "OperationFailed", false},
		"it was withdrawn": {status(v1alpha1.OperationWithdrawn), false, "it is asked again", "", false},
		"its node is away": {func(_ *world, n *facts.Node) { n.Agent, n.Unreachable = nil, "no route" }, false,
			"no route", "NodeDown", false},
		"its node is away, and it runs": {func(w *world, n *facts.Node) {
			status(v1alpha1.OperationRunning)(w, n)
			n.Agent, n.Unreachable = nil, "no route"
		}, false, "no route", "NodeDown", false},
		"its node is away, and it has succeeded": {func(w *world, n *facts.Node) {
			status(v1alpha1.OperationSucceeded)(w, n)
			n.Agent = nil
		}, true, "", "", false},
		"the node does another one": {func(_ *world, n *facts.Node) {
			n.Record.Spec.Operations[0].ID = "other"
		}, false, second, "", true},
		"its node is away, without an intent": {func(_ *world, n *facts.Node) {
			n.Agent, n.Record.Spec.Operations = nil, nil
		}, false, "is not up", "MemberDown", false},
		"its record is away": {func(_ *world, n *facts.Node) { n.Record = nil }, false, "its record is recreated",
			"", false},
		"its record is deleted": {func(_ *world, n *facts.Node) { deleting(n) }, false, "its record is recreated", "",
			false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := repairing(t)
			n := w.snapshot.Nodes[second]
			n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: s.IntentID("repair",
				second)}, Type: v1alpha1.OperationRepair}}
			c.change(w, n)
			o, made := runOn(w, repairOperation, second)
			if slices.Equal(o.Finished, []string{second}) != c.finished || (len(o.Waiting) == 0) != c.finished ||
				!c.finished && !strings.Contains(o.Waiting[0], c.waiting) {
				t.Errorf("%+v", o)
			}
			if begins := slices.Equal(applied(made), []string{second}); begins != c.begins || o.Begun > 0 != c.begins {
				t.Errorf("begins %v:\n%s", begins, made)
			}
			if blocked := reported(made); (len(blocked) > 0) != (c.guard != "") ||
				c.guard != "" && (blocked[0].Reason != c.guard || !slices.Equal(blocked[0].Nodes, []string{second})) {
				t.Errorf("blocked %+v, want %q", blocked, c.guard)
			}
		})
	}
}

// A repair is not begun, or tried again, as long as it cannot but fail, and nobody is asked to wait
// for one that runs. Other operations ask no other node.
func TestARepairWaitsForAllMembers(t *testing.T) {
	failed := func(n *facts.Node, finishedAt time.Time) {
		n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID,
			Phase: v1alpha1.OperationFailed, FinishedAt: new(metav1.NewTime(finishedAt))}}
	}
	away := func(w *world) { w.snapshot.Nodes[third].Agent, w.snapshot.Nodes[third].Unreachable = nil, "no route" }
	otherSchema := func(w *world) { w.snapshot.Nodes[third].Agent.Ring.SchemaVersion = "other" }
	for name, c := range map[string]struct {
		kind    v1alpha1.OperationType
		begun   bool
		failed  bool
		change  func(*world)
		guard   v1alpha1.Reason
		goesOn  bool
		waiting string
	}{
		"all are up": {v1alpha1.OperationRepair, false, false, func(*world) {}, "", true, second},
		"one is away": {v1alpha1.OperationRepair, false, false, away, "MemberDown", false,
			"node " + third + " is not up: its agent does not answer: no route; a repair compares all replicas"},
		"one has another schema": {v1alpha1.OperationRepair, false, false, otherSchema, "SchemaVersionsDiffer", false,
			"schema"},
		"one is there that nobody knows": {v1alpha1.OperationRepair, false, false, func(w *world) {
			delete(w.snapshot.Ledger.Members, third)
		}, "UnknownRingMember", false, "that no CassandraNode is of"},
		"it has failed": {v1alpha1.OperationRepair, true, true, func(*world) {},
			"OperationFailed", true, "Failed"},
		"it has failed, and one is away": {v1alpha1.OperationRepair, true, true, away, "MemberDown", false,
			"no route"},
		"it was begun, and one is away": {v1alpha1.OperationRepair, true, false, away, "", false,
			"it has not begun"},
		"a rebuild, and one is away": {v1alpha1.OperationRebuild, false, false, away, "", true, second},
		"a rebuild has failed, and one is away": {v1alpha1.OperationRebuild, true, true, away, "OperationFailed", true,
			"Failed"},
		"a clean-up, and one has another schema": {v1alpha1.OperationCleanup, false, false, otherSchema, "", true,
			second},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := repairing(t)
			n := w.snapshot.Nodes[second]
			if c.begun {
				n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: s.IntentID("repair",
					second)}, Type: c.kind}}
			}
			if c.failed {
				failed(n, w.now.Add(-time.Hour))
			}
			c.change(w)
			o, made := runOn(w, procedure.Operation{Purpose: "repair", Type: c.kind}, second)
			if goesOn := o.Begun > 0 || attempts(made)[second] > 0; goesOn != c.goesOn ||
				len(made.Writes) > 0 != c.goesOn {
				t.Errorf("goes on %v:\n%s", goesOn, made)
			}
			if len(o.Waiting) != 1 || !strings.Contains(o.Waiting[0], c.waiting) {
				t.Errorf("waits for %q", o.Waiting)
			}
			if blocked := reported(made); (len(blocked) > 0) != (c.guard != "") ||
				c.guard != "" && blocked[0].Reason != c.guard {
				t.Errorf("blocked %+v, want %q", blocked, c.guard)
			}
		})
	}
}

// After a failure there is a backoff, each twice as long as the one before it, and never longer
// than ten minutes, or than the operation has it.
func TestAnOperationThatFailsIsRetriedLaterAndLater(t *testing.T) {
	const once = 5 * time.Second
	for failed, c := range map[int]struct{ backoff, last time.Duration }{
		0: {once, 0}, 1: {2 * once, 0}, 3: {8 * once, 0}, 6: {64 * once, 0}, 7: {10 * time.Minute, 0},
		200: {10 * time.Minute, 0},
		2:   {15 * time.Second, 15 * time.Second},
	} {
		for _, early := range []time.Duration{0, time.Second, -time.Second} {
			w, s := repairing(t)
			s.Attempts = map[string]int{second: failed, third: 4}
			id := s.IntentID("repair", second)
			if failed > 0 {
				id = s.IntentID(fmt.Sprintf("repair-%d", failed), second)
			}
			w.snapshot.Nodes[second].Record.Status.Operations = []v1alpha1.OperationStatus{{
				ID: id, Phase: v1alpha1.OperationFailed, FinishedAt: new(metav1.NewTime(w.now.Add(early - c.backoff))),
			}}
			o := repairOperation
			o.LastBackoff = c.last
			_, made := runOn(w, o, second)
			again := attempts(made)[second] == failed+1
			if again != (early <= 0) || !again && (made.Wake != early || len(made.Writes) > 0) ||
				again && attempts(made)[third] != 4 {
				t.Errorf("%s before the end of the backoff after %d attempts: attempts %v, wakes in %s", early, failed,
					attempts(made), made.Wake)
			}
		}
	}
	w, s := repairing(t)
	w.snapshot.Nodes[second].Record.Status.Operations = []v1alpha1.OperationStatus{{ID: s.IntentID("repair", second),
		Phase: v1alpha1.OperationFailed}}
	if _, made := runOn(w, repairOperation, second); attempts(made)[second] != 1 {
		t.Errorf("without the time of its end: attempts %v", attempts(made))
	}
}

// ended has an operation in the record of a node that is over.
func ended(n *facts.Node) {
	n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "ended"}}}
	n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: "ended", Phase: v1alpha1.OperationFailed}}
}

func TestOperationsThatAreOverAreTakenOut(t *testing.T) {
	w, _ := repairing(t)
	clearAll := func() (cleared bool, made plan.Plan) {
		made = during(viewOf(w), func(s *procedure.Step) { cleared = s.ClearOperations(three) })
		return cleared, made
	}
	if cleared, made := clearAll(); cleared || len(made.Writes) > 0 {
		t.Errorf("without operations:\n%s", made)
	}
	for _, name := range three {
		ended(w.snapshot.Nodes[name])
	}
	w.snapshot.Nodes[first].Record = nil
	deleting(w.snapshot.Nodes[second])
	cleared, made := clearAll()
	if !cleared || !slices.Equal(applied(made), []string{third}) ||
		made.Writes[0].Object.(*v1alpha1.CassandraNode).Spec.Operations != nil {
		t.Errorf("%s", made)
	}
}

// Rows of nodes work one after the other, and the progress is that of all.
func TestRowsWorkInTurn(t *testing.T) {
	for done, want := range map[int]struct {
		next    string
		percent int32
	}{0: {first, 0}, 1: {second, 33}, 2: {third, 66}, 3: {"", 100}} {
		w, s := repairing(t)
		for _, name := range three[:done] {
			w.snapshot.Nodes[name].Record.Status.Operations = []v1alpha1.OperationStatus{{ID: s.IntentID("repair",
				name), Phase: v1alpha1.OperationSucceeded}}
		}
		over := false
		made := during(viewOf(w), func(s *procedure.Step) {
			_, over = s.RunInTurn(repairOperation, procedure.OneAtATime(three), "it is repaired")
		})
		if got := strings.Join(applied(made), " "); over != (done == 3) || got != want.next ||
			*made.Current.Progress != want.percent {
			t.Errorf("%d are done: over %v, next %s, %d %%", done, over, got, *made.Current.Progress)
		}
	}
}

// One node alters keyspaces for all: whoever has begun, else the first that is up and has a record.
func TestWhoAltersKeyspaces(t *testing.T) {
	begun := func(step string) func(*world) {
		return func(w *world) {
			w.snapshot.Nodes[third].Record.Spec.Operations = []v1alpha1.OperationIntent{
				{Intent: v1alpha1.Intent{ID: step + "/keyspaces/" + third}},
			}
		}
	}
	alter := procedure.Operation{Purpose: "keyspaces", Type: v1alpha1.OperationAlterKeyspaces}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"all are up": {func(*world) {}, "node " + first + " alters them"},
		"the first is away": {func(w *world) { w.snapshot.Nodes[first].Agent = nil },
			"node " + second + " alters them"},
		"the first has no record": {func(w *world) { w.snapshot.Nodes[first].Record = nil },
			"node " + second + " alters them"},
		"one has begun": {begun("step"), "waiting for " + third + ": it has not begun"},
		"one has begun, and its agent is silent": {func(w *world) {
			begun("step")(w)
			w.snapshot.Nodes[third].Agent = nil
		}, "waiting for " + third + ": its pod is starting"},
		"one has begun, and its pod is gone": {func(w *world) {
			begun("step")(w)
			w.snapshot.Nodes[third].Agent, w.snapshot.Nodes[third].Record.Status.PodUID = nil, "former"
		}, "node " + first + " alters them"},
		"one has another step's": {begun("other"), "node " + first + " alters them"},
		"nobody is up": {func(w *world) {
			for _, name := range three {
				w.snapshot.Nodes[name].Agent = nil
			}
		}, "waiting for a node that is up: it alters them"},
	} {
		w, _ := repairing(t)
		c.change(w)
		var r plan.Result
		during(viewOf(w), func(s *procedure.Step) { r, _ = s.RunOnOne(alter, three, "alters them") })
		if r.Message != c.want {
			t.Errorf("%s: %q, want %q", name, r.Message, c.want)
		}
	}
}

// A node that was asked first and failed keeps nothing of it when another one has altered the
// keyspaces.
func TestNothingIsLeftOfWhoFailedToAlterKeyspaces(t *testing.T) {
	w, _ := repairing(t)
	for name, phase := range map[string]v1alpha1.OperationPhase{
		first: v1alpha1.OperationInterrupted, second: v1alpha1.OperationSucceeded,
	} {
		id := "step/keyspaces/" + name
		record := w.snapshot.Nodes[name].Record
		record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}}}
		record.Status.Operations = []v1alpha1.OperationStatus{{ID: id, Phase: phase}}
	}
	w.snapshot.Ledger.Step.Attempts = map[string]int{first: 1}
	alter := procedure.Operation{Purpose: "keyspaces", Type: v1alpha1.OperationAlterKeyspaces}
	made := during(viewOf(w), func(s *procedure.Step) { s.Alter(alter, three, ledger.StageRebuild, "alters them") })
	if got := applied(made); !slices.Equal(got, []string{first, second}) {
		t.Errorf("records of %q are cleared:\n%s", got, made)
	}
}
