package node

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// ended is serving after its JVM has ended a second ago, 49 seconds after it was NORMAL.
func ended(e Exit) Facts {
	f := serving()
	f.Init.Process = nil
	e.StartID, e.EndedAt = 3, at(-time.Second)
	f.Init.Exits = []Exit{{Process: Process{StartID: 2}, EndedAt: at(-time.Hour), Code: 7}, e}
	return f
}

// starting is the same for a JVM that was never NORMAL.
func starting(e Exit) Facts {
	return with1(ended(e), func(f *Facts) { f.Memory.Start.NormalAt = nil })
}

func saying(line string, f Facts) Facts {
	f.JVM.FatalLine = line
	return f
}

func noted(t *testing.T, f Facts) NoteExit {
	t.Helper()
	a := Next(f, epoch).Action
	if KindOf(a) != "NoteExit" {
		t.Fatalf("action %v, want NoteExit", a)
	}
	return as[NoteExit](a)
}

func TestTheEndOfAJVMIsExplained(t *testing.T) {
	const log = "the container's log says why"
	for name, c := range map[string]struct {
		facts  Facts
		reason v1alpha1.RestartReason
		words  []string
	}{
		"killed": {ended(Exit{Signal: "SIGKILL", Code: 137}), v1alpha1.RestartKilled,
			[]string{"killed (SIGKILL)", "too little memory"}},
		"another signal, the first end of the container": {with1(ended(Exit{Signal: "SIGSEGV"}),
			func(f *Facts) { f.Init.Exits = f.Init.Exits[1:] }), v1alpha1.RestartKilled,
			[]string{"ended by SIGSEGV", log}},
		"TERM by a stranger": {ended(Exit{Code: 143}), v1alpha1.RestartKilled,
			[]string{"did not come from Helenus (exit code 143)", log}},
		"TERM by a stranger, in order": {ended(Exit{Code: 0}), v1alpha1.RestartKilled,
			[]string{"did not come from Helenus (exit code 0)"}},
		"crashed": {ended(Exit{Code: 134}), v1alpha1.RestartExited,
			[]string{"crashed (exit code 134)", "hs_err"}},
		"not even run": {starting(Exit{Error: "no such file"}), v1alpha1.RestartStartFailed,
			[]string{"could not be run: no such file"}},
		"disk failure": {ended(Exit{Code: 100}), v1alpha1.RestartDiskFailure,
			[]string{"because of the disk (exit code 100)"}},
		"disk failure at the start": {starting(Exit{Code: 100}), v1alpha1.RestartDiskFailure,
			[]string{"because of the disk"}},
		"code 3 of a NORMAL node": {ended(Exit{Code: 3}), v1alpha1.RestartOutOfMemory,
			[]string{"heap of the JVM was exhausted (exit code 3)"}},
		"code 3 at the start": {starting(Exit{Code: 3}), v1alpha1.RestartStartFailed,
			[]string{"could not join the ring (exit code 3)"}},
		"no memory at the start, by its words": {saying("java.lang.OutOfMemoryError: heap", starting(Exit{Code: 3})),
			v1alpha1.RestartOutOfMemory, []string{"exhausted (exit code 3): java.lang.OutOfMemoryError: heap"}},
		"code 1 at the start": {saying("Unable to bind", starting(Exit{Code: 1})), v1alpha1.RestartStartFailed,
			[]string{"refused its configuration or its disk (exit code 1): Unable to bind"}},
		"code 1 at the start, in Java's words": {
			starting(Exit{Code: 1, Words: "Picked up JAVA_TOOL_OPTIONS: -Dx\nUnrecognized VM option 'UseFoo'\nError: " +
				"Could not create the Java Virtual Machine."}),
			v1alpha1.RestartStartFailed, []string{"(exit code 1): Unrecognized VM option 'UseFoo'"},
		},
		"code 1 at the start, in Java's second line": {
			starting(Exit{Code: 1, Words: "OpenJDK 64-Bit Server VM warning: options may change\nError occurred " +
				"during initialization of VM\nToo small maximum heap"}),
			v1alpha1.RestartStartFailed, []string{"(exit code 1): Error occurred during initialization of VM: Too " +
				"small maximum heap"},
		},
		"Cassandra's words before Java's": {
			saying("Unable to bind", starting(Exit{Code: 1, Words: "something"})), v1alpha1.RestartStartFailed,
			[]string{"(exit code 1): Unable to bind"},
		},
		"code 1 of a NORMAL node": {ended(Exit{Code: 1}), v1alpha1.RestartExited,
			[]string{"ended by itself (exit code 1)", log}},
		"code 127 at the start": {starting(Exit{Code: 127}), v1alpha1.RestartStartFailed,
			[]string{"did not find what it needs (exit code 127)"}},
		"code 127 of a NORMAL node": {ended(Exit{Code: 127}), v1alpha1.RestartExited,
			[]string{"ended by itself (exit code 127)"}},
		"another code at the start": {starting(Exit{Code: 5}), v1alpha1.RestartStartFailed,
			[]string{"before it was in the ring (exit code 5)", log}},
		"another code of a NORMAL node": {ended(Exit{Code: 5}), v1alpha1.RestartExited,
			[]string{"ended by itself (exit code 5)"}},
		"killed because it was frozen": {
			with1(ended(Exit{Signal: "SIGKILL"}), func(f *Facts) {
				f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 3, Why: "no answer for minutes",
					Reason: v1alpha1.RestartFrozen}
			}), v1alpha1.RestartFrozen, []string{"no answer for minutes"},
		},
		"after the stop of an earlier JVM": {
			with1(ended(Exit{Code: 5}), func(f *Facts) {
				f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 2, Why: "restart"}
			}), v1alpha1.RestartExited, nil,
		},
		"after an earlier JVM was killed because it was frozen": {
			with1(ended(Exit{Code: 5}), func(f *Facts) {
				f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 2, Why: "frozen",
					Reason: v1alpha1.RestartFrozen}
			}), v1alpha1.RestartExited, []string{"ended by itself"},
		},
		"after the stop of a JVM in an earlier container": {
			with1(ended(Exit{Code: 5}), func(f *Facts) {
				f.Memory.Stop = &StopMemory{Incarnation: "i0", StartID: 3, Why: "restart"}
			}), v1alpha1.RestartExited, nil,
		},
		"while another JVM runs already": {with1(ended(Exit{Code: 5}),
			func(f *Facts) { f.Init.Process = &Process{StartID: 4} }), v1alpha1.RestartExited, nil},
		"too long ago to be known": {with1(ended(Exit{}), func(f *Facts) { f.Init.Exits = nil }),
			v1alpha1.RestartExited, []string{"how is no longer known"}},
		"with its container": {
			with1(serving(), func(f *Facts) { f.Init = Init{Answers: true, Incarnation: "i2"} }),
			v1alpha1.RestartInitRestarted, []string{"container was started again"},
		},
		"with its container, when it was killed because it was frozen": {
			with1(serving(), func(f *Facts) {
				f.Init = Init{Answers: true, Incarnation: "i2"}
				f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 3, Reason: v1alpha1.RestartFrozen}
			}), v1alpha1.RestartInitRestarted, nil,
		},
		"with its container, after the stop of an earlier JVM": {
			with1(serving(), func(f *Facts) {
				f.Init = Init{Answers: true, Incarnation: "i2"}
				f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 2}
			}), v1alpha1.RestartInitRestarted, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := noted(t, c.facts)
			if a.Death == nil || a.Death.LastReason != c.reason || a.Death.Message != a.Because() {
				t.Fatalf("death %+v, want %s", a.Death, c.reason)
			}
			for _, word := range c.words {
				if !strings.Contains(a.Because(), word) {
					t.Errorf("says %q, want %q in it", a.Because(), word)
				}
			}
		})
	}
}

func TestAnEndThatWasAskedForIsNoDeath(t *testing.T) {
	lost := Init{Answers: true, Incarnation: "i2"}
	for name, c := range map[string]struct {
		facts Facts
		words string
		ended time.Time
	}{
		"stopped": {
			with1(ended(Exit{Code: 143}), func(f *Facts) {
				f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 3, Why: "restart r-1"}
			}), "stopped: restart r-1", at(-time.Second),
		},
		"with its container": {with1(ended(Exit{Code: 143}), func(f *Facts) { f.Init.Stopping = &Stopping{} }),
			"ended with its container", at(-time.Second)},
		"never asked of init": {
			with1(ended(Exit{}), func(f *Facts) { f.Init.Exits, f.Init.LastStartID = nil, 2 }), "never reached init",
			at(-time.Minute),
		},
		"another pod": {with1(serving(),
			func(f *Facts) { f.Init, f.Self.PodUID = lost, "pod-2" }), "container of the last JVM is gone", epoch},
		"stopped, and its container gone since": {with1(stopping(StopMemory{}), func(f *Facts) { f.Init = lost }),
			"container of the last JVM is gone", epoch},
	} {
		t.Run(name, func(t *testing.T) {
			a := noted(t, c.facts)
			if a.Death != nil || !strings.Contains(a.Because(), c.words) || !a.EndedAt.Equal(c.ended) {
				t.Errorf("action %+v, want no death, %q at %s", a, c.words, c.ended)
			}
			m := Before(&c.facts, a, epoch)
			if m.Start.EndedAt == nil || !m.Start.EndedAt.Equal(c.ended) || m.Deaths != nil {
				t.Errorf("the journal says ended at %v, deaths %v", m.Start.EndedAt, m.Deaths)
			}
		})
	}
}

func TestNoEndIsNotedThatIsNotKnown(t *testing.T) {
	for name, f := range map[string]Facts{
		"while init is silent":     with1(ended(Exit{}), func(f *Facts) { f.Init.Answers = false }),
		"when it was noted":        with1(ended(Exit{}), func(f *Facts) { f.Memory.Start.EndedAt = ptr(0) }),
		"when none ever ran":       with1(ended(Exit{}), func(f *Facts) { f.Memory.Start = nil }),
		"while the JVM still runs": serving(),
	} {
		if a := Next(f, epoch).Action; a != nil && KindOf(a) == "NoteExit" {
			t.Errorf("%s: action %s", name, a)
		}
	}
}

func TestDeathsInARowAreFollowedByLongerPauses(t *testing.T) {
	before := func(pod types.UID, row int) func(*Facts) {
		return func(f *Facts) { f.Memory.Deaths = &Deaths{PodUID: pod, Count: 4, Row: row} }
	}
	stable := func(f *Facts) { f.Memory.Deaths.Row = 3; f.Memory.Start.NormalAt = ptr(-time.Second - 10*time.Minute) }
	for name, c := range map[string]struct {
		facts Facts
		count int32
		row   int
		pause time.Duration
	}{
		"the first":                 {ended(Exit{Code: 5}), 1, 1, 0},
		"the second":                {with1(ended(Exit{Code: 5}), before("pod-1", 1)), 5, 2, 4 * time.Second},
		"the third":                 {with1(ended(Exit{Code: 5}), before("pod-1", 2)), 5, 3, 8 * time.Second},
		"the longest pause but one": {with1(ended(Exit{Code: 5}), before("pod-1", 7)), 5, 8, 256 * time.Second},
		"the longest pause":         {with1(ended(Exit{Code: 5}), before("pod-1", 8)), 5, 9, 5 * time.Minute},
		"far out": {with1(ended(Exit{Code: 5}), before("pod-1", 1000)), 5, 1001,
			5 * time.Minute},
		"the first of another pod": {with1(ended(Exit{Code: 5}), before("pod-0", 2)), 1, 3, 8 * time.Second},
		"after a long time in the ring": {with1(with1(ended(Exit{Code: 5}), before("pod-1", 3)), stable), 5, 1,
			0},
		"after not quite so long a time": {with1(with1(ended(Exit{Code: 5}), before("pod-1", 3)),
			func(f *Facts) { stable(f); f.Memory.Start.NormalAt = ptr(-10 * time.Minute) }), 5, 4, 16 * time.Second},
		"after a long time out of the ring": {with1(with1(starting(Exit{Code: 5}), before("pod-1", 3)),
			func(f *Facts) { f.Memory.Start.At = at(-time.Hour) }), 5, 4, 16 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := noted(t, c.facts).Death
			if d.Count != c.count || d.Row != c.row || d.PodUID != c.facts.Self.PodUID ||
				!d.LastAt.Equal(at(-time.Second)) || !d.BackOffUntil.Equal(at(-time.Second).Add(c.pause)) {
				t.Errorf("death %+v, want the %d. of the pod, %d. in a row, and a pause of %s", d, c.count, c.row,
					c.pause)
			}
			if m := Before(&c.facts, noted(t, c.facts), epoch); m.Deaths == nil || *m.Deaths != *d {
				t.Errorf("the journal says %+v", m.Deaths)
			}
		})
	}
}
