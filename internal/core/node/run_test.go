package node

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// next is the kind of the action that follows; empty for none.
func next(f Facts) ActionKind {
	if a := Next(f, epoch).Action; a != nil {
		return KindOf(a)
	}
	return ""
}

func TestAFrozenJVMIsKilledWhenNobodySeesItUp(t *testing.T) {
	sighting := func(change func(*facts.Peer)) func(*Facts) {
		return func(f *Facts) {
			p := sees(true)
			change(&p)
			answered(f, hostA, p)
		}
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   ActionKind
	}{
		"no peer is known": {func(f *Facts) { f.Seeds, f.Memory.Neighbours = nil, nil; keep(f) },
			"Kill"},
		"no peer has answered":      {func(f *Facts) { answered(f, hostA) }, "Kill"},
		"a peer sees it up":         {sighting(func(*facts.Peer) {}), ""},
		"a peer sees it down":       {sighting(func(p *facts.Peer) { p.OfHostID.Live = false }), "Kill"},
		"a peer does not know it":   {sighting(func(p *facts.Peer) { p.OfHostID = nil }), "Kill"},
		"a peer's JVM does not run": {sighting(func(p *facts.Peer) { p.Ring = false }), "Kill"},
		"a peer sees it up at another address": {
			sighting(func(p *facts.Peer) { p.OfHostID.Address = "10.0.0.9" }), "Kill"},
		"a peer after one that does not know it": {func(f *Facts) {
			p := peer("10.0.0.3", "c", hostC)
			answered(f, hostA, p, sees(true))
		}, ""},
		"nobody can know it, since it has no host id": {func(f *Facts) { f.Memory.Member, f.Disk.HostID = nil, "" },
			"Kill"},
		"no JVM runs": {func(f *Facts) {
			f.Init.Process, f.Memory.Start = nil, nil
			answered(f, hostA, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
		}, "StartJVM"},
		"what is known is of an earlier JVM": {func(f *Facts) { f.JVM.StartID = 2; answered(f, hostA) }, ""},
		"it has answered": {func(f *Facts) {
			f.JVM.AnsweredAt = at(0)
			f.Memory.NormalAt = ptr(0)
			answered(f, hostA)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(with1(frozen(), c.change)); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestHowLongAJVMMayBeSilent(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		started, answered, progress time.Duration // ago; 0 answered: never
		frozen                      bool
	}{
		"three minutes":                         {time.Hour, 3 * minute, 3 * minute, true},
		"a little less without an answer":       {time.Hour, 3*minute - 1, 4 * minute, false},
		"a little less without processor time":  {time.Hour, 4 * minute, 3*minute - 1, false},
		"five minutes from its start":           {5 * minute, 0, 4 * minute, true},
		"a little less from its start":          {5*minute - 1, 0, 4 * minute, false},
		"five minutes from its start, and busy": {5 * minute, 0, 2 * minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := frozen()
			f.Seeds, f.Memory.Neighbours = nil, nil
			keep(&f)
			f.Init.Process.StartedAt, f.JVM.ProgressAt, f.JVM.AnsweredAt = at(-c.started), at(-c.progress), time.Time{}
			if c.answered > 0 {
				f.JVM.AnsweredAt = at(-c.answered)
			}
			if got := next(f) == "Kill"; got != c.frozen {
				t.Errorf("killed: %v, want %v", got, c.frozen)
			}
		})
	}
}

func TestWhenANodeBecomesAMember(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
	}{
		"NORMAL with the tokens of its ticket": {joined(), "FinishJoin"},
		"its tokens in another order": {with1(joined(),
			func(f *Facts) { f.JVM.Ring.Endpoints[0].Tokens = []int64{5, -5} }), "FinishJoin"},
		"not in its own view yet": {with1(joined(),
			func(f *Facts) { f.JVM.Ring.Endpoints = f.JVM.Ring.Endpoints[1:] }), "NoteNormal"},
		"in its own view without tokens": {with1(joined(),
			func(f *Facts) { f.JVM.Ring.Endpoints[0].Tokens = nil }), "NoteNormal"},
		"without a ticket": {with1(joined(), func(f *Facts) { f.Memory.Join = nil }),
			"FinishJoin"},
		"by a ticket that leaves the tokens open": {with1(joined(), func(f *Facts) { f.Memory.Join.Tokens = nil }),
			"FinishJoin"},
		"with other tokens than those of a ticket that is over": {
			with1(joined(), func(f *Facts) {
				f.Memory.Join.FinishedAt, f.JVM.Ring.Endpoints[0].Tokens = ptr(-time.Hour), []int64{8}
			}), "FinishJoin",
		},
		"again, by a ticket of its own": {with1(joined(),
			func(f *Facts) { f.Memory.Member = &Member{HostID: hostA} }), "FinishJoin"},
		"once": {with1(serving(), func(f *Facts) { f.Memory.Join = nil }), ""},
		"not while it is silent": {with1(joined(),
			func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), ""},
		"not while it joins": {onItsWay(facts.ModeJoining), ""},
		"never again once it has left": {with1(serving(),
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeDecommissioned }), "NoteLeft"},
		"never again once it is noted that it has": {with1(serving(),
			func(f *Facts) { f.JVM.Ring.Mode, f.Memory.LeftAt = facts.ModeDecommissioned, ptr(0) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.facts); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhenItIsNotedThatANodeIsNormal(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   ActionKind
	}{
		"noted a moment ago": {nil, ""},
		"noted five minutes ago": {func(f *Facts) { f.Memory.NormalAt = ptr(-5 * time.Minute) },
			"NoteNormal"},
		"noted a little later":    {func(f *Facts) { f.Memory.NormalAt = ptr(1 - 5*time.Minute) }, ""},
		"noted in the future":     {func(f *Facts) { f.Memory.NormalAt = ptr(time.Second) }, "NoteNormal"},
		"never noted":             {func(f *Facts) { f.Memory.NormalAt = nil }, "NoteNormal"},
		"never noted of this JVM": {func(f *Facts) { f.Memory.Start.NormalAt = nil }, "NoteNormal"},
		"not NORMAL": {func(f *Facts) {
			f.Memory.NormalAt, f.JVM.Ring.Mode = nil, facts.ModeLeaving
		}, ""},
		"a JVM the journal knows not": {func(f *Facts) { f.Memory.NormalAt, f.Memory.Start = nil, nil }, ""},
		"a silent JVM": {func(f *Facts) {
			f.Memory.NormalAt, f.JVM.AskedAt, f.JVM.AnsweredAt = nil, at(0), at(-time.Minute)
		}, ""},
		"neighbours without those that left": {func(f *Facts) {
			f.JVM.Ring.Endpoints = append(f.JVM.Ring.Endpoints, gone(facts.StatusLeft))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(with1(serving(), c.change)); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestThirtyTwoNeighboursAreKept(t *testing.T) {
	ring := &facts.Ring{HostID: hostA}
	var want []string
	for i := range 40 {
		a := "10.0.1." + strconv.Itoa(100+i)
		ring.Endpoints = append(ring.Endpoints, endpoint(a, a, "r1", true, int64(i)))
		if i < 32 {
			want = append(want, a)
		}
	}
	slices.Reverse(ring.Endpoints)
	if got := neighbours(ring); !slices.Equal(got, want) {
		t.Errorf("neighbours %v", got)
	}
}

func TestWhatARunningJVMTakesOver(t *testing.T) {
	seeds := func(f *Facts) { f.Seeds = []string{"10.0.0.2", address, "10.0.0.3"}; keep(f) }
	starts := func(with ...string) Facts {
		return with1(serving(), func(f *Facts) {
			seeds(f)
			f.JVM.Ring.Mode, f.Memory.Start.Seeds = facts.ModeStarting, with
		})
	}
	hot := func(f *Facts) { f.Configuration.Hot = []string{"a", "b"} }
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
	}{
		"other seeds":     {with1(serving(), seeds), "SetSeeds"},
		"no seeds at all": {with1(serving(), func(f *Facts) { f.Seeds = nil; keep(f) }), ""},
		"the same seeds in another order": {with1(serving(),
			func(f *Facts) { seeds(f); f.Memory.Start.Seeds = []string{"10.0.0.3", "10.0.0.2", address} }), ""},
		"other seeds while it starts, all": {starts("10.0.0.8", "10.0.0.9"), "SetSeeds"},
		"all but itself":                   {starts(address, "10.0.0.9"), "SetSeeds"},
		"all but one":                      {starts("10.0.0.2", "10.0.0.9"), ""},
		"it started as the only one":       {starts(address), "SetSeeds"},
		"the others did not answer": {with1(starts(address),
			func(f *Facts) { f.Peers.Silent = []string{"10.0.0.2", "10.0.0.3"} }), ""},
		"it still is the only one": {with1(starts("10.0.0.9"),
			func(f *Facts) { f.Seeds = []string{address}; keep(f) }), ""},
		"it joins": {with1(starts("10.0.0.9"), func(f *Facts) { f.Memory.Member = nil }),
			""},
		"it streams": {with1(starts("10.0.0.9"),
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeJoining }), ""},
		"other seeds while it is silent": {with1(serving(),
			func(f *Facts) { seeds(f); f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), ""},
		"other seeds of a JVM nobody wrote down": {with1(serving(), func(f *Facts) { seeds(f); f.Memory.Start = nil }),
			""},
		"hot settings": {with1(serving(), hot), "ApplySettings"},
		"hot settings while it starts": {with1(serving(),
			func(f *Facts) { hot(f); f.JVM.Ring.Mode = facts.ModeStarting }), ""},
		"hot settings while it is silent": {with1(serving(),
			func(f *Facts) { hot(f); f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), ""},
		"hot settings beside one that is refused": {with1(serving(),
			func(f *Facts) { hot(f); f.Configuration.Problem = "no heap" }), ""},
		"hot settings beside others": {with1(serving(),
			func(f *Facts) { hot(f); f.Configuration.RestartNeeded = true }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.facts); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
	if a := as[SetSeeds](Next(with1(serving(), seeds), epoch).Action); !slices.Equal(a.Seeds,
		[]string{address, "10.0.0.2", "10.0.0.3"}) {
		t.Errorf("seeds %v", a.Seeds)
	}
	some := with1(starts("10.0.0.9"), func(f *Facts) { f.Peers.Silent = []string{"10.0.0.3"} })
	if a := as[SetSeeds](Next(some, epoch).Action); !slices.Equal(a.Seeds, []string{address, "10.0.0.2"}) {
		t.Errorf("while it starts: seeds %v", a.Seeds)
	}
	if a := as[ApplySettings](Next(with1(serving(), hot), epoch).Action); !slices.Equal(a.Settings,
		[]string{"a", "b"}) || !strings.HasSuffix(a.Because(), "a, b") {
		t.Errorf("settings %v, %s", a.Settings, a.Why)
	}
}

func TestWhenClientsAreLetIn(t *testing.T) {
	traffic := func(wanted v1alpha1.ClientTraffic, running bool) Facts {
		return with1(serving(), func(f *Facts) {
			f.Record.Spec.ClientTraffic, f.JVM.Ring.NativeRunning = wanted, running
			seesAll(f)
		})
	}
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
	}{
		"open, as wanted":                    {traffic(v1alpha1.TrafficOpen, true), ""},
		"closed, as wanted":                  {traffic(v1alpha1.TrafficClosed, false), ""},
		"to be opened":                       {traffic(v1alpha1.TrafficOpen, false), "OpenTraffic"},
		"to be opened for administration":    {traffic(v1alpha1.TrafficAdministrative, false), "OpenTraffic"},
		"open for administration, as wanted": {traffic(v1alpha1.TrafficAdministrative, true), ""},
		"to be closed":                       {traffic(v1alpha1.TrafficClosed, true), "CloseTraffic"},
		"not to be closed by a record that was recreated and does not know the member": {
			with1(traffic(v1alpha1.TrafficClosed, true), func(f *Facts) { f.Record.Spec.Member = nil }), ""},
		"to be closed where clients have never been let in": {
			with1(traffic(v1alpha1.TrafficClosed, true),
				func(f *Facts) { f.Record.Spec.Member, f.Memory.TrafficOpenedAt = nil, nil }), "CloseTraffic"},
		"to be closed, wherever it is": {with1(traffic(v1alpha1.TrafficClosed, true),
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeJoining }), "CloseTraffic"},
		"not before it is NORMAL": {with1(traffic(v1alpha1.TrafficOpen, false),
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeJoining }), ""},
		"not before it is a member": {with1(traffic(v1alpha1.TrafficOpen, false),
			func(f *Facts) { f.Memory.Member = nil; f.JVM.Ring.Endpoints[0].Tokens = nil }), ""},
		"not while it is silent": {with1(traffic(v1alpha1.TrafficOpen, false),
			func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), ""},
		"not when it is to leave": {with1(traffic(v1alpha1.TrafficOpen, false),
			func(f *Facts) { f.Record.Spec.State = v1alpha1.StateDecommissioned }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.facts); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhenAnOperationRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   ActionKind
	}{
		"on a NORMAL member": {nil, "RunOperation"},
		"after another one": {func(f *Facts) {
			f.Memory.Operations = []OperationMemory{{ID: "op-0", Phase: v1alpha1.OperationSucceeded}}
		}, "RunOperation"},
		"once": {func(f *Facts) {
			f.Memory.Operations = []OperationMemory{{ID: "op-1", Phase: v1alpha1.OperationFailed}}
		}, ""},
		"not while CQL is closed": {func(f *Facts) {
			f.JVM.Ring.NativeRunning, f.Record.Spec.ClientTraffic = false, v1alpha1.TrafficClosed
		}, ""},
		"not while it leaves":    {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeLeaving }, ""},
		"not while it is silent": {func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }, ""},
		"not while no JVM runs": {func(f *Facts) {
			f.Init.Process, f.Memory.Start = nil, nil
			answered(f, hostA, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
		}, "StartJVM"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serving()
			wantsOperation(&f)
			if got := next(with1(f, c.change)); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestIntentsAreWithdrawnBeforeTheyBegin(t *testing.T) {
	late := v1alpha1.Intent{ID: "i-1", NotAfter: metaTime(-time.Second)}
	ticket := func(f *Facts) { f.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: late, Mode: v1alpha1.JoinNew} }
	ask := func(f *Facts) {
		f.Record.Spec.Restart = &v1alpha1.RestartIntent{Intent: late}
	}
	alter := func(f *Facts) {
		f.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: late,
			Type: v1alpha1.OperationAlterSystemKeyspaces}}
	}
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
	}{
		"a ticket": {with1(fresh(), ticket), "WithdrawJoin"},
		"a ticket, before the disk is known": {with1(fresh(), func(f *Facts) { ticket(f); f.Disk = Disk{} }),
			"InspectDisk"},
		"a ticket after another": {with1(serving(), ticket), "WithdrawJoin"},
		"a restart":              {with1(serving(), ask), "WithdrawRestart"},
		"a restart after another": {with1(serving(), func(f *Facts) {
			ask(f)
			f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "i-0", FinishedAt: ptr(0)}}
		}), "WithdrawRestart"},
		"no restart that was begun": {with1(serving(), func(f *Facts) {
			ask(f)
			f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "i-1", FinishedAt: ptr(0)}}
		}), ""},
		"a restart, by a journal, before the disk is known": {with1(member(),
			func(f *Facts) { ask(f); f.Disk = Disk{} }), "WithdrawRestart"},
		"an operation": {with1(serving(), alter), "WithdrawOperation"},
		"an operation after another": {with1(serving(), func(f *Facts) {
			alter(f)
			f.Memory.Operations = []OperationMemory{{ID: "i-0", Phase: v1alpha1.OperationFailed}}
		}), "WithdrawOperation"},
		"no operation that was begun": {with1(serving(), func(f *Facts) {
			alter(f)
			f.Memory.Operations = []OperationMemory{{ID: "i-1", Phase: v1alpha1.OperationFailed}}
		}), ""},
		"a restart of a JVM that runs without a journal": {with1(serving(),
			func(f *Facts) { f.Disk, f.Memory = Disk{}, Memory{}; ask(f) }), "WithdrawRestart"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.facts); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhenARestartGoesOn(t *testing.T) {
	begun := func(incarnation string, startID uint64) func(*Facts) {
		return func(f *Facts) {
			f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "restart-1", BegunAt: ptr(-time.Minute)},
				Incarnation: incarnation, StartID: startID}
		}
	}
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
	}{
		"the JVM that is to end runs":        {with1(serving(), begun("i1", 3)), "BeginStop"},
		"another one is NORMAL":              {with1(serving(), begun("i1", 2)), "FinishRestart"},
		"one in another container is NORMAL": {with1(serving(), begun("i0", 3)), "FinishRestart"},
		"another one starts": {with1(serving(),
			func(f *Facts) { begun("i1", 2)(f); f.JVM.Ring.Mode = facts.ModeStarting }), ""},
		"another one does not answer": {with1(serving(),
			func(f *Facts) { begun("i1", 2)(f); f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), ""},
		"none runs":                             {with1(member(), begun("i1", 3)), "StartJVM"},
		"none ran when it began, one is NORMAL": {with1(serving(), begun("", 0)), "FinishRestart"},
		"none runs when it is asked for":        {with1(member(), restart), "BeginRestart"},
		"another one was done before": {with1(serving(), func(f *Facts) {
			begun("i1", 2)(f)
			f.Memory.Restart.ID, f.Memory.Restart.FinishedAt = "restart-0", ptr(0)
			restart(f)
		}), "BeginRestart"},
		"it was done": {with1(serving(), func(f *Facts) {
			begun("i1", 3)(f)
			f.Memory.Restart.FinishedAt = ptr(0)
			restart(f)
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.facts); got != c.want {
				t.Errorf("action %q, want %q", got, c.want)
			}
		})
	}
}

func TestHowOftenTheJVMIsAsked(t *testing.T) {
	const often, seldom = 500 * time.Millisecond, 5 * time.Second
	for name, c := range map[string]struct {
		facts Facts
		want  time.Duration
	}{
		"never, if none runs":     {member(), 0},
		"seldom, while it serves": {serving(), seldom},
		"seldom, while it is administered": {with1(serving(),
			func(f *Facts) { f.Record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative }), seldom},
		"often, while the ring forms": {with1(serving(),
			func(f *Facts) { f.Record.Spec.ClientTraffic, f.JVM.Ring.NativeRunning = v1alpha1.TrafficClosed, false }),
			often},
		"often, while CQL cannot be closed": {with1(serving(), func(f *Facts) {
			f.Record.Spec.ClientTraffic = v1alpha1.TrafficClosed
			f.Failures = map[ActionKind]Failure{"CloseTraffic": {Message: "no", Until: at(time.Second)}}
		}), often},
		"often, while CQL cannot be opened": {with1(serving(), func(f *Facts) {
			f.JVM.Ring.NativeRunning = false
			seesAll(f)
			f.Failures = map[ActionKind]Failure{"OpenTraffic": {Message: "not yet", Until: at(time.Second),
				NotYet: true}}
		}), often},
		"often, while it starts": {with1(serving(),
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeStarting }), often},
		"often, while it is silent": {with1(serving(),
			func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), often},
		"often, while an action is to come": {with1(serving(), func(f *Facts) { f.Memory.NormalAt = nil }), often},
		"often, while an action is under way": {with1(serving(),
			func(f *Facts) { f.Doing = &Doing{Action: SetSeeds{}} }), often},
		"often, while something holds it back": {with1(serving(), func(f *Facts) {
			wantsOperation(f)
			f.Record.Spec.Operations[0].Type = "Dance"
		}), often},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Next(c.facts, epoch); d.Poll != c.want {
				t.Errorf("every %s, want %s; %v", d.Poll, c.want, d.Steps[len(d.Steps)-1])
			}
		})
	}
}

// A JVM that somebody has drained by hand is restarted, once.
func TestADrainedJVMIsRestartedOnce(t *testing.T) {
	drained := func(f *Facts) { f.JVM.Ring.Mode, f.JVM.Ring.NativeRunning = facts.ModeDrained, false }
	before := func(ago, stable time.Duration) func(*Facts) {
		return func(f *Facts) {
			drained(f)
			f.Memory.Start.NormalAt, f.Memory.NormalAt = ptr(-stable-time.Hour), ptr(-time.Hour)
			f.Memory.Deaths = &Deaths{PodUID: f.Self.PodUID, Count: 1, Row: 1, LastAt: at(-ago),
				LastReason: v1alpha1.RestartDrained}
		}
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   ActionKind
		guard  v1alpha1.Reason
	}{
		"drained":             {drained, "BeginStop", ""},
		"it drains":           {func(f *Facts) { drained(f); f.JVM.Ring.Mode = facts.ModeDraining }, "", ""},
		"again, soon":         {before(time.Minute, 50*time.Second), "", v1alpha1.BlockedDrainedAgain},
		"again, another time": {before(time.Hour, 59*time.Minute), "BeginStop", ""},
		"again, and a restart is asked for": {func(f *Facts) {
			before(time.Minute, 50*time.Second)(f)
			restart(f)
		}, "BeginRestart", ""},
	} {
		d := Next(with1(serving(), c.change), epoch)
		guard := v1alpha1.Reason("")
		if d.Status.Blocked != nil {
			guard = d.Status.Blocked.Reason
		}
		if KindOf(d.Action) != c.want || guard != c.guard {
			t.Errorf("%s: action %v, blocked %+v", name, d.Action, d.Status.Blocked)
		}
		if a := as[BeginStop](d.Action); c.want == "BeginStop" && a.Reason != v1alpha1.RestartDrained {
			t.Errorf("%s: action %+v", name, a)
		}
	}
}
