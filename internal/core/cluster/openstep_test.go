package cluster

import (
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

func TestATicketThatARecordLacksIsIssued(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		issued []string
	}{
		"none lacks one": {func(*world) {}, nil},
		"two lack one": {func(w *world) {
			w.snapshot.Nodes[first].Record.Spec.Join, w.snapshot.Nodes[third].Record.Spec.Join = nil, nil
		}, []string{first, third}},
		"one is a member already": {func(w *world) {
			n := w.snapshot.Nodes[first].Record
			n.Spec.Join, n.Spec.Member = nil, &v1alpha1.Member{}
		}, nil},
		"one is being deleted": {func(w *world) {
			n := w.snapshot.Nodes[first]
			n.Record.Spec.Join = nil
			deleting(n)
		}, nil},
		"one has no record":       {func(w *world) { w.snapshot.Nodes[first].Record = nil }, nil},
		"nothing of one is there": {func(w *world) { delete(w.snapshot.Nodes, first) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, three...)
			c.change(w)
			made, r := run(w)
			if len(c.issued) > 0 {
				want(t, made, r, plan.Act, "issued join tickets to "+words.List(c.issued, 3), c.issued...)
			} else if got := applied(made); r.Outcome != plan.Wait || len(got) != 0 {
				t.Errorf("%s, changes %v; want no ticket", r.Outcome, got)
			}
		})
	}
}

func TestAStepAboutNobodyHasNoProgress(t *testing.T) {
	v := viewOf(inStage(t, ledger.StageTickets))
	v.Ledger.Step.Nodes = nil
	made := during(v, func(s *procedure.Step) { s.Describe(0, "waiting") })
	if c := made.Current; c.Progress != nil || c.Message != "waiting" {
		t.Errorf("current %+v", c)
	}
}

func TestStragglersAreWithdrawnOneByOne(t *testing.T) {
	overdue := func(t *testing.T, late ...string) *world {
		w := forming(t, v1alpha1.DiskJoining, late...)
		finished := w.snapshot.Nodes[third].Record.Status.Join.FinishedAt
		w.now = finished.Add(stragglerTimeout)
		return w
	}
	t.Run("at the end of the timeout", func(t *testing.T) {
		w := overdue(t, first, second)
		made, r := run(w)
		want(t, made, r, plan.Act, "withdrawing the ticket of "+first, first)
		w.now = w.now.Add(-1)
		if made, r := run(w); r.Outcome != plan.Wait || len(made.Writes) > 0 || made.Wake != 1 {
			t.Errorf("%s, writes %v, wakes in %s; want to look again at the end of the timeout", r.Outcome, made.Writes,
				made.Wake)
		}
	})
	for name, change := range map[string]func(*world){
		"the first has no record": func(w *world) { w.snapshot.Nodes[first].Record = nil },
		"the first is in the ring after all": func(w *world) {
			w.snapshot.Nodes[first].Record.Status.Disk = v1alpha1.DiskMember
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := overdue(t, first, second)
			change(w)
			made, r := run(w)
			want(t, made, r, plan.Act, "withdrawing the ticket of "+second, second)
		})
	}
	t.Run("the first has no ticket, but it cannot get one either", func(t *testing.T) {
		w := overdue(t, first, second)
		n := w.snapshot.Nodes[first]
		n.Record.Spec.Join = nil
		deleting(n)
		made, r := run(w)
		want(t, made, r, plan.Act, "withdrawing the ticket of "+second, second)
	})
	t.Run("again when the pod that had the ticket is gone", func(t *testing.T) {
		for before, c := range map[string]struct {
			spoke  string // the pod that last spoke
			writes bool
		}{
			"":      {"gone", true},
			"older": {"gone", true},
			"gone":  {"gone", false},
			"none":  {"", false},
		} {
			w := overdue(t, first)
			n := w.snapshot.Nodes[first]
			n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{PodGone: uidOrNone(before)}
			n.Record.Status.PodUID = uidOrNone(c.spoke)
			made, r := run(w)
			if got := applied(made); (len(got) > 0) != c.writes {
				t.Errorf("withdrawn for pod %q, %q has spoken: changes %v, %s", before, c.spoke, got, r.Message)
			}
			if r.Outcome != plan.Act && !strings.Contains(r.Message, "waiting for 1 node to acknowledge") {
				t.Errorf("says %q", r.Message)
			}
		}
	})
}

func TestEveryRecordLearnsWhoIsAMember(t *testing.T) {
	member := func(w *world, names ...string) {
		for _, name := range names {
			r := w.snapshot.Nodes[name].Record
			r.Spec.Join, r.Spec.Member = nil, &v1alpha1.Member{HostID: hostID(name)}
		}
	}
	ticket := func(w *world, names ...string) {
		for _, name := range names {
			r := w.snapshot.Nodes[name].Record
			r.Spec.Member, r.Spec.Join = nil, &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: r.Status.Join.ID}}
		}
	}
	for name, c := range map[string]struct {
		change  func(*world)
		outcome plan.Outcome
		words   string
		written []string
		percent int32
	}{
		"all are to learn it": {func(w *world) { ticket(w, three...) }, plan.Act,
			"recording the host ids of 3 nodes", three, 0},
		"one knows it already": {func(w *world) { ticket(w, second, third) }, plan.Act,
			"recording the host ids of 2 nodes", []string{second, third}, 33},
		"one has no record": {func(w *world) {
			ticket(w, second, third)
			w.snapshot.Nodes[first].Record = nil
		}, plan.Act, "of 2 nodes", []string{second, third}, 0},
		"nothing of one is there": {func(w *world) {
			ticket(w, second, third)
			delete(w.snapshot.Nodes, first)
		}, plan.Act, "of 2 nodes", []string{second, third}, 0},
		"one is being deleted": {func(w *world) { ticket(w, three...); deleting(w.snapshot.Nodes[first]) },
			plan.Act, "of 2 nodes", []string{second, third}, 0},
		"one has not finished its join": {func(w *world) {
			ticket(w, three...)
			w.snapshot.Nodes[first].Record.Status.Join.FinishedAt = nil
		}, plan.Act, "of 2 nodes", []string{second, third}, 0},
		"one has not said anything": {func(w *world) {
			ticket(w, three...)
			w.snapshot.Nodes[first].Record.Status.Join = nil
		}, plan.Act, "of 2 nodes", []string{second, third}, 0},
		"one has said it of another": {func(w *world) {
			ticket(w, three...)
			w.snapshot.Nodes[first].Record.Status.Join.ID = "x"
		}, plan.Act, "of 2 nodes", []string{second, third}, 0},
		"one was recreated, as no member": {func(w *world) {
			r := w.snapshot.Nodes[first].Record
			r.Spec.Member, r.Spec.Join = nil, nil
		}, plan.Act, "of 1 node", []string{first}, 66},
		"one member still has its ticket": {func(w *world) {
			r := w.snapshot.Nodes[first].Record
			ticket(w, first)
			r.Spec.Member = &v1alpha1.Member{}
		}, plan.Act, "of 1 node", []string{first}, 66},
		"all but one, which is missing": {func(w *world) { w.snapshot.Nodes[third].Record = nil }, plan.Wait,
			"waiting for " + third, nil, 66},
		"all but one, which has not finished": {func(w *world) {
			ticket(w, first)
			w.snapshot.Nodes[first].Record.Status.Join.FinishedAt = nil
		}, plan.Wait, "waiting for " + first, nil, 66},
		"all": {func(*world) {}, plan.Act, "all host ids are recorded; node " + first + " sets the system keyspaces",
			[]string{first}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageFormed)
			member(w, three...)
			c.change(w)
			made, r := run(w)
			want(t, made, r, c.outcome, c.words, c.written...)
			if got := *made.Current.Progress; got != c.percent {
				t.Errorf("progress %d %%, want %d %%", got, c.percent)
			}
			if moved := slices.ContainsFunc(made.Writes,
				func(w plan.Write) bool { return w.Verb == plan.PutLedger }); moved != (name == "all") {
				t.Errorf("the step goes on: %v", moved)
			}
		})
	}
}

// Before client traffic opens one node sets the system keyspaces for all: whoever has begun, else
// the first that is up.
func TestWhoSetsTheSystemKeyspaces(t *testing.T) {
	asked := func(w *world, name, id string) {
		w.snapshot.Nodes[name].Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}}}
	}
	for name, c := range map[string]struct {
		change func(*world)
		asks   string
		words  string
	}{
		"the first that serves the ring": {func(*world) {}, first, "node " + first + " sets"},
		"the one that was asked": {func(w *world) {
			asked(w, second, "cluster--1/keyspaces/"+second)
		}, "", "waiting for " + second + ": it has not begun"},
		"the one that was asked again": {func(w *world) {
			asked(w, second, "cluster--1/keyspaces-1/"+second)
			w.snapshot.Ledger.Step.Attempts = map[string]int{second: 1}
		}, "", "waiting for " + second + ": it has not begun"},
		"not one that was asked by another step": {func(w *world) {
			asked(w, second, "cluster--9/keyspaces/"+second)
		}, first, "node " + first + " sets"},
		"not one without a record": {func(w *world) { w.snapshot.Nodes[first].Record = nil }, second,
			"node " + second + " sets"},
		"not one of which nothing is there": {func(w *world) { delete(w.snapshot.Nodes, first) }, second,
			"node " + second + " sets"},
		"not one that is being deleted": {func(w *world) { deleting(w.snapshot.Nodes[first]) }, second,
			"node " + second + " sets"},
		"not one that is not NORMAL": {func(w *world) {
			w.snapshot.Nodes[first].Agent.Ring.Mode = facts.ModeJoining
		}, second, "node " + second + " sets"},
		"not one whose former pod answers": {func(w *world) { w.snapshot.Nodes[first].Agent.PodUID = "former" }, second,
			"node " + second + " sets"},
		"nobody": {func(w *world) {
			for _, name := range three {
				w.snapshot.Nodes[name].Agent.Ring.Mode = facts.ModeJoining
			}
		}, "", "waiting for a node that is up"},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageKeyspaces)
			for _, name := range three {
				w.snapshot.Nodes[name].Record.Spec.Operations, w.snapshot.Nodes[name].Record.Status.Operations = nil,
					nil
			}
			c.change(w)
			made, r := run(w)
			if c.asks == "" {
				want(t, made, r, plan.Wait, c.words)
				return
			}
			want(t, made, r, plan.Act, c.words, c.asks)
		})
	}
}

func TestClientsAreLetInEverywhere(t *testing.T) {
	open := func(w *world, names ...string) {
		for _, name := range names {
			s := &w.snapshot.Nodes[name].Record.Spec
			s.ClientTraffic, s.Operations = v1alpha1.TrafficOpen, nil
		}
	}
	closed := func(w *world, names ...string) {
		for _, name := range names {
			w.snapshot.Nodes[name].Record.Spec.ClientTraffic = v1alpha1.TrafficClosed
		}
	}
	untold := func(n *facts.Node) {
		own := v1alpha1.Intent{ID: "cluster--1/keyspaces/" + n.Name}
		n.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: own}}
		n.Record.Status.Operations = nil
	}
	for name, c := range map[string]struct {
		change  func(*world)
		outcome plan.Outcome
		words   string
		written []string
	}{
		"all are closed": {func(w *world) { closed(w, three...) }, plan.Act,
			"opening client traffic of 3 nodes", three},
		"one is open": {func(w *world) { closed(w, second, third) }, plan.Act,
			"opening client traffic of 2 nodes", []string{second, third}},
		"one still has its operation": {func(w *world) { ended(w.snapshot.Nodes[first]) }, plan.Act,
			"opening client traffic of 1 node", []string{first}},
		// disk-lost/1/status-lost@operator:update:ConfigMap/orders-ledger:4
		"one whose status is lost": {func(w *world) { untold(w.snapshot.Nodes[first]) }, plan.Wait,
			"waiting for " + first + " to say", nil},
		"one that is down, whose status is lost": {func(w *world) {
			untold(w.snapshot.Nodes[first])
			w.snapshot.Nodes[first].Agent = nil
		}, plan.Done, "", nil},
		"the first has no record": {func(w *world) { closed(w, three...); w.snapshot.Nodes[first].Record = nil },
			plan.Wait, "record of " + first, nil},
		"nothing of the first is there": {func(w *world) { closed(w, three...); delete(w.snapshot.Nodes, first) },
			plan.Wait, "record of " + first, nil},
		"the first is being deleted": {func(w *world) { closed(w, three...); deleting(w.snapshot.Nodes[first]) },
			plan.Wait, "record of " + first, nil},
		"all are open": {func(*world) {}, plan.Done, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := inStage(t, ledger.StageOpen)
			open(w, three...)
			c.change(w)
			made, r := run(w)
			want(t, made, r, c.outcome, c.words, c.written...)
			if over := len(made.Finished) > 0; over != (c.outcome == plan.Done) {
				t.Errorf("finished %+v", made.Finished)
			}
		})
	}
}

func TestAStageThatIsNotKnownIsLeftToTheReleaseThatBeganIt(t *testing.T) {
	w := inStage(t, ledger.StageOpen)
	w.snapshot.Ledger.Step.Stage = "Dancing"
	made := w.pass()
	wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, "Dancing", "cluster--1")
}
