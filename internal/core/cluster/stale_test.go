package cluster

import (
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const deserted = "10.9.9.9"

// staleOf is a failed join of a node as members see it that have not forgotten it.
func staleOf(node string) facts.Endpoint {
	return facts.Endpoint{Address: deserted, HostID: hostID(node), Datacenter: "dc1", Rack: "r1",
		Status: facts.StatusBootstrap, Tokens: []int64{7}}
}

// remember has members see an endpoint beside the ring.
func (w *world) remember(e facts.Endpoint, by ...string) {
	w.rumours = map[string][]facts.Endpoint{}
	for _, name := range by {
		w.rumours[name] = []facts.Endpoint{e}
	}
	w.agents()
}

// assassins are the nodes that are to have an failed join forgotten.
func (w *world) assassins() []string {
	var out []string
	for _, n := range w.snapshot.Records() {
		for _, o := range n.Record.Spec.Operations {
			if o.Type != v1alpha1.OperationAssassinate {
				continue
			}
			if o.Arguments == nil || o.Arguments.Endpoint != deserted {
				w.t.Errorf("operation %+v", o)
			}
			out = append(out, n.Name)
		}
	}
	return out
}

// A join that is over, and that some members have forgotten and others not, is forgotten by all by
// the word of one.
func TestAStaleEndpointIsAssassinated(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.remember(staleOf(names[0]), names[0], names[1])
	w.pass()
	if s := w.open(); s == nil || s.Kind != ledger.Assassinate || engineOver(viewOf(w)).RangesMove() {
		t.Fatalf("step %+v", s)
	}
	if got := w.assassins(); len(got) != 1 {
		t.Fatalf("operations of %v, want one", got)
	}
	if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "Assassinating") }) {
		t.Errorf("events %q", w.events)
	}
	w.settle()
	if w.open() != nil || len(w.assassins()) > 0 || len(w.rumours) > 0 {
		t.Errorf("step %+v, operations of %v", w.open(), w.assassins())
	}
	w.wantOpen()
}

func TestNobodyAssassinatesWhileAClusterIsPaused(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Paused = true })
	w.remember(staleOf(names[0]), names[1])
	if made := w.settle(); len(w.assassins()) > 0 || w.open() != nil ||
		!strings.Contains(made.String(), "spec.paused is true; members are to forget a failed join of node "+names[0]) {
		t.Errorf("operations of %v\n%s", w.assassins(), made)
	}
}

// The first member has a join forgotten that can be asked, and was not yet.
func TestWhoAssassinates(t *testing.T) {
	names := formed(t).snapshot.Names()
	for name, c := range map[string]struct {
		change func(w *world, n *facts.Node, id string)
		want   string
	}{
		"any member":            {func(*world, *facts.Node, string) {}, names[0]},
		"its record is away":    {func(_ *world, n *facts.Node, _ string) { n.Record = nil }, names[1]},
		"its record is deleted": {func(_ *world, n *facts.Node, _ string) { deleting(n) }, names[1]},
		"it has something else done": {func(_ *world, n *facts.Node, _ string) {
			n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Type: v1alpha1.OperationRepair}}
		}, names[1]},
		"it has tried": {func(_ *world, n *facts.Node, id string) {
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: id}}
		}, names[1]},
		"it has done something else": {func(_ *world, n *facts.Node, _ string) {
			n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: "other"}}
		}, names[0]},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.remember(staleOf(names[2]), names[1])
			step := &ledger.Step{ID: "step", Kind: ledger.Assassinate, Stage: ledger.StageOperations}
			w.snapshot.Ledger.Step = step
			c.change(w, w.snapshot.Nodes[names[0]], step.IntentID("forget-"+deserted, names[0]))
			made, r := run(w)
			want(t, made, r, plan.Act, "node "+c.want+" assassinates", c.want)
		})
	}
}

// While a node waits to join since an failed join of it is not forgotten, its own step sees to
// that.
func TestTheStepOfAJoinRemovesAFailedOne(t *testing.T) {
	w := formed(t)
	members := w.snapshot.Names()
	joiner := "orders-dc1-r1-1"
	w.late[joiner] = true
	w.change(nodesPerRack(2))
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.JoinNode })
	for w.snapshot.Nodes[joiner].Record.Spec.Join == nil {
		w.pass()
	}
	w.running[w.snapshot.Nodes[joiner].Pod.UID].HostID = hostID(joiner)
	w.remember(staleOf(joiner), members[2])
	step := w.snapshot.Ledger.Step.ID
	w.pass()
	if got := w.assassins(); len(got) != 1 || w.snapshot.Ledger.Step.ID != step {
		t.Fatalf("operations of %v in step %+v", got, w.snapshot.Ledger.Step)
	}
	delete(w.late, joiner)
	w.settle()
	if w.snapshot.Ledger.Members[joiner] == "" || len(w.assassins()) > 0 {
		t.Errorf("members %v, operations of %v", w.snapshot.Ledger.Members, w.assassins())
	}
}

// Each member has one try. When all have failed, it is said what a person can do.
func TestEachMemberHasOneAttempt(t *testing.T) {
	w := formed(t)
	w.undying = true
	names := w.snapshot.Names()
	w.remember(staleOf(names[0]), names[1])
	tried := map[string]bool{}
	for range 30 {
		w.pass()
		for _, name := range w.assassins() {
			tried[name] = true
		}
	}
	if len(tried) != 3 || len(w.assassins()) > 0 {
		t.Errorf("tried by %v, and by %v now", tried, w.assassins())
	}
	made := w.pass()
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != "StaleEndpointRemains" ||
		!strings.Contains(made.Blocked[0].Message, "nodetool assassinate "+deserted) {
		t.Errorf("blocked %+v", made.Blocked)
	}
	if len(made.Writes) > 0 {
		t.Errorf("not idle:\n%s", made)
	}
	w.undying = false
	w.remember(facts.Endpoint{}, []string{}...)
	w.settle()
	if w.open() != nil {
		t.Errorf("step %+v", w.open())
	}
}

// A join may be given up while its step has an failed join forgotten.
func TestTheOperationOfAJoinThatIsAbandonedIsOver(t *testing.T) {
	w := formed(t)
	name := w.snapshot.Names()[0]
	record := w.snapshot.Nodes[name].Record
	record.Spec.Operations = []v1alpha1.OperationIntent{{
		Intent: v1alpha1.Intent{ID: "another/forget-" + deserted + "/" + name}, Type: v1alpha1.OperationAssassinate,
		Arguments: &v1alpha1.OperationArguments{Endpoint: deserted},
	}}
	w.absent[name] = true
	if made := w.settle(); len(w.assassins()) != 1 || w.open() != nil {
		t.Fatalf("taken away before it is over:\n%s", made)
	}
	delete(w.absent, name)
	w.agents()
	if w.settle(); len(w.assassins()) != 0 {
		t.Errorf("operations of %v", w.assassins())
	}
}

// A member that is down when it is its turn is waited for, and named.
func TestWhoAssassinatesIsWaitedFor(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.undying = true
	w.remember(staleOf(names[0]), names[1])
	w.pass()
	at := w.assassins()
	if len(at) != 1 {
		t.Fatalf("operations of %v", at)
	}
	w.absent[at[0]] = true
	w.snapshot.Nodes[at[0]].Record.Status.Operations = nil
	w.agents()
	made := Next(w.snapshot, w.now)
	if !slices.ContainsFunc(made.Notices, func(b v1alpha1.Notice) bool {
		return b.Reason == "NodeDown" && slices.Contains(b.Nodes, at[0])
	}) {
		t.Errorf("blocked %+v", made.Blocked)
	}
}

// A roll-out does not begin beside a failed join that some have forgotten, nor does it keep it from
// being forgotten.
func TestARollOutHasAFailedJoinForgotten(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.remember(staleOf(names[0]), names[1])
	w.change(setting("concurrent_reads", "16"))
	w.rolledOut()
	if len(w.rumours) > 0 || len(w.assassins()) > 0 {
		t.Errorf("rumours %v, operations of %v", w.rumours, w.assassins())
	}
	w.change(setting("concurrent_reads", "17"))
	w.settle() // the first node serves
	w.remember(staleOf(names[0]), names[1])
	w.rolledOut()
	if len(w.rumours) > 0 || len(w.assassins()) > 0 {
		t.Errorf("rumours %v, operations of %v", w.rumours, w.assassins())
	}
}
