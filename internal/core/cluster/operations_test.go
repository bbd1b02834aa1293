package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// repairing is a ring of three nodes, and a step that is to repair them.
func repairing(t *testing.T) (*world, *ledger.Step) {
	t.Helper()
	w := formed(t)
	s := &ledger.Step{ID: "step", Kind: ledger.AddDatacenter, Stage: ledger.StageOperations, Tickets: map[string]ledger.Ticket{first: {}, second: {}, third: {}}, StageSince: w.now}
	w.snapshot.Ledger.Step = s
	return w, s
}

// An operation is begun once, on several nodes at a time, and only the first write needs a look at everything.
func TestOperationsAreBegunTogether(t *testing.T) {
	w, s := repairing(t)
	p := passOver(w)
	o := p.operate(s, "repair", []string{second, third}, v1alpha1.OperationRepair, nil)
	if r := ifWritten(o, "%d", o.writes); r.outcome != plan.Act || r.message != "2" || len(o.finished) > 0 || len(o.waiting) != 2 {
		t.Errorf("%+v: %+v", o, r)
	}
	if got := p.plan.Writes; len(got) != 2 || !got[0].Live || got[1].Live {
		t.Fatalf("writes %+v", got)
	}
	for _, write := range p.plan.Writes {
		w.do(write)
	}
	p = passOver(w)
	o = p.operate(s, "repair", []string{second, third}, v1alpha1.OperationRepair, nil)
	if r := ifWritten(o, "written"); r.outcome != plan.Wait || !strings.Contains(r.message, third+": it has not begun") || len(p.plan.Writes) > 0 {
		t.Errorf("%+v: %+v", o, r)
	}
}

func TestAnOperationIsBegunBesideANodeWithoutARecord(t *testing.T) {
	w, s := repairing(t)
	w.snapshot.Nodes[second].Record = nil
	p := passOver(w)
	if o := p.operate(s, "repair", []string{second, third}, v1alpha1.OperationRepair, nil); o.writes != 1 || !slices.Equal(o.waiting, []string{second + ": its record is made again", third}) {
		t.Errorf("%d writes, waiting for %q", o.writes, o.waiting)
	}
}

// What an operation has come to is what the record says of the intent that counts.
func TestWhatAnOperationHasComeTo(t *testing.T) {
	status := func(phase v1alpha1.OperationPhase) func(*world, *facts.Node) {
		return func(w *world, n *facts.Node) {
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID, Phase: phase, FinishedAt: new(metav1.NewTime(w.now))}}
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
		"it was withdrawn": {status(v1alpha1.OperationWithdrawn), false, "Withdrawn", "OperationFailed", false},
		"its node is away": {func(_ *world, n *facts.Node) { n.Agent, n.Unreachable = nil, "no route" }, false, "no route", "NodeDown", false},
		"its node is away, and it runs": {func(w *world, n *facts.Node) {
			status(v1alpha1.OperationRunning)(w, n)
			n.Agent, n.Unreachable = nil, "no route"
		}, false, "no route", "NodeDown", false},
		"its node is away, and it has succeeded": {func(w *world, n *facts.Node) { status(v1alpha1.OperationSucceeded)(w, n); n.Agent = nil }, true, "", "", false},
		"the node does another one":              {func(_ *world, n *facts.Node) { n.Record.Spec.Operations[0].ID = "other" }, false, second, "", true},
		"its node is away, without an intent":    {func(_ *world, n *facts.Node) { n.Agent, n.Record.Spec.Operations = nil, nil }, false, "is not up", "MemberDown", false},
		"its record is away":                     {func(_ *world, n *facts.Node) { n.Record = nil }, false, "its record is made again", "", false},
		"its record is deleted":                  {func(_ *world, n *facts.Node) { deleting(n) }, false, "its record is made again", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := repairing(t)
			n := w.snapshot.Nodes[second]
			n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: s.IntentID(attempt("repair", 0), second)}, Type: v1alpha1.OperationRepair}}
			c.change(w, n)
			p := passOver(w)
			o := p.operate(s, "repair", []string{second}, v1alpha1.OperationRepair, nil)
			if slices.Equal(o.finished, []string{second}) != c.finished || (len(o.waiting) == 0) != c.finished || !c.finished && !strings.Contains(o.waiting[0], c.waiting) {
				t.Errorf("%+v", o)
			}
			if begins := slices.Equal(applied(p.plan), []string{second}); begins != c.begins || o.writes > 0 != c.begins {
				t.Errorf("begins %v:\n%s", begins, p.plan)
			}
			if blocked := reported(p.plan); (len(blocked) > 0) != (c.guard != "") || c.guard != "" && (blocked[0].Reason != c.guard || !slices.Equal(blocked[0].Nodes, []string{second})) {
				t.Errorf("blocked %+v, want %q", blocked, c.guard)
			}
		})
	}
}

// A repair is not begun, or tried again, as long as it cannot but fail, and nobody is asked to wait for one that runs. Other operations ask no other node.
func TestARepairWaitsForAllMembers(t *testing.T) {
	failed := func(n *facts.Node, finishedAt time.Time) {
		n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: n.Record.Spec.Operations[0].ID, Phase: v1alpha1.OperationFailed, FinishedAt: new(metav1.NewTime(finishedAt))}}
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
		"all are up":             {v1alpha1.OperationRepair, false, false, func(*world) {}, "", true, second},
		"one is away":            {v1alpha1.OperationRepair, false, false, away, "MemberDown", false, "node " + third + " is not up: its agent does not answer: no route; a repair compares all replicas"},
		"one has another schema": {v1alpha1.OperationRepair, false, false, otherSchema, "SchemaVersionsDiffer", false, "schema"},
		"one is there that nobody knows": {v1alpha1.OperationRepair, false, false, func(w *world) {
			delete(w.snapshot.Ledger.Members, third)
		}, "UnknownRingMember", false, "that no CassandraNode is of"},
		"it has failed":                          {v1alpha1.OperationRepair, true, true, func(*world) {}, "OperationFailed", true, "Failed"},
		"it has failed, and one is away":         {v1alpha1.OperationRepair, true, true, away, "MemberDown", false, "no route"},
		"it was begun, and one is away":          {v1alpha1.OperationRepair, true, false, away, "", false, "it has not begun"},
		"a rebuild, and one is away":             {v1alpha1.OperationRebuild, false, false, away, "", true, second},
		"a rebuild has failed, and one is away":  {v1alpha1.OperationRebuild, true, true, away, "OperationFailed", true, "Failed"},
		"a clean-up, and one has another schema": {v1alpha1.OperationCleanup, false, false, otherSchema, "", true, second},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := repairing(t)
			n := w.snapshot.Nodes[second]
			if c.begun {
				n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: s.IntentID("repair", second)}, Type: c.kind}}
			}
			if c.failed {
				failed(n, w.now.Add(-time.Hour))
			}
			c.change(w)
			p := passOver(w)
			o := p.operate(s, "repair", []string{second}, c.kind, nil)
			if goesOn := o.writes > 0 || p.Ledger.Step.Tries[second] > 0; goesOn != c.goesOn || len(p.plan.Writes) > 0 != c.goesOn {
				t.Errorf("goes on %v:\n%s", goesOn, p.plan)
			}
			if len(o.waiting) != 1 || !strings.Contains(o.waiting[0], c.waiting) {
				t.Errorf("waits for %q", o.waiting)
			}
			if blocked := reported(p.plan); (len(blocked) > 0) != (c.guard != "") || c.guard != "" && blocked[0].Reason != c.guard {
				t.Errorf("blocked %+v, want %q", blocked, c.guard)
			}
		})
	}
}

// After a failure there is a pause, each twice as long as the one before it, and never longer than ten minutes.
func TestAnOperationThatFailsIsTriedAgainLaterAndLater(t *testing.T) {
	for tries, pause := range map[int]time.Duration{
		0: operationPause, 1: 2 * operationPause, 3: 8 * operationPause, 6: 64 * operationPause, 7: longestOperationPause, 200: longestOperationPause,
	} {
		for _, early := range []time.Duration{0, time.Second, -time.Second} {
			w, s := repairing(t)
			s.Tries = map[string]int{second: tries, third: 4}
			n := w.snapshot.Nodes[second]
			p := passOver(w)
			p.plan.Wake = lookAgain + time.Hour
			p.tryAgain(s, n, &v1alpha1.OperationStatus{FinishedAt: new(metav1.NewTime(w.now.Add(early - pause)))})
			again := p.Ledger.Step.Tries[second] == tries+1
			if again != (early <= 0) || !again && p.plan.Wake != early || p.Ledger.Step.Tries[third] != 4 {
				t.Errorf("%s before the end of the pause after %d tries: tries %v, wakes in %s", early, tries, p.Ledger.Step.Tries, p.plan.Wake)
			}
		}
	}
	w, s := repairing(t)
	p := passOver(w)
	if p.tryAgain(s, w.snapshot.Nodes[second], &v1alpha1.OperationStatus{}); p.Ledger.Step.Tries[second] != 1 {
		t.Errorf("without the time of its end: tries %v", p.Ledger.Step.Tries)
	}
}

func TestOperationsThatAreOverAreTakenOut(t *testing.T) {
	w, _ := repairing(t)
	if p := passOver(w); p.clearOperations(three) || len(p.plan.Writes) > 0 {
		t.Errorf("without operations:\n%s", p.plan)
	}
	for _, name := range three {
		w.snapshot.Nodes[name].Record.Spec.Operations = []v1alpha1.OperationIntent{{}}
	}
	w.snapshot.Nodes[first].Record = nil
	deleting(w.snapshot.Nodes[second])
	p := passOver(w)
	if !p.clearOperations(three) || !slices.Equal(applied(p.plan), []string{third}) || p.plan.Writes[0].Object.(*v1alpha1.CassandraNode).Spec.Operations != nil {
		t.Errorf("%s", p.plan)
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
			w.snapshot.Nodes[name].Record.Status.Operations = []v1alpha1.OperationStatus{{ID: s.IntentID(attempt("repair", 0), name), Phase: v1alpha1.OperationSucceeded}}
		}
		p := passOver(w)
		_, over := p.inTurn(s, "repair", inRows(three), v1alpha1.OperationRepair, nil, "it is repaired")
		if got := strings.Join(applied(p.plan), " "); over != (done == 3) || got != want.next || *p.plan.Current.Progress != want.percent {
			t.Errorf("%d are done: over %v, next %s, %d %%", done, over, got, *p.plan.Current.Progress)
		}
	}
}

// One node alters keyspaces for all: whoever has begun, else the first that is up.
func TestWhoAltersKeyspaces(t *testing.T) {
	begun := func(step string) func(*world) {
		return func(w *world) {
			w.snapshot.Nodes[third].Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: step + "/keyspaces/" + third}}}
		}
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"all are up":              {func(*world) {}, first},
		"the first is away":       {func(w *world) { w.snapshot.Nodes[first].Agent = nil }, second},
		"the first has no record": {func(w *world) { w.snapshot.Nodes[first].Record = nil }, first},
		"one has begun":           {begun("step"), third},
		"one has another step's":  {begun("other"), first},
		"nobody is up": {func(w *world) {
			for _, name := range three {
				w.snapshot.Nodes[name].Agent = nil
			}
		}, ""},
	} {
		w, s := repairing(t)
		c.change(w)
		if got := passOver(w).administered(s, three); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A member that joins in a pass is one from then on.
func TestMembersAreThoseOfThePresentLedger(t *testing.T) {
	p := passOver(formed(t))
	if got := p.members(); !slices.Equal(got, three) {
		t.Fatalf("members %v", got)
	}
	p.putLedger(false, "another", func(l *ledger.Ledger) { l.Members[newcomer] = "id" })
	if got := p.members(); !slices.Equal(got, []string{first, newcomer, second, third}) {
		t.Errorf("members %v", got)
	}
}

// A node with a part in the ring that does not come up is named once, with what it may come from.
func TestWhoDoesNotComeUpIsSaid(t *testing.T) {
	trouble := func(n *facts.Node) { n.Pod.Status.ContainerStatuses = waitingContainers() }
	blockedBy := func(step, node string) func(*pass, *facts.Node) {
		return func(p *pass, n *facts.Node) {
			trouble(n)
			p.plan.Blocked = []v1alpha1.BlockedStep{{Step: step, Nodes: []string{node}}}
		}
	}
	noticed := func(node string) func(*pass, *facts.Node) {
		return func(p *pass, n *facts.Node) {
			trouble(n)
			p.plan.Notices = []v1alpha1.Notice{{Nodes: []string{node}}}
		}
	}
	failed := func(phase v1alpha1.NodePhase, message string) func(*pass, *facts.Node) {
		return func(_ *pass, n *facts.Node) { n.Agent.Phase, n.Agent.Message = phase, message }
	}
	inStep := func(kind ledger.Kind) func(*pass, *facts.Node) {
		return func(p *pass, n *facts.Node) {
			trouble(n)
			p.Ledger = p.Ledger.Copy()
			p.Ledger.Step = &ledger.Step{Kind: kind, Tickets: map[string]ledger.Ticket{n.Name: {}}}
		}
	}
	for name, c := range map[string]struct {
		change func(*pass, *facts.Node)
		words  string
	}{
		"it is up":                      {func(*pass, *facts.Node) {}, ""},
		"its container does not start":  {func(_ *pass, n *facts.Node) { trouble(n) }, "ErrImagePull"},
		"it was said already":           {blockedBy("VolumesAndPods", second), ""},
		"it was said of another":        {blockedBy("VolumesAndPods", third), "ErrImagePull"},
		"it was noticed already":        {noticed(second), ""},
		"another was noticed":           {noticed(third), "ErrImagePull"},
		"something else was said of it": {blockedBy("JoinNode", second), "ErrImagePull"},
		"its agent says why":            {failed(v1alpha1.PhaseFailed, "no space left"), "no space left"},
		"its agent does not say why":    {failed(v1alpha1.PhaseFailed, ""), ""},
		"its agent says something else": {failed(v1alpha1.PhaseNormal, "it serves"), ""},
		"it has no pod":                 {func(_ *pass, n *facts.Node) { n.Pod = nil }, ""},
		"the one before it has no pod":  {func(p *pass, n *facts.Node) { trouble(n); p.Nodes[first].Pod = nil }, "ErrImagePull"},
		"its pod goes":                  {func(_ *pass, n *facts.Node) { trouble(n); n.Pod.DeletionTimestamp = new(metav1.Now()) }, ""},
		"it has no part in the ring": {func(p *pass, n *facts.Node) {
			trouble(n)
			n.Record.Spec.Member = nil
			p.Ledger = p.Ledger.Copy()
			delete(p.Ledger.Members, n.Name)
		}, ""},
		"it joins, and its step says so": {inStep(ledger.JoinNode), ""},
		"it forms a ring":                {inStep(ledger.FormRing), "ErrImagePull"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			p := passOver(w)
			c.change(p, w.snapshot.Nodes[second])
			before := len(p.plan.Notices)
			p.sayWhoDoesNotCome()
			said := p.plan.Notices[before:]
			if (len(said) > 0) != (c.words != "") || len(said) > 0 && (!slices.Equal(said[0].Nodes, []string{second}) || !strings.Contains(said[0].Message, c.words)) {
				t.Errorf("said %+v, want %q", said, c.words)
			}
		})
	}
}
