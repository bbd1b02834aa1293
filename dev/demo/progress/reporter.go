package progress

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// redrawEvery is how often a running step is drawn again on a terminal.
	redrawEvery = 200 * time.Millisecond
	// aliveEvery is how often it is mentioned elsewhere, so that the log of a long step shows that
	// it is alive.
	aliveEvery = 30 * time.Second
)

// Reporter runs steps one after another and shows them.
type Reporter struct {
	out io.Writer
	// width of the terminal; nil if out is none.
	width func() int
	now   func() time.Time
	start time.Time
}

// New returns a Reporter that writes to out. On a terminal a running step is drawn in place;
// elsewhere what changes gets a line of its own.
func New(out io.Writer) *Reporter {
	r := &Reporter{out: out, now: time.Now, start: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		r.width = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil {
				return width
			}
			return 80
		}
	}
	return r
}

// Say prints text between steps.
func (r *Reporter) Say(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format+"\n", args...) }

// Elapsed is the time since the reporter was made.
func (r *Reporter) Elapsed() time.Duration { return r.now().Sub(r.start) }

// Step is a step that runs.
type Step struct {
	reporter *Reporter
	name     string
	start    time.Time

	mutex sync.Mutex
	note  string
	parts []string
	// drawn is the number of lines that stand on the terminal.
	drawn int
}

// Note says in a few words how far the step is. The last note stays beside the step when it is
// done.
func (s *Step) Note(format string, args ...any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.note = fmt.Sprintf(format, args...)
}

// Parts says what the parts of the step are doing, a line for each.
func (s *Step) Parts(lines []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.parts
	s.parts = slices.Clone(lines)
	if s.reporter.width != nil {
		return // drawn by the next tick
	}
	for _, line := range lines {
		if !slices.Contains(before, line) {
			_, _ = fmt.Fprintf(s.reporter.out, "  %6.1fs  %s\n", s.took().Seconds(), line)
		}
	}
}

func (s *Step) took() time.Duration { return s.reporter.now().Sub(s.start) }

// Run runs do as one step, and says how long it took. Its error is returned with the name of the
// step.
func (r *Reporter) Run(ctx context.Context, name string, do func(context.Context, *Step) error) error {
	step := &Step{reporter: r, name: name, start: r.now()}
	every := aliveEvery
	if r.width != nil {
		every = redrawEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	done := make(chan error, 1)
	go func() { done <- do(ctx, step) }()
	for {
		select {
		case <-tick.C:
			step.draw("…", false)
		case err := <-done:
			if err != nil {
				step.draw("✗", true)
				return fmt.Errorf("%s: %w", name, err)
			}
			step.draw("✓", true)
			return nil
		}
	}
}

// draw puts the step on the terminal, in the place of what stands there of it; elsewhere it prints
// one line. With the last drawing the parts go.
func (s *Step) draw(mark string, last bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	lines := []string{s.head(mark)}
	if s.reporter.width == nil {
		_, _ = fmt.Fprintln(s.reporter.out, lines[0])
		return
	}
	if !last {
		for _, part := range s.parts {
			lines = append(lines, "    "+part)
		}
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	b.WriteString("\r\x1b[J")
	for _, line := range lines {
		b.WriteString(cut(line, s.reporter.width()-1) + "\n")
	}
	s.drawn = len(lines)
	_, _ = io.WriteString(s.reporter.out, b.String())
}

func (s *Step) head(mark string) string {
	head := mark + " " + s.name
	if s.note != "" {
		head += " (" + s.note + ")"
	}
	return fmt.Sprintf("%s %.1fs", head, s.took().Seconds())
}

// cut keeps a line within a width, so that it never takes two lines of the terminal.
func cut(line string, width int) string {
	runes := []rune(line)
	if width < 1 || len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}
