package node

import (
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

func failing(kind ActionKind, until time.Duration) func(*Facts) {
	return func(f *Facts) { f.Failures = map[ActionKind]Failure{kind: {Message: "no such host", Until: at(until)}} }
}

func TestAnActionThatFailedIsTriedAgainLater(t *testing.T) {
	seeds := func(f *Facts) { f.Seeds = []string{address, "10.0.0.2"}; keep(f) }
	hot := func(f *Facts) { f.Configuration.Hot = []string{"a"} }
	for name, c := range map[string]struct {
		facts  Facts
		kind   ActionKind
		goesOn bool
	}{
		"a start":               {member(), "StartJVM", false},
		"a question":            {neighboured(), "AskPeers", false},
		"seeds":                 {with1(serving(), seeds), "SetSeeds", true},
		"settings":              {with1(serving(), hot), "ApplySettings", true},
		"a line in the journal": {with1(serving(), func(f *Facts) { f.Memory.NormalAt = nil }), "NoteNormal", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := next(c.facts); got != c.kind {
				t.Fatalf("action %q, want %q", got, c.kind)
			}
			for _, after := range []time.Duration{0, -1} {
				if got := next(with1(c.facts, failing(c.kind, after))); got != c.kind {
					t.Errorf("action %q at the end of the pause, want %q", got, c.kind)
				}
			}
			d := Next(with1(c.facts, failing(c.kind, 2*time.Second)), epoch)
			b := d.Status.Blocked
			if d.Action != nil || !d.Again.Equal(at(2*time.Second)) || b == nil || b.Reason != "ActionFailing" ||
				!strings.Contains(b.Message, string(c.kind)) || !strings.Contains(b.Message, "no such host") {
				t.Errorf("in the pause: action %v, again at %s, blocked %+v", d.Action, d.Again, b)
			}
			if failed := d.Status.Phase == v1alpha1.PhaseFailed; failed == c.goesOn {
				t.Errorf("phase %s", d.Status.Phase)
			}
			if last := d.Steps[len(d.Steps)-1].Name; (last == "watch_jvm") != c.goesOn {
				t.Errorf("in the pause the list ends at %s", last)
			}
			// The failure of another action does not count.
			if got := next(with1(c.facts, failing("Drain", time.Minute))); got != c.kind {
				t.Errorf("action %q, want %q", got, c.kind)
			}
		})
	}
}

func TestWhatIsNotReadyYetIsNoFailure(t *testing.T) {
	f := with1(serving(), func(f *Facts) {
		f.JVM.Ring.NativeRunning = false
		seesAll(f)
		f.Failures = map[ActionKind]Failure{"OpenTraffic": {Message: "CQL is not there yet", Until: at(2 * time.Second),
			NotYet: true}}
	})
	d := Next(f, epoch)
	if d.Action != nil || d.Status.Blocked != nil || !d.Again.Equal(at(2*time.Second)) ||
		d.Steps[len(d.Steps)-1].Message != "CQL is not there yet" {
		t.Errorf("action %v, blocked %+v, again at %s", d.Action, d.Status.Blocked, d.Again)
	}
}

// Several things can hold intents back at a time. The first is shown, and the soonest is looked at
// again first.
func TestWhatHoldsIntentsBack(t *testing.T) {
	for name, c := range map[string]struct {
		seeds, settings time.Duration
		want            time.Duration
	}{
		"the first is over first":  {2 * time.Second, 8 * time.Second, 2 * time.Second},
		"the second is over first": {8 * time.Second, 2 * time.Second, 2 * time.Second},
	} {
		f := with1(serving(), func(f *Facts) {
			f.Seeds, f.Configuration.Hot = []string{address, "10.0.0.2"}, []string{"a"}
			keep(f)
			f.Failures = map[ActionKind]Failure{"SetSeeds": {Message: "no", Until: at(c.seeds)},
				"ApplySettings": {Message: "no", Until: at(c.settings)}}
		})
		if d := Next(f, epoch); !d.Again.Equal(at(c.want)) || !strings.HasPrefix(d.Status.Blocked.Message, "SetSeeds") {
			t.Errorf("%s: again at %s, blocked %+v", name, d.Again, d.Status.Blocked)
		}
	}
	// What only an event can end is no reason to look again, nor to forget when to.
	f := with1(serving(), func(f *Facts) {
		wantsOperation(f)
		f.Record.Spec.Operations[0].Type = "Dance"
	})
	if d := Next(f, epoch); !d.Again.IsZero() {
		t.Errorf("again at %s, want never", d.Again)
	}
	f.Configuration.Hot, f.Failures = []string{"a"},
		map[ActionKind]Failure{"ApplySettings": {Message: "no", Until: at(time.Minute)}}
	if d := Next(f, epoch); !d.Again.Equal(at(time.Minute)) || d.Status.Blocked.Reason != "ActionFailing" {
		t.Errorf("again at %s, blocked %+v", d.Again, d.Status.Blocked)
	}
	// A step that waits and something that is held back: the sooner counts.
	for want, until := range map[time.Duration]time.Duration{time.Second: time.Second, 2 * time.Second: time.Minute} {
		f := with1(serving(), func(f *Facts) {
			f.Configuration.Hot, f.JVM.Ring.NativeRunning = []string{"a"}, false
			seesAll(f)
			f.Failures = map[ActionKind]Failure{
				"ApplySettings": {Message: "no", Until: at(until)},
				"OpenTraffic":   {Message: "not yet", Until: at(2 * time.Second), NotYet: true},
			}
		})
		if d := Next(f, epoch); !d.Again.Equal(at(want)) {
			t.Errorf("again at %s, want %s", d.Again, at(want))
		}
	}
}

// What a step waits for may have come and changed nothing. The agent must not turn on the spot.
func TestTheAgentNeverAsksItselfAgainAtOnce(t *testing.T) {
	f := with1(ticketed(), func(f *Facts) {
		f.Seeds = []string{"10.0.0.2"}
		keep(f)
		answered(f, "")
	})
	for after, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 5*time.Second - 1: 5 * time.Second} {
		if d := Next(f, at(after)); d.Action != nil || !d.Again.Equal(at(want)) {
			t.Errorf("after %s: action %v, again at %s", after, d.Action, d.Again)
		}
	}
}

func TestTheKindOfAnAction(t *testing.T) {
	for want, a := range map[ActionKind]Action{"": nil, "StartJVM": StartJVM{},
		"BeginRestart": BeginRestart{ID: "r-1"}} {
		if got := KindOf(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestThePhaseOfTheJVM(t *testing.T) {
	silent := func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }
	mode := func(m facts.Mode) func(*Facts) {
		return func(f *Facts) { f.JVM.Ring.Mode, f.Memory.Start.NormalAt = m, nil }
	}
	for name, c := range map[string]struct {
		facts Facts
		want  jvmPhase
	}{
		"no pod yet":              {fresh(), phaseAbsent},
		"a member that is down":   {member(), phaseAbsent},
		"no container":            {with1(member(), func(f *Facts) { f.Init = Init{} }), phaseAbsent},
		"a join that was cut off": {joining(), phaseAbsent},
		"it comes up":             {with1(serving(), mode(facts.ModeStarting)), phaseStarting},
		"its join has failed":     {with1(serving(), mode(facts.ModeJoiningFailed)), phaseStarting},
		"it never answered": {with1(serving(), func(f *Facts) { f.JVM = JVM{}; f.Memory.Start.NormalAt = nil }),
			phaseStarting},
		"NORMAL, not yet noted": {with1(serving(), mode(facts.ModeNormal)), phaseRunning},
		"it leaves":             {with1(serving(), mode(facts.ModeLeaving)), phaseRunning},
		"drained by somebody":   {with1(serving(), mode(facts.ModeDrained)), phaseRunning},
		"silent since":          {with1(serving(), silent), phaseRunning},
		"its stop began":        {stopping(StopMemory{}), phaseStopping},
		"the container ends": {with1(serving(), func(f *Facts) { f.Init.Stopping = &Stopping{Since: epoch} }),
			phaseStopping},
		"it ends, and none runs": {with1(member(), func(f *Facts) { f.Init.Stopping = &Stopping{Since: epoch} }),
			phaseStopping},
		"the stop of one before": {with1(serving(),
			func(f *Facts) { f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 2} }), phaseRunning},
	} {
		p := pass{Facts: &c.facts, now: epoch}
		if got := p.jvmPhase(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
