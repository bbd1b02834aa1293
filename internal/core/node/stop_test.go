package node

import (
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// The grace period is five minutes: the drain has it but for the last 25 seconds, KILL comes 5
// seconds before its end.
func TestTheOrderOfAStop(t *testing.T) {
	const second = time.Second
	closed := func(f *Facts) { f.JVM.Ring.NativeRunning = false }
	silent := func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }
	mode := func(m facts.Mode) func(*Facts) {
		return func(f *Facts) { closed(f); f.JVM.Ring.Mode = m }
	}
	begun := func(ago time.Duration, s StopMemory, change func(*Facts)) Facts {
		s.BegunAt = at(-ago)
		// The stop goes on by what the journal says; the record asks for it no more.
		return with1(stopping(s), func(f *Facts) {
			f.Record.Spec.State = v1alpha1.StateRunning
			if change != nil {
				change(f)
			}
		})
	}
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
		again time.Duration // of a wait
	}{
		"CQL is open":                       {begun(0, StopMemory{}, nil), "CloseTraffic", 0},
		"CQL is open, and was to be closed": {begun(0, StopMemory{ClosedAt: ptr(0)}, nil), "Drain", 0},
		"CQL is closed":                     {begun(0, StopMemory{}, closed), "Drain", 0},
		"CQL is open, and the JVM silent":   {begun(0, StopMemory{}, silent), "Terminate", 0},
		"CQL is closed, and the JVM silent": {begun(0, StopMemory{ClosedAt: ptr(0)}, silent), "Terminate", 0},
		"drained": {begun(0, StopMemory{ClosedAt: ptr(0), DrainAt: ptr(0)}, closed),
			"Terminate", 0},
		"drained by somebody else": {begun(0, StopMemory{}, mode(facts.ModeDrained)), "Terminate", 0},
		"it starts":                {begun(0, StopMemory{}, mode(facts.ModeStarting)), "Terminate", 0},
		"it leaves":                {begun(0, StopMemory{}, mode(facts.ModeLeaving)), "Drain", 0},
		"it could not leave": {begun(0, StopMemory{}, mode(facts.ModeDecommissionFailed)),
			"Drain", 0},
		"it moves": {begun(0, StopMemory{}, mode(facts.ModeMoving)),
			"Drain", 0},
		"there is time for a drain": {begun(275*second-1, StopMemory{ClosedAt: ptr(0)},
			nil), "Drain", 0},
		"there is none": {begun(275*second, StopMemory{ClosedAt: ptr(0)}, nil),
			"Terminate", 0},
		"TERM was sent": {begun(10*second, StopMemory{TermAt: ptr(-second)},
			nil), "", 285 * second},
		"TERM was sent, and the time is up": {begun(295*second,
			StopMemory{TermAt: ptr(-10 * second)}, nil), "Kill", 0},
		"TERM was sent, and the time is all but up": {begun(295*second-1,
			StopMemory{TermAt: ptr(-10 * second)}, nil), "", 1},
		"TERM was sent at the end of the time": {begun(300*second, StopMemory{TermAt: ptr(-second)},
			nil), "", 4 * second},
		"TERM was sent five seconds ago at the end of the time": {begun(300*second,
			StopMemory{TermAt: ptr(-5 * second)}, nil), "Kill", 0},
		"KILL was sent": {begun(300*second,
			StopMemory{TermAt: ptr(-second), KillAt: ptr(1 - 5*second)}, nil), "", 1},
		"KILL was sent five seconds ago": {begun(300*second, StopMemory{TermAt: ptr(-second), KillAt: ptr(-5 * second)},
			nil), "Kill", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if got := next(c.facts); got != c.want {
				t.Fatalf("action %q, want %q", got, c.want)
			}
			if d.Status.Phase != v1alpha1.PhaseStopping || d.Ready {
				t.Errorf("phase %s, ready %v", d.Status.Phase, d.Ready)
			}
			drain, drains := d.Action.(Drain)
			closing, closes := d.Action.(CloseTraffic)
			if until := later(drain.Deadline, closing.Deadline); (drains || closes) &&
				!until.Equal(c.facts.Memory.Stop.BegunAt.Add(275*second)) {
				t.Errorf("%s until %s", KindOf(d.Action), until)
			}
			if soon := at(max(c.again, 0)); c.want == "" && !d.Again.Equal(soon) {
				t.Errorf("again at %s, want %s", d.Again, soon)
			}
		})
	}
}

func TestTheEndOfTheContainerComesBeforeAllElse(t *testing.T) {
	ends := func(f Facts, s Stopping) Facts {
		f.Init.Stopping = &s
		return f
	}
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
		phase v1alpha1.NodePhase
		hold  bool
	}{
		"the agent stops the JVM": {ends(serving(), Stopping{Since: epoch}), "BeginStop",
			v1alpha1.PhaseNormal, true},
		"the agent was too late": {ends(serving(), Stopping{Since: epoch, Alone: true}), "",
			v1alpha1.PhaseStopping, false},
		"no JVM runs": {ends(member(), Stopping{Since: epoch}), "", v1alpha1.PhaseStopped,
			false},
		"during an action": {ends(with1(serving(), func(f *Facts) { f.Doing = &Doing{} }),
			Stopping{Since: epoch}), "", v1alpha1.PhaseNormal, true},
		"during an action, and it was too late": {ends(with1(serving(), func(f *Facts) { f.Doing = &Doing{} }),
			Stopping{Since: epoch, Alone: true}), "", v1alpha1.PhaseNormal, false},
		"not at all, during an action": {with1(serving(), func(f *Facts) { f.Doing = &Doing{} }), "",
			v1alpha1.PhaseNormal, false},
		"a stop that was begun takes the time of the container": {
			ends(stopping(StopMemory{BegunAt: at(-4 * time.Minute), ClosedAt: ptr(0)}),
				Stopping{Since: at(-274 * time.Second)}), "Drain", v1alpha1.PhaseStopping, true,
		},
		"a stop that was begun, and no time of the container is left": {
			ends(stopping(StopMemory{BegunAt: at(-4 * time.Minute), ClosedAt: ptr(0)}),
				Stopping{Since: at(-276 * time.Second)}), "Terminate", v1alpha1.PhaseStopping, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if next(c.facts) != c.want || d.Status.Phase != c.phase || d.HoldStop != c.hold {
				t.Errorf("action %v, phase %s, lease held: %v; want %q, %s, %v", d.Action, d.Status.Phase, d.HoldStop,
					c.want, c.phase, c.hold)
			}
		})
	}
}

func TestAStopGoesOnOnlyForItsOwnJVM(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"an earlier JVM":           func(f *Facts) { f.Memory.Stop.StartID = 2 },
		"one of another container": func(f *Facts) { f.Memory.Stop.Incarnation = "i0" },
	} {
		f := with1(stopping(StopMemory{ClosedAt: ptr(0)}), change)
		f.Record.Spec.State = v1alpha1.StateRunning
		if d := Next(f, epoch); d.Action != nil || d.Status.Phase != v1alpha1.PhaseNormal || !d.Ready {
			t.Errorf("%s: action %v, phase %s, ready %v", name, d.Action, d.Status.Phase, d.Ready)
		}
	}
}

func TestAJVMThatIsOnItsWayIntoTheRingIsEndedWithItsTicket(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		stops bool
	}{
		"it starts":          {onItsWay(facts.ModeStarting), true},
		"it joins":           {onItsWay(facts.ModeJoining), true},
		"it could not join":  {onItsWay(facts.ModeJoiningFailed), true},
		"it does not answer": {with1(onItsWay(""), func(f *Facts) { f.JVM = JVM{} }), true},
		"it was NORMAL": {with1(onItsWay(facts.ModeJoining),
			func(f *Facts) { f.Memory.Start.NormalAt = ptr(0) }), false},
		"its disk had joined before": {with1(onItsWay(facts.ModeJoining),
			func(f *Facts) { f.Memory.Start.Joined = true }), false},
		"it is a member": {with1(onItsWay(facts.ModeJoining),
			func(f *Facts) { f.Memory.Member = &Member{HostID: hostA} }), false},
		"it is in another mode": {onItsWay(facts.ModeLeaving), false},
		"the journal speaks of another": {with1(onItsWay(facts.ModeJoining),
			func(f *Facts) { f.Memory.Start.StartID, f.Memory.Start.EndedAt = 2, ptr(0) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			back := takenBack(c.facts)
			d := Next(back, epoch)
			if got := next(back) == "BeginStop"; got != c.stops {
				t.Errorf("taken back: action %v, want a stop: %v", d.Action, c.stops)
			}
			if late := d.Status.Join.Message == "the ticket was taken back too late: the node has joined"; late == c.stops {
				t.Errorf("taken back: says %q", d.Status.Join.Message)
			}
			corrected := c.facts
			corrected.Record = c.facts.Record.DeepCopy()
			corrected.Record.Spec.Join.Withdraw = nil
			corrected.Configuration.RestartNeeded = true
			if got := next(corrected) == "BeginStop"; got != c.stops {
				t.Errorf("corrected: action %v, want a stop: %v", Next(corrected, epoch).Action, c.stops)
			}
			corrected.Configuration.Problem = "no heap"
			if got := next(corrected); got == "BeginStop" {
				t.Error("stopped for a configuration that cannot be rendered")
			}
		})
	}
	// What was not begun, or is over, is not taken back by a stop.
	for name, change := range map[string]func(*Facts){
		"another ticket":   func(f *Facts) { f.Memory.Join.ID = "form/0"; f.Memory.Join.WithdrawnAt = ptr(0) },
		"one that is over": func(f *Facts) { f.Memory.Join.FinishedAt = ptr(0) },
		"one not begun":    func(f *Facts) { f.Memory.Join.BegunAt = nil },
		"none":             func(f *Facts) { f.Record.Spec.Join = nil; keep(f) },
		"not taken back":   func(f *Facts) { f.Record.Spec.Join.Withdraw = nil; keep(f) },
	} {
		if got := next(with1(takenBack(onItsWay(facts.ModeJoining)), change)); got == "BeginStop" {
			t.Errorf("%s: stopped", name)
		}
	}
}
