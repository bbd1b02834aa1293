package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// A ticket is issued to a node that lost it with its record, but not to a member.
func TestAJoinGoesOnWithItsTicket(t *testing.T) {
	w := joining(t)
	n := w.snapshot.Nodes[newcomer]
	tokens := n.Record.Spec.Join.Tokens
	n.Record.Spec.Join = nil
	made, r := run(w)
	want(t, made, r, plan.Act, "issued a join ticket to "+newcomer, newcomer)
	if j := made.Writes[len(made.Writes)-1].Object.(*v1alpha1.CassandraNode).Spec.Join; j == nil ||
		!slices.Equal(j.Tokens, tokens) {
		t.Errorf("ticket %+v, want tokens %v", j, tokens)
	}
	n.Record.Spec.Member = &v1alpha1.Member{HostID: hostID(newcomer)}
	made, r = run(w)
	want(t, made, r, plan.Wait, "waiting for")
}

// Each attempt that has ended has an id of its own, by which what it streamed may be removed.
func TestAJoinThatWasCutOffMayBeginAnew(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Agent, *v1alpha1.JoinTicket)
		want   string
	}{
		"it was cut off":     {func(*facts.Agent, *v1alpha1.JoinTicket) {}, "/wipe-2"},
		"allowed before":     {func(_ *facts.Agent, t *v1alpha1.JoinTicket) { t.Wipe = t.ID + "/wipe-1" }, "/wipe-2"},
		"allowed already":    {func(_ *facts.Agent, t *v1alpha1.JoinTicket) { t.Wipe = t.ID + "/wipe-2" }, ""},
		"it runs":            {func(a *facts.Agent, _ *v1alpha1.JoinTicket) { a.Process = facts.ProcessRunning }, ""},
		"nothing is there":   {func(a *facts.Agent, _ *v1alpha1.JoinTicket) { a.Disk = v1alpha1.DiskEmpty }, ""},
		"it is a member":     {func(a *facts.Agent, _ *v1alpha1.JoinTicket) { a.Disk = v1alpha1.DiskMember }, ""},
		"of another ticket":  {func(a *facts.Agent, _ *v1alpha1.JoinTicket) { a.Join.ID = "other" }, ""},
		"it did not say yet": {func(a *facts.Agent, _ *v1alpha1.JoinTicket) { a.Join = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := joining(t)
			n := w.snapshot.Nodes[newcomer]
			n.Agent.Join = &v1alpha1.IntentStatus{ID: n.Record.Spec.Join.ID, Attempts: 2}
			n.Agent.Process, n.Agent.Disk, n.Agent.Ring = facts.ProcessAbsent, v1alpha1.DiskJoining, nil
			c.change(n.Agent, n.Record.Spec.Join)
			made, _ := run(w)
			got := ""
			for _, write := range made.Writes {
				if r, ok := write.Object.(*v1alpha1.CassandraNode); ok && r.Name == newcomer {
					got = strings.TrimPrefix(r.Spec.Join.Wipe, r.Spec.Join.ID)
				}
			}
			if got != c.want {
				t.Errorf("the ticket allows %q, want %q", got, c.want)
			}
		})
	}
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
		"clients are not let in": {func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficClosed },
			false},
		"nothing of that is so": {func(s *v1alpha1.CassandraNodeSpec) {
			*s = v1alpha1.CassandraNodeSpec{Join: &v1alpha1.JoinTicket{}}
		}, false},
	} {
		w := joining(t)
		step := w.snapshot.Ledger.Step
		step.Stage = ledger.StageOpen
		n := w.snapshot.Nodes[newcomer]
		n.Record.Spec.Member, n.Record.Spec.Join, n.Record.Spec.ClientTraffic = &v1alpha1.Member{
			HostID: hostID(newcomer),
		}, nil, v1alpha1.TrafficOpen
		c.change(&n.Record.Spec)
		made, r := run(w)
		if over := r.Outcome == plan.Done && len(made.Finished) == 1; over != c.over {
			t.Errorf("%s: over %v, %s", name, over, r.Message)
		}
		if admitted := applied(made); c.over == slices.Contains(admitted, newcomer) {
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
		if _, r := run(w); strings.Contains(r.Message, unfinished) != c.want {
			t.Errorf("%s: %q", name, r.Message)
		}
	}
}

// A member that lives in the eyes of the newcomer, and does not say what it sees, keeps the join
// from being over.
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
			endpoints[slices.IndexFunc(endpoints, func(e facts.Endpoint) bool {
				return e.HostID == hostID(second)
			})].Live = live
			n.Agent.Ring.Endpoints = endpoints
			silent(w.snapshot.Nodes[second])
			_, r := run(w)
			if said := strings.Contains(r.Message, second+" is live and does not say what it sees"); said != live ||
				!live && r.Outcome != plan.Act {
				t.Errorf("%s, lives %v: %s: %q", name, live, r.Outcome, r.Message)
			}
		}
	}
}

// While a withdrawal is being written nothing else is: whoever else is given up is looked at after
// that.
func TestWithdrawalsAreWrittenOneByOne(t *testing.T) {
	w := joining(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(1)) })
	if made, r := run(w); r.Outcome != plan.Act || len(made.Writes) != 1 {
		t.Errorf("%v, %s: %s", r.Outcome, r.Message, made)
	}
}

// A record that is being deleted, or is gone, is made again before its node's join goes on.
func TestAJoinWaitsForItsRecord(t *testing.T) {
	for name, change := range map[string]func(*facts.Node){"it is being deleted": deleting,
		"it is gone": func(n *facts.Node) { n.Record = nil }} {
		w := joining(t)
		change(w.snapshot.Nodes[newcomer])
		if made, r := run(w); r.Outcome != plan.Wait || !strings.Contains(r.Message, "which is recreated") ||
			len(made.Writes) > 0 {
			t.Errorf("%s: %v, %s: %s", name, r.Outcome, r.Message, made)
		}
	}
}

// Who was left out of the formation and has joined is left out no more; others are.
func TestWhoHasJoinedIsNotExcluded(t *testing.T) {
	w := joining(t)
	w.snapshot.Ledger.Excluded = []string{newcomer, "another"}
	n := w.snapshot.Nodes[newcomer]
	w.comes(n)
	n.Record.Status.Join.FinishedAt = new(metav1.NewTime(w.now))
	w.settle()
	if l := w.snapshot.Ledger; l.Members[newcomer] == "" || !slices.Equal(l.Excluded, []string{"another"}) {
		t.Errorf("members %v, excluded %v", l.Members, l.Excluded)
	}
	formation := newWorld(t, datacenter("dc1", 1, 1, 1))
	for range 100 {
		if formation.pass(); formation.snapshot.Ledger != nil && formation.snapshot.Ledger.Step != nil {
			break
		}
	}
	formation.snapshot.Ledger.Excluded = []string{first, "another"}
	formation.settle()
	if l := formation.snapshot.Ledger; !slices.Equal(l.Excluded, []string{"another"}) {
		t.Errorf("formed without %v", l.Excluded)
	}
}

// Members outside of the wave are asked for whoever is in it.
func TestAMemberInTheWaveDoesNotHideOthers(t *testing.T) {
	w := joining(t)
	w.comes(w.snapshot.Nodes[newcomer])
	w.takeTokens(first)
	w.snapshot.Ledger.Step.Nodes = []string{first, newcomer}
	w.snapshot.Nodes[second].Agent = nil
	var doubts []string
	v := viewOf(w)
	during(v, func(s *procedure.Step) { doubts = ticket.Look(v, s).Doubts })
	if text := fmt.Sprint(doubts); !strings.Contains(text, second+" is live and does not say what it sees") {
		t.Errorf("doubts %s", text)
	}
}
