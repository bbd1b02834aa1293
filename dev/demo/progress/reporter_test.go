package progress

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// clock goes on by a second at each look.
func clock() func() time.Time {
	at := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}

func TestElsewhereThanOnATerminalEachChangeIsALine(t *testing.T) {
	var out strings.Builder
	r := &Reporter{out: &out, now: clock()}
	err := r.Run(context.Background(), "cluster demo", func(_ context.Context, s *Step) error {
		s.Parts([]string{"a Starting", "b Starting"})
		s.Parts([]string{"a Starting", "b Joining"})
		s.Note("%d nodes", 2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "     1.0s  a Starting\n     2.0s  b Starting\n     3.0s  b Joining\n✓ cluster demo (2 nodes) 4.0s\n"
	for _, line := range strings.SplitAfter(want, "\n") {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
	if got := strings.Count(out.String(), "a Starting"); got != 1 {
		t.Errorf("a part that did not change has %d lines", got)
	}
}

func TestOnATerminalAStepIsDrawnInPlace(t *testing.T) {
	var out strings.Builder
	r := &Reporter{out: &out, now: clock(), width: func() int { return 21 }}
	s := &Step{reporter: r, name: "cluster demo", start: r.now()}
	s.Parts([]string{"one-dc1-r1-0 Starting the JVM", "two"})
	if out.Len() > 0 {
		t.Errorf("parts were printed at once: %q", out.String())
	}
	s.draw("…", false)
	first := "\r\x1b[J… cluster demo 1.0s\n    one-dc1-r1-0 St…\n    two\n"
	if out.String() != first {
		t.Errorf("got  %q\nwant %q", out.String(), first)
	}
	out.Reset()
	s.draw("✓", true)
	if want := "\x1b[3A\r\x1b[J✓ cluster demo 2.0s\n"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestAFailedStepNamesItself(t *testing.T) {
	var out strings.Builder
	broken := errors.New("broken")
	err := (&Reporter{out: &out, now: clock()}).Run(context.Background(), "images",
		func(context.Context, *Step) error { return broken })
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "images: ") ||
		!strings.HasPrefix(out.String(), "✗ images") {
		t.Errorf("error %v, output %q", err, out.String())
	}
}
