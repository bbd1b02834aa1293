package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A restart is asked for; the agent looks by itself whether the ring can do without the node.
func TestAMemberGoesDownOnlyIfTheRingCanDoWithoutIt(t *testing.T) {
	const keeps = "ConsistencyWouldBeLost"
	ring := func(change func(*facts.Ring)) Facts {
		return with1(serving(), func(f *Facts) { restart(f); change(f.JVM.Ring) })
	}
	for name, c := range map[string]struct {
		facts Facts
		guard v1alpha1.Reason // empty: it goes down
		words string
		acts  ActionKind
	}{
		"all others are up": {ring(func(*facts.Ring) {}), "", "", "BeginRestart"},
		"another rack is down": {
			ring(func(r *facts.Ring) { r.Endpoints[1].Live = false }), keeps, "", "",
		},
		"another rack is down, behind a node that left": {
			ring(func(r *facts.Ring) {
				r.Endpoints[1].Live = false
				r.Endpoints = append([]facts.Endpoint{gone(facts.StatusLeft)}, r.Endpoints...)
			}), keeps, hostB, "",
		},
		"a node that left is down": {ring(func(r *facts.Ring) {
			r.Endpoints = append(r.Endpoints, gone(facts.StatusLeft))
		}), "", "", "BeginRestart"},
		"a node without tokens is down": {
			ring(func(r *facts.Ring) { r.Endpoints = append(r.Endpoints, endpoint("10.0.0.9", "h9", "r2", false)) }),
			"", "", "BeginRestart",
		},
		"a node is leaving": {
			ring(func(r *facts.Ring) { r.Endpoints[2].Status = facts.StatusLeaving }), "TopologyChangeInProgress",
			"10.0.0.3 is LEAVING", "",
		},
		"two nodes are moving": {
			ring(func(r *facts.Ring) {
				r.Endpoints[1].Status, r.Endpoints[2].Status = facts.StatusMoving, facts.StatusBootstrap
			}),
			"TopologyChangeInProgress", "10.0.0.2 is MOVING, 10.0.0.3 is BOOT", "",
		},
		"the keyspaces are not known": {ring(func(r *facts.Ring) { r.Keyspaces = nil }), keeps,
			"the keyspaces are not known yet", ""},
		"a keyspace is replicated in a way nobody knows": {
			ring(func(r *facts.Ring) { r.Keyspaces["odd"] = "NetworkTopologyStrategy {dc1=many}" }), keeps,
			"keyspace odd:", "",
		},
		"two members have one token": {
			ring(func(r *facts.Ring) { r.Endpoints[1].Tokens = []int64{-5, 15} }), keeps,
			"the view of the ring contradicts itself", "",
		},
		"the view does not have the node itself": {ring(func(r *facts.Ring) { r.Endpoints = r.Endpoints[1:] }), keeps,
			hostA, ""},
		"one replica is all that there ever is": {ring(func(r *facts.Ring) {
			r.Keyspaces["shop"] = "SimpleStrategy {replication_factor=1}"
		}), "", "", "BeginRestart"},
		"another rack is down, with a keyspace of one replica before it": {
			ring(func(r *facts.Ring) {
				r.Keyspaces["a"] = "SimpleStrategy {replication_factor=1}"
				r.Endpoints[2].Live = false
			}), keeps, hostC, "",
		},
		"one of two replicas is all that is left": {ring(func(r *facts.Ring) {
			r.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=2}"
			r.Endpoints[1].Live = false
		}), keeps, hostB + " down already", ""},
		"both of two replicas are up": {ring(func(r *facts.Ring) {
			r.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=2}"
		}), "", "", "BeginRestart"},
		"both of two replicas are up, and such ranges are not to be touched": {
			demanding(v1alpha1.ConsistencyLocalQuorum, func(f *Facts) {
				f.JVM.Ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=2}"
				f.Record.Spec.Disruption.Unprotected = v1alpha1.UnprotectedBlock
			}), keeps, "", "",
		},
		"another rack is down, and ONE is enough": {
			demanding(v1alpha1.ConsistencyOne, func(f *Facts) { f.JVM.Ring.Endpoints[1].Live = false }), "", "",
			"BeginRestart",
		},
		"two racks are down, and ONE is enough": {
			demanding(v1alpha1.ConsistencyOne, func(f *Facts) {
				f.JVM.Ring.Endpoints[1].Live, f.JVM.Ring.Endpoints[2].Live = false, false
			}), keeps, "ONE needs 1", "",
		},
		"a node of the other datacenter is down, and they count together": {
			demanding(v1alpha1.ConsistencyQuorum, func(f *Facts) { twoCenters(f.JVM.Ring) }), keeps,
			"QUORUM needs 3", "",
		},
		"a node of the other datacenter is down, and each counts for itself": {
			demanding(v1alpha1.ConsistencyLocalOne, func(f *Facts) { twoCenters(f.JVM.Ring) }), "", "", "BeginRestart",
		},
		"nobody says which level": {demanding("", nil), keeps, "consistency level", ""},
		"the JVM is silent": {
			with1(serving(), func(f *Facts) {
				restart(f)
				f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-20*time.Second)
			}), "JVMNotAnswering", "does not answer", "",
		},
		"the JVM is silent, and was never NORMAL": {
			with1(serving(), func(f *Facts) {
				restart(f)
				f.JVM.AskedAt, f.JVM.AnsweredAt, f.Memory.Start.NormalAt = at(0), at(-20*time.Second), nil
			}), "", "", "BeginRestart",
		},
		"the JVM is silent, and no client is to be served": {
			with1(serving(), func(f *Facts) {
				restart(f)
				f.JVM.AskedAt, f.JVM.AnsweredAt, f.Record.Spec.ClientTraffic = at(0), at(-20*time.Second),
					v1alpha1.TrafficAdministrative
			}), "", "", "BeginRestart",
		},
		"it is drained already": {ring(func(r *facts.Ring) { r.Mode = facts.ModeDrained; r.Endpoints[1].Live = false }),
			"", "", "BeginRestart"},
		"the view is as old as it may be": {
			with1(serving(), func(f *Facts) {
				restart(f)
				f.JVM.AskedAt, f.JVM.AnsweredAt = at(-3*time.Second), at(-3*time.Second)
			}), "", "", "BeginRestart",
		},
		"the view is older": {
			with1(serving(), func(f *Facts) {
				restart(f)
				f.JVM.AskedAt, f.JVM.AnsweredAt = at(-3*time.Second-1), at(-3*time.Second-1)
			}), "", "", "LookAtRing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// What is written down about the ring comes first and is not the question here.
			c.facts.Memory.Neighbours = neighbours(c.facts.JVM.Ring)
			d := Next(c.facts, epoch)
			if c.guard == "" {
				if d.Action == nil || KindOf(d.Action) != c.acts || d.Status.Blocked != nil {
					t.Errorf("action %v, blocked %+v; want %s", d.Action, d.Status.Blocked, c.acts)
				}
				return
			}
			b := d.Status.Blocked
			if d.Action != nil || b == nil || b.Reason != c.guard || !strings.Contains(b.Message, c.words) ||
				d.Status.Phase != v1alpha1.PhaseDeferred {
				t.Errorf("action %v, phase %s, blocked %+v; want %s with %q", d.Action, d.Status.Phase, b, c.guard,
					c.words)
			}
			if !d.Again.Equal(at(5*time.Second)) || d.Status.Restart == nil || d.Status.Restart.Message != b.Message ||
				d.Status.Message != b.Message {
				t.Errorf("asked again at %s, restart %+v, message %q", d.Again, d.Status.Restart, d.Status.Message)
			}
		})
	}
}

// Two nodes may be asked to go down at once, by an operator that knows of the one and another that
// knows of the other, or by hand. Gossip says only seconds later that one of them goes.
func TestNoTwoGoDownAtOnceThatTheRingNeeds(t *testing.T) {
	asked := func(ago time.Duration, goesDown ...string) Facts {
		return with1(serving(), func(f *Facts) {
			restart(f)
			f.Peers.AskedAt = at(-ago)
			for _, id := range []string{hostA, hostB, hostC} {
				f.Peers.Answers = append(f.Peers.Answers, facts.Peer{HostID: id, GoingDown: slices.Contains(goesDown, id)})
			}
		})
	}
	for name, c := range map[string]struct {
		facts Facts
		acts  ActionKind // empty: it is deferred
		again time.Duration
	}{
		"nobody was asked":                {with1(serving(), func(f *Facts) { restart(f); f.Peers = Peers{} }), "AskPeers", 0},
		"they were asked something else":  {with1(asked(0), func(f *Facts) { f.Peers.GoingDown = false }), "AskPeers", 0},
		"they were asked a while ago":     {asked(peersFresh), "AskPeers", 0},
		"nobody else goes down":           {asked(0, hostA), "BeginRestart", 0},
		"another one does":                {asked(0, hostB), "", deferAgain},
		"another one did, a while ago":    {asked(deferAgain, hostB), "AskPeers", 0},
		"one with a smaller host id does": {with1(asked(deferAgain, hostB), larger), "", deferAgain},
		"one with a smaller id did":       {with1(asked(2*deferAgain, hostB), larger), "AskPeers", 0},
		"another does that the ring can spare": {with1(asked(0, hostB), func(f *Facts) {
			f.Record.Spec.Disruption.Consistency = v1alpha1.ConsistencyLocalOne
		}), "BeginRestart", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if c.acts != "" {
				if ask, asks := d.Action.(AskPeers); d.Action == nil || KindOf(d.Action) != c.acts || asks && !ask.GoingDown {
					t.Errorf("action %+v, want %s", d.Action, c.acts)
				}
				return
			}
			if d.Action != nil || d.Status.Phase != v1alpha1.PhaseDeferred || !d.Again.Equal(at(c.again)) ||
				!strings.Contains(d.Status.Message, "another node goes down at the same time: ") {
				t.Errorf("action %+v, phase %s, again %s: %s", d.Action, d.Status.Phase, d.Again, d.Status.Message)
			}
		})
	}
}

// larger has the node a host id above those of its peers.
func larger(f *Facts) {
	const id = "ffffffff-0000-4000-8000-000000000001"
	f.JVM.Ring.HostID, f.JVM.Ring.Endpoints[0].HostID, f.Peers.HostID = id, id, id
	f.Memory.Member.HostID, f.Record.Spec.Member.HostID, f.Disk.HostID = id, id, id
}

func TestGoesDown(t *testing.T) {
	with := func(change func(*Facts)) Facts { return with1(serving(), change) }
	begun := func(f *Facts) { f.Memory.Restart = &RestartMemory{Incarnation: "i1", StartID: 3} }
	for name, c := range map[string]struct {
		facts Facts
		next  Action
		want  bool
	}{
		"it serves":                 {serving(), nil, false},
		"it asks something else":    {serving(), AskPeers{}, false},
		"it asks whether others do": {serving(), AskPeers{GoingDown: true}, true},
		"it asks that just now": {with(func(f *Facts) { f.Doing = &Doing{Action: AskPeers{GoingDown: true}} }), nil,
			true},
		"it begins to":          {serving(), BeginRestart{}, true},
		"its restart has begun": {with(begun), nil, true},
		"its restart is over":   {with(func(f *Facts) { begun(f); f.Memory.Restart.FinishedAt = ptr(0) }), nil, false},
		"its stop has begun":    {with(func(f *Facts) { f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 3} }), nil, true},
		"an earlier JVM was stopped": {with(func(f *Facts) { f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 2} }),
			nil, false},
	} {
		if got := GoesDown(&c.facts, c.next); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// demanding is a member that is to restart and keep a level.
func demanding(level v1alpha1.ConsistencyLevel, change func(*Facts)) Facts {
	f := with1(serving(), restart)
	f.Record.Spec.Disruption.Consistency = level
	return with1(f, change)
}

// twoCenters are two of two nodes, of which one is down in the second.
func twoCenters(r *facts.Ring) {
	r.Endpoints[2].Datacenter, r.Endpoints[2].Live = "dc2", false
	fourth := endpoint("10.0.0.4", "dddddddd-0000-4000-8000-000000000004", "r1", true, -35, 35)
	fourth.Datacenter = "dc2"
	r.Endpoints = append(r.Endpoints, fourth)
	r.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=2, dc2=2}"
}

// gone is a member that gossip remembers after it has left.
func gone(status facts.GossipStatus) facts.Endpoint {
	e := endpoint("10.0.0.9", "h9", "r2", false, 99)
	e.Status = status
	return e
}

func TestAnIntentThatWasNotBegunRunsOut(t *testing.T) {
	limit := metaTime(0)
	for name, c := range map[string]struct {
		intent v1alpha1.Intent
		now    time.Duration
		want   string
	}{
		"open":            {v1alpha1.Intent{ID: "i"}, 0, ""},
		"at its limit":    {v1alpha1.Intent{ID: "i", NotAfter: limit}, 0, ""},
		"after its limit": {v1alpha1.Intent{ID: "i", NotAfter: limit}, 1, "not begun before 2026-03-01T12:00:00Z"},
		"taken back": {v1alpha1.Intent{ID: "i", NotAfter: limit, Withdraw: &v1alpha1.Withdrawal{Reason: "r"}}, 1,
			"taken back: r"},
	} {
		p := &pass{now: at(c.now)}
		if why, over := p.outOfDate(&c.intent); why != c.want || over != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, why, over, c.want)
		}
	}
}
