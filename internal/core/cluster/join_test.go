package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

const newcomer = "orders-dc1-r1-1"

// joining is a ring of three nodes that a fourth is on its way into.
func joining(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.late[newcomer] = true
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	w.settle()
	if s := w.snapshot.Ledger.Step; s == nil || s.Kind != ledger.JoinNode || w.snapshot.Nodes[newcomer].Record.Spec.Join == nil {
		t.Fatalf("step %+v", s)
	}
	return w
}

// comes has the JVM of a node become NORMAL without its agent's saying that the ticket is done.
func (w *world) comes(n *facts.Node) {
	w.serve(n, n.Record.Spec.Join.Tokens)
	w.agents()
}

// waitingContainers are those of a pod whose Cassandra container does not start.
func waitingContainers() []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Name: layout.CassandraContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
}

func wantedAt(w *world, name string) render.Wanted {
	wanted := wantedOf(w)
	return wanted[slices.IndexFunc(wanted, func(w render.Wanted) bool { return w.Name == name })]
}

// Only a ticket that lets its node join a ring that serves brings back the step of a join.
func TestWhichTicketsHaveAJoinGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   bool
	}{
		"its own":              {func(*facts.Node) {}, true},
		"none":                 {func(n *facts.Node) { n.Record.Spec.Join = nil }, false},
		"none, nor a record":   {func(n *facts.Node) { n.Record = nil }, false},
		"one to form a ring":   {func(n *facts.Node) { n.Record.Spec.Join.Mode = v1alpha1.JoinNew }, false},
		"one that was revoked": {func(n *facts.Node) { n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{} }, false},
	} {
		w := joining(t)
		n := w.snapshot.Nodes[newcomer]
		c.change(n)
		s := passOver(w).joinWithoutStep([]render.Wanted{wantedAt(w, second), wantedAt(w, newcomer)})
		if (s != nil) != c.want || c.want && (s.ID != w.snapshot.Ledger.Step.ID || !slices.Equal(s.Tickets[newcomer].Tokens, n.Record.Spec.Join.Tokens)) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Whoever joins next comes to the rack with the fewest members.
func TestWhoJoinsNext(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 1, 3))
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		for i := range s.Datacenters[0].Racks {
			s.Datacenters[0].Racks[i].Nodes = ptr(int32(4))
		}
	})
	p := passOver(w)
	p.wanted = wantedOf(w)
	var got []string
	for _, n := range p.newcomers() {
		got = append(got, strings.TrimPrefix(n.Name, "orders-dc1-"))
	}
	if want := []string{"r2-1", "r2-2", "r2-3", "r1-2", "r1-3", "r3-3"}; !slices.Equal(got, want) {
		t.Errorf("in the order %v, want %v", got, want)
	}
}

func TestWhenARingCanChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pass)
		want   bool
	}{
		"it stands":           {func(*pass) {}, true},
		"it is being formed":  {func(p *pass) { p.Ledger.Formed = nil }, false},
		"its spec is refused": {func(p *pass) { p.held = true }, false},
		"a step is open":      {func(p *pass) { p.Ledger.Step = &ledger.Step{} }, false},
	} {
		p := passOver(formed(t))
		if c.change(p); p.canChange() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

func TestByWhomTheRingIsSeen(t *testing.T) {
	w := formed(t)
	w.absent[first] = true
	w.agents()
	for name, r := range map[string]*facts.Ring{"without a JVM": nil, "on its way": {Mode: facts.ModeJoining}} {
		w.snapshot.Nodes[second].Agent.Ring = r
		if got := passOver(w).anyView(); got == nil || got != w.snapshot.Nodes[third].Agent.Ring {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.snapshot.Nodes[third].Agent = nil
	if got := passOver(w).anyView(); got != nil {
		t.Errorf("nobody sees %+v", got)
	}
}

// A data volume is as large as it came out, else as it is described.
func TestHowLargeADataVolumeIs(t *testing.T) {
	made := func(capacity string) *facts.Node {
		c := &corev1.PersistentVolumeClaim{}
		if capacity != "" {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
		}
		return &facts.Node{Claims: map[string]*facts.Claim{v1alpha1.VolumeData: {Claim: c}}}
	}
	for name, c := range map[string]struct {
		node *facts.Node
		want string
	}{
		"there is no node":        {nil, "10Gi"},
		"it has no claim":         {&facts.Node{}, "10Gi"},
		"its claim is not seen":   {&facts.Node{Claims: map[string]*facts.Claim{v1alpha1.VolumeData: {}}}, "10Gi"},
		"its claim has no volume": {made(""), "10Gi"},
		"its volume is larger":    {made("12Gi"), "12Gi"},
	} {
		w := formed(t)
		wanted := wantedAt(w, first)
		w.snapshot.Nodes[first] = c.node
		if got := passOver(w).dataVolume(wanted); got == nil || got.String() != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		wanted.Pod.Storage.Claims.Data = nil
		if got := passOver(w).dataVolume(wanted); c.want == "10Gi" && got != nil {
			t.Errorf("%s, and is not described: %v", name, got)
		}
	}
}

// A budget refuses evictions once the controller of budgets has seen that it is to.
func TestWhichBudgetsAreOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *policyv1.PodDisruptionBudget)
		open   bool
	}{
		"closed":                  {func(*world, *policyv1.PodDisruptionBudget) {}, false},
		"it is not there":         {func(w *world, b *policyv1.PodDisruptionBudget) { delete(w.snapshot.Shared.Budgets, b.Name) }, true},
		"it wants something else": {func(_ *world, b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(1)) }, true},
		"nobody has looked yet":   {func(_ *world, b *policyv1.PodDisruptionBudget) { b.Generation++ }, true},
		"a pod may go":            {func(_ *world, b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }, true},
	} {
		w := joining(t)
		budget := w.snapshot.Shared.Budgets["orders-dc1"]
		c.change(w, budget)
		p := passOver(w)
		p.wanted = wantedOf(w)
		if got := p.openBudgets(); slices.Equal(got, []string{budget.Name}) != c.open || !c.open && len(got) > 0 {
			t.Errorf("%s: open are %v", name, got)
		}
	}
}

// Each way in which keyspaces are replicated counts for who holds less when a node has joined.
func TestWhoHoldsLessOnceANodeHasJoined(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{
		"a": "NetworkTopologyStrategy {dc9=1}", "b": "NetworkTopologyStrategy {dc9=1}", "c": "NetworkTopologyStrategy {dc1=1}",
	})
	p := passOver(w)
	got := p.shrunk(p.anyView(), hostID(third))
	if len(got) == 0 || slices.Contains(got, third) {
		t.Errorf("less hold %v", got)
	}
	w.replicated(map[string]string{"a": "NetworkTopologyStrategy {dc9=1}"})
	p = passOver(w)
	if got := p.shrunk(p.anyView(), hostID(third)); len(got) > 0 {
		t.Errorf("of nothing less hold %v", got)
	}
}

// A ticket is issued to a node that lost it with its record, but not to a member.
func TestAJoinGoesOnWithItsTicket(t *testing.T) {
	w := joining(t)
	n := w.snapshot.Nodes[newcomer]
	tokens := n.Record.Spec.Join.Tokens
	n.Record.Spec.Join = nil
	goOn := func() (plan.Plan, result) {
		p := passOver(w)
		p.wanted = wantedOf(w)
		r := p.stage(w.snapshot.Ledger.Step)
		return p.plan, r
	}
	made, r := goOn()
	want(t, made, r, plan.Act, "gets its ticket to join", newcomer)
	if j := made.Writes[len(made.Writes)-1].Object.(*v1alpha1.CassandraNode).Spec.Join; j == nil || !slices.Equal(j.Tokens, tokens) {
		t.Errorf("ticket %+v, want tokens %v", j, tokens)
	}
	n.Record.Spec.Member = &v1alpha1.Member{HostID: hostID(newcomer)}
	made, r = goOn()
	want(t, made, r, plan.Wait, "waiting for")
}

// A join is over when the record says all that a member's says.
func TestWhenAJoinIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraNodeSpec)
		over   bool
	}{
		"it is a member":             {func(*v1alpha1.CassandraNodeSpec) {}, true},
		"the record does not say so": {func(s *v1alpha1.CassandraNodeSpec) { s.Member = nil }, false},
		"its ticket is still there":  {func(s *v1alpha1.CassandraNodeSpec) { s.Join = &v1alpha1.JoinTicket{} }, false},
		"clients are not let in":     {func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficClosed }, false},
		"nothing of that is so":      {func(s *v1alpha1.CassandraNodeSpec) { *s = v1alpha1.CassandraNodeSpec{Join: &v1alpha1.JoinTicket{}} }, false},
	} {
		w := joining(t)
		step := w.snapshot.Ledger.Step
		step.Stage = ledger.StageOpen
		n := w.snapshot.Nodes[newcomer]
		n.Record.Spec.Member, n.Record.Spec.Join, n.Record.Spec.ClientTraffic = &v1alpha1.Member{HostID: hostID(newcomer)}, nil, v1alpha1.TrafficOpen
		c.change(&n.Record.Spec)
		p := passOver(w)
		r := p.endJoin(step, n)
		if over := r.outcome == plan.Done && p.Ledger.Step == nil; over != c.over {
			t.Errorf("%s: over %v, %s", name, over, r.message)
		}
		if admitted := applied(p.plan); c.over == slices.Contains(admitted, newcomer) {
			t.Errorf("%s: changes %v", name, admitted)
		}
	}
}

// A node that is NORMAL has joined when it says that its ticket is done.
func TestWhatIsDoubtedOfAJoin(t *testing.T) {
	const unfinished = "has not reported that the join has finished"
	for name, c := range map[string]struct {
		change func(*world, *facts.Node)
		want   bool
	}{
		"it is on its way":                 {func(*world, *facts.Node) {}, false},
		"it is NORMAL and has not said so": {func(w *world, n *facts.Node) { w.comes(n) }, true},
		"it is NORMAL and has said nothing": {func(w *world, n *facts.Node) {
			w.comes(n)
			n.Record.Status.Join = nil
		}, true},
		"it is NORMAL and has said so": {func(w *world, n *facts.Node) {
			w.comes(n)
			n.Record.Status.Join.FinishedAt = new(metav1.NewTime(w.now))
		}, false},
		"it has no ticket any more": {func(w *world, n *facts.Node) {
			w.comes(n)
			n.Record.Spec.Join, n.Record.Status.Join = nil, nil
		}, false},
	} {
		w := joining(t)
		n := w.snapshot.Nodes[newcomer]
		c.change(w, n)
		doubts := passOver(w).joinDoubts(w.snapshot.Ledger.Step, n)
		if got := slices.ContainsFunc(doubts, func(d string) bool { return strings.Contains(d, unfinished) }); got != c.want {
			t.Errorf("%s: %q", name, doubts)
		}
	}
}

// A member that lives in the eyes of the newcomer, and does not say what it sees, keeps the join from being over.
func TestAJoinWaitsForTheWordOfEveryMemberThatLives(t *testing.T) {
	for name, silent := range map[string]func(*facts.Node){
		"its agent is not there": func(n *facts.Node) { n.Agent = nil },
		"its JVM does not say":   func(n *facts.Node) { n.Agent.Ring = nil },
	} {
		for _, live := range []bool{true, false} {
			w := joining(t)
			n := w.snapshot.Nodes[newcomer]
			w.comes(n)
			n.Record.Status.Join.FinishedAt = new(metav1.NewTime(w.now))
			endpoints := slices.Clone(n.Agent.Ring.Endpoints)
			endpoints[slices.IndexFunc(endpoints, func(e facts.Endpoint) bool { return e.HostID == hostID(second) })].Live = live
			n.Agent.Ring.Endpoints = endpoints
			silent(w.snapshot.Nodes[second])
			doubts := passOver(w).joinDoubts(w.snapshot.Ledger.Step, n)
			if said := slices.ContainsFunc(doubts, func(d string) bool { return strings.HasPrefix(d, second+" lives and does not say what it sees") }); said != live || !live && len(doubts) > 0 {
				t.Errorf("%s, lives %v: %q", name, live, doubts)
			}
		}
	}
}

// A node with a ticket is given up when the spec, which is accepted, does not describe it, or its ticket was taken back; not once it has joined.
func TestWhoIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		change           func(*pass, *facts.Node)
		wanted, unwanted bool
	}{
		"it is on its way":      {func(*pass, *facts.Node) {}, false, true},
		"its ticket is revoked": {func(_ *pass, n *facts.Node) { n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{} }, true, true},
		"its agent gave it back, as a record that was lost had said": {func(_ *pass, n *facts.Node) {
			n.Record.Status.Join = &v1alpha1.IntentStatus{ID: n.Record.Spec.Join.ID, WithdrawnAt: &metav1.Time{}}
		}, true, true},
		"its agent gave a former one back": {func(_ *pass, n *facts.Node) {
			n.Record.Status.Join = &v1alpha1.IntentStatus{ID: "another", WithdrawnAt: &metav1.Time{}}
		}, false, true},
		"it has no ticket yet":  {func(_ *pass, n *facts.Node) { n.Record.Spec.Join = nil }, false, true},
		"its record is away":    {func(_ *pass, n *facts.Node) { n.Record = nil }, false, true},
		"its record is deleted": {func(_ *pass, n *facts.Node) { deleting(n) }, false, false},
		"it has joined":         {func(_ *pass, n *facts.Node) { n.Record.Status.Disk = v1alpha1.DiskMember }, false, false},
		"the spec is refused":   {func(p *pass, _ *facts.Node) { p.held = true }, false, false},
	} {
		for _, describes := range []bool{true, false} {
			w := joining(t)
			p := passOver(w)
			if describes {
				p.wanted = wantedOf(w)
			}
			c.change(p, w.snapshot.Nodes[newcomer])
			want := c.unwanted
			if describes {
				want = c.wanted
			}
			if got := p.isGivenUp(newcomer); got != want {
				t.Errorf("%s, the spec describes it %v: given up %v", name, describes, got)
			}
		}
	}
}

// Nobody will acknowledge that a ticket is withdrawn where a node fails, and its agent waits for the Cassandra container or is not there.
func TestWhoNeverAnswers(t *testing.T) {
	stuck := waitingContainers()
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   bool
	}{
		"it is on its way":       {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, false},
		"it waits for its JVM":   {func(n *facts.Node) { n.Agent.Process = facts.ProcessAbsent }, false},
		"its agent is not there": {func(n *facts.Node) { n.Agent = nil }, false},
		"its agent is not there, its container does not start": {func(n *facts.Node) {
			n.Agent, n.Pod.Status.ContainerStatuses, n.Pod.Status.Phase = nil, stuck, corev1.PodPending
		}, true},
		"its container does not start": {func(n *facts.Node) {
			n.Agent.Process, n.Pod.Status.ContainerStatuses = facts.ProcessUnknown, stuck
		}, true},
		"its JVM has ended": {func(n *facts.Node) {
			n.Agent.Process = facts.ProcessAbsent
			n.Pod.Status.ContainerStatuses = stuck
		}, false},
	} {
		w := joining(t)
		n := w.snapshot.Nodes[newcomer]
		c.change(n)
		if got := neverAnswers(n); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a node is given up for is what its ticket was taken back for, if the record or its agent knows.
func TestWhyANodeIsGivenUp(t *testing.T) {
	const why = "it did not come"
	gaveItBack := func(n *facts.Node, message string) {
		n.Record.Status.Join = &v1alpha1.IntentStatus{ID: n.Record.Spec.Join.ID, WithdrawnAt: &metav1.Time{}, Message: message}
	}
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   string
	}{
		"nobody wants it":           {func(*facts.Node) {}, noLonger},
		"it has no record":          {func(n *facts.Node) { n.Record = nil }, noLonger},
		"its record knows":          {func(n *facts.Node) { n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why} }, why},
		"its agent alone knows":     {func(n *facts.Node) { gaveItBack(n, why) }, why},
		"its agent knows no reason": {func(n *facts.Node) { gaveItBack(n, "") }, noLonger},
		"its agent says something else": {func(n *facts.Node) {
			n.Record.Status.Join = &v1alpha1.IntentStatus{ID: n.Record.Spec.Join.ID, Message: why}
		}, noLonger},
	} {
		n := joining(t).snapshot.Nodes[newcomer]
		c.change(n)
		if got := whyGivenUp(n); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The pod of a node goes whose agent cannot say that it knows of the withdrawal; another one is waited for.
func TestWhosePodGoesWithItsTicket(t *testing.T) {
	stuck := func(n *facts.Node) {
		n.Agent.Process, n.Pod.Status.ContainerStatuses = facts.ProcessUnknown, waitingContainers()
	}
	for name, c := range map[string]struct {
		change  func(*facts.Node)
		deletes bool
	}{
		"it answers":                 {func(*facts.Node) {}, false},
		"it never answers":           {stuck, true},
		"it never answers, and goes": {func(n *facts.Node) { stuck(n); n.Pod.DeletionTimestamp = &metav1.Time{} }, false},
		"its pod is gone, and nobody knows it yet": {func(n *facts.Node) {
			n.Pod, n.Record.Status.PodUID, n.Record.Spec.Join.Withdraw.PodGone = nil, "", podForgotten
			n.Record.Status.Join = nil
		}, false},
	} {
		w := joining(t)
		n := w.snapshot.Nodes[newcomer]
		n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: noLonger}
		c.change(n)
		p := passOver(w)
		over, r := p.takeBack(w.snapshot.Ledger.Step, newcomer)
		if deletes := len(p.plan.Writes) == 1 && p.plan.Writes[0].Verb == plan.Delete && p.plan.Writes[0].Live; deletes != c.deletes || deletes != (r.outcome == plan.Act) || deletes && over {
			t.Errorf("%s: over %v, %s: %s", name, over, r.message, p.plan)
		}
	}
}

// While a withdrawal is being written nothing else is: whoever else is given up is looked at after that.
func TestWithdrawalsAreWrittenOneByOne(t *testing.T) {
	w := joining(t)
	p := passOver(w)
	p.wanted = nil
	if r := p.giveUpWave(w.snapshot.Ledger.Step); r.outcome != plan.Act || len(p.plan.Writes) != 1 {
		t.Errorf("%v, %s: %s", r.outcome, r.message, p.plan)
	}
}

// A record that is being deleted, or is gone, is made again before its node's join goes on.
func TestAJoinWaitsForItsRecord(t *testing.T) {
	for name, change := range map[string]func(*facts.Node){"it is being deleted": deleting, "it is gone": func(n *facts.Node) { n.Record = nil }} {
		w := joining(t)
		change(w.snapshot.Nodes[newcomer])
		p := passOver(w)
		p.wanted = wantedOf(w)
		if r := p.joinNode(w.snapshot.Ledger.Step); r.outcome != plan.Wait || !strings.Contains(r.message, "which is made again") || len(p.plan.Writes) > 0 {
			t.Errorf("%s: %v, %s: %s", name, r.outcome, r.message, p.plan)
		}
	}
}

// Who was left out of the formation and has joined is left out no more; others are.
func TestWhoHasJoinedIsNotLeftBehind(t *testing.T) {
	w := joining(t)
	w.snapshot.Ledger.LeftBehind = []string{newcomer, "another"}
	n := w.snapshot.Nodes[newcomer]
	w.comes(n)
	n.Record.Status.Join.FinishedAt = new(metav1.NewTime(w.now))
	w.settle()
	if l := w.snapshot.Ledger; l.Members[newcomer] == "" || !slices.Equal(l.LeftBehind, []string{"another"}) {
		t.Errorf("members %v, left behind %v", l.Members, l.LeftBehind)
	}
	formation := newWorld(t, datacenter("dc1", 1, 1, 1))
	for range 100 {
		if formation.pass(); formation.snapshot.Ledger != nil && formation.snapshot.Ledger.Step != nil {
			break
		}
	}
	formation.snapshot.Ledger.LeftBehind = []string{first, "another"}
	formation.settle()
	if l := formation.snapshot.Ledger; !slices.Equal(l.LeftBehind, []string{"another"}) {
		t.Errorf("formed without %v", l.LeftBehind)
	}
}

// Members outside of the wave are asked for whoever is in it.
func TestAMemberInTheWaveDoesNotHideOthers(t *testing.T) {
	w := joining(t)
	w.comes(w.snapshot.Nodes[newcomer])
	w.snapshot.Ledger.Step.Tickets[first] = ledger.Ticket{}
	w.snapshot.Nodes[second].Agent = nil
	doubts := passOver(w).viewsOf(w.snapshot.Ledger.Step).doubts
	if text := fmt.Sprint(doubts); !strings.Contains(text, second+" lives and does not say what it sees") {
		t.Errorf("doubts %s", text)
	}
}
