package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

const deserted = "10.9.9.9"

// overdueOf is an earlier try of a node as members see it that have not forgotten it.
func overdueOf(node string) facts.Endpoint {
	return facts.Endpoint{Address: deserted, HostID: hostID(node), Datacenter: "dc1", Rack: "r1", Status: facts.StatusBootstrap, Tokens: []int64{7}}
}

// remember has members see an endpoint beside the ring.
func (w *world) remember(e facts.Endpoint, by ...string) {
	w.rumours = map[string][]facts.Endpoint{}
	for _, name := range by {
		w.rumours[name] = []facts.Endpoint{e}
	}
	w.agents()
}

// assassins are the nodes that are to have an earlier try forgotten.
func (w *world) assassins() []string {
	var out []string
	for _, n := range w.snapshot.Records() {
		if o := assassination(n); o != nil {
			if o.Arguments == nil || o.Arguments.Endpoint != deserted {
				w.t.Errorf("operation %+v", o)
			}
			out = append(out, n.Name)
		}
	}
	return out
}

// A join that is over, and that some members have forgotten and others not, is forgotten by all by the word of one.
func TestAJoinThatIsNeverForgottenIsPutRight(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.remember(overdueOf(names[0]), names[0], names[1])
	w.pass()
	if s := w.snapshot.Ledger.Step; s == nil || s.Kind != ledger.ForgetJoin || s.Kind.MovesRanges() {
		t.Fatalf("step %+v", s)
	}
	if got := w.assassins(); len(got) != 1 {
		t.Fatalf("operations of %v, want one", got)
	}
	if !slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "ForgettingJoin") }) {
		t.Errorf("events %q", w.events)
	}
	w.settle()
	if w.snapshot.Ledger.Step != nil || len(w.assassins()) > 0 || len(w.rumours) > 0 {
		t.Errorf("step %+v, operations of %v", w.snapshot.Ledger.Step, w.assassins())
	}
	w.wantOpen()
}

// Two members are enough for that, one is not: it alone forgets.
func TestHowManyMembersKeepAJoinAlive(t *testing.T) {
	for _, members := range []int{1, 2} {
		w := newWorld(t, datacenter("dc1", slices.Repeat([]int32{1}, members)...))
		w.settle()
		names := w.snapshot.Names()
		w.remember(overdueOf(names[0]), names[0])
		if got := passOver(w).overdueJoin(); (got != nil) != (members > 1) {
			t.Errorf("of %d members: %+v", members, got)
		}
	}
}

func TestWhoIsNotToBeForgotten(t *testing.T) {
	for name, c := range map[string]func(w *world, names []string){
		"all see it": func(w *world, names []string) { w.remember(overdueOf(names[0]), names...) },
		"it is up":   func(w *world, names []string) { e := overdueOf(names[0]); e.Live = true; w.remember(e, names[1]) },
		"it is a member": func(w *world, names []string) {
			e := overdueOf(names[0])
			e.Status = facts.StatusNormal
			w.remember(e, names[1])
		},
		"it leaves": func(w *world, names []string) {
			e := overdueOf(names[0])
			e.Status = facts.StatusLeaving
			w.remember(e, names[1])
		},
		"it has left": func(w *world, names []string) {
			e := overdueOf(names[0])
			e.Status = facts.StatusLeft
			w.remember(e, names[1])
		},
		"nobody knows its host id": func(w *world, names []string) { w.remember(overdueOf("stranger"), names[1]) },
		"it has no host id":        func(w *world, names []string) { e := overdueOf(names[0]); e.HostID = ""; w.remember(e, names[1]) },
		"a pod of ours is there": func(w *world, names []string) {
			e := overdueOf(names[0])
			e.Address = w.snapshot.Nodes[names[2]].Pod.Status.PodIP
			w.remember(e, names[1])
		},
		"a member is away": func(w *world, names []string) { w.absent[names[2]] = true; w.remember(overdueOf(names[0]), names[1]) },
		"to another member it is up": func(w *world, names []string) {
			w.remember(overdueOf(names[0]), names[1])
			e := overdueOf(names[0])
			e.Live = true
			w.rumours[names[0]] = []facts.Endpoint{e}
			w.agents()
		},
		"a pod of ours may be there": func(w *world, names []string) {
			w.remember(overdueOf(names[0]), names[1])
			n := w.snapshot.Nodes[names[2]]
			n.Pod.Status.PodIP = ""
			n.Record.Status.Address = deserted
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			c(w, w.snapshot.Names())
			if o := passOver(w).overdueJoin(); o != nil {
				t.Errorf("%+v is to be forgotten", o)
			}
		})
	}
}

// An address is somebody's if an agent of today says so, or its pod, or the record of a pod that has no address yet.
func TestWhoseAddressItIs(t *testing.T) {
	pod := func(ip string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}, Status: corev1.PodStatus{PodIP: ip}}
	}
	record := func(address string) *v1alpha1.CassandraNode {
		return &v1alpha1.CassandraNode{Status: v1alpha1.CassandraNodeStatus{Address: address}}
	}
	for name, c := range map[string]struct {
		node facts.Node
		want bool
	}{
		"nothing is known":                    {facts.Node{}, false},
		"its agent has it":                    {facts.Node{Pod: pod("10.0.0.1"), Agent: &facts.Agent{PodUID: "pod", Address: deserted}}, true},
		"its agent has another":               {facts.Node{Pod: pod("10.0.0.1"), Agent: &facts.Agent{PodUID: "pod", Address: "10.0.0.1"}}, false},
		"the agent of its former pod had it":  {facts.Node{Pod: pod("10.0.0.1"), Agent: &facts.Agent{PodUID: "former", Address: deserted}}, false},
		"its pod has it":                      {facts.Node{Pod: pod(deserted)}, true},
		"its record had it, and has no pod":   {facts.Node{Record: record(deserted)}, false},
		"its pod may get it":                  {facts.Node{Pod: pod(""), Record: record(deserted)}, true},
		"its pod may get another":             {facts.Node{Pod: pod(""), Record: record("10.0.0.1")}, false},
		"its pod may get any":                 {facts.Node{Pod: pod("")}, false},
		"its record has not heard of its pod": {facts.Node{Pod: pod("10.0.0.1"), Record: record(deserted)}, false},
	} {
		p := &pass{Snapshot: &facts.Snapshot{Nodes: map[string]*facts.Node{"other": {}, "node": &c.node}}}
		if got := p.anyoneAt(deserted); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNothingIsForgottenWhileAClusterIsPaused(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Paused = true })
	w.remember(overdueOf(names[0]), names[1])
	if made := w.settle(); len(w.assassins()) > 0 || w.snapshot.Ledger.Step != nil || !strings.Contains(made.String(), "spec.paused is true; members are to forget a join of node "+names[0]) {
		t.Errorf("operations of %v\n%s", w.assassins(), made)
	}
}

// The first member has a join forgotten that can be asked, and was not yet.
func TestWhoHasAJoinForgotten(t *testing.T) {
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
			w.remember(overdueOf(names[2]), names[1])
			step := &ledger.Step{ID: "step", Kind: ledger.ForgetJoin, Stage: ledger.StageOperations}
			w.snapshot.Ledger.Step = step
			c.change(w, w.snapshot.Nodes[names[0]], step.IntentID("forget-"+deserted, names[0]))
			p := passOver(w)
			r, forgets := p.forget(step)
			if !forgets || len(p.plan.Writes) == 0 || p.plan.Writes[0].Object.GetName() != c.want {
				t.Errorf("%v %s; want it to be asked of %s:\n%s", forgets, r.message, c.want, p.plan)
			}
		})
	}
}

// While a node waits to join since an earlier try of it is not forgotten, its own step sees to that.
func TestTheStepOfAJoinHasAnEarlierTryForgotten(t *testing.T) {
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
	w.remember(overdueOf(joiner), members[2])
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
func TestEachMemberHasOneTry(t *testing.T) {
	w := formed(t)
	w.undying = true
	names := w.snapshot.Names()
	w.remember(overdueOf(names[0]), names[1])
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
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != "StaleEndpointRemains" || !strings.Contains(made.Blocked[0].Message, "nodetool assassinate "+deserted) {
		t.Errorf("blocked %+v", made.Blocked)
	}
	if !made.Idle() {
		t.Errorf("not idle:\n%s", made)
	}
	w.undying = false
	w.remember(facts.Endpoint{}, []string{}...)
	w.settle()
	if w.snapshot.Ledger.Step != nil {
		t.Errorf("step %+v", w.snapshot.Ledger.Step)
	}
}

// A join may be given up while its step has an earlier try forgotten.
func TestTheOperationOfAJoinThatIsGivenUpIsOver(t *testing.T) {
	w := formed(t)
	name := w.snapshot.Names()[0]
	record := w.snapshot.Nodes[name].Record
	record.Spec.Operations = []v1alpha1.OperationIntent{{
		Intent: v1alpha1.Intent{ID: "another/forget-" + deserted + "/" + name}, Type: v1alpha1.OperationAssassinate, Arguments: &v1alpha1.OperationArguments{Endpoint: deserted},
	}}
	w.absent[name] = true
	if made := w.settle(); len(w.assassins()) != 1 || w.snapshot.Ledger.Step != nil {
		t.Fatalf("taken away before it is over:\n%s", made)
	}
	delete(w.absent, name)
	w.agents()
	if w.settle(); len(w.assassins()) != 0 {
		t.Errorf("operations of %v", w.assassins())
	}
}

// A member that is down when it is its turn is waited for, and named.
func TestWhoIsToHaveAJoinForgottenIsWaitedFor(t *testing.T) {
	w := formed(t)
	names := w.snapshot.Names()
	w.undying = true
	w.remember(overdueOf(names[0]), names[1])
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
