package step

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// quietEvery is how often a running step is mentioned where the output is not
// a terminal, so that the log of a long build shows it is alive.
const quietEvery = 30 * time.Second

// Reporter runs steps one after another and prints them.
type Reporter struct {
	out      io.Writer
	terminal bool
}

// New returns a Reporter that writes to out. On a terminal a running step
// redraws its line; elsewhere it prints a line every half minute.
func New(out io.Writer) *Reporter {
	r := &Reporter{out: out}
	if f, ok := out.(*os.File); ok {
		_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		r.terminal = err == nil
	}
	return r
}

// Progress lets a running step say how far it is.
type Progress struct {
	mu   sync.Mutex
	note string
}

// Note replaces the detail shown behind the step's name.
func (p *Progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = fmt.Sprintf(format, args...)
}

func (p *Progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.note
}

// Run runs do as one step. The step's last note and its duration are printed
// when it ends; its error is returned wrapped with the step's name.
func (r *Reporter) Run(ctx context.Context, name string, do func(context.Context, *Progress) error) error {
	start := time.Now()
	progress := &Progress{}
	done := make(chan error, 1)
	go func() { done <- do(ctx, progress) }()

	every := quietEvery
	if r.terminal {
		every = 200 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			mark := "✓"
			if err != nil {
				mark = "✗"
			}
			r.line(mark, name, progress.text(), time.Since(start), true)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		case <-tick.C:
			r.line("…", name, progress.text(), time.Since(start), !r.terminal)
		}
	}
}

// Say prints one line that is not a step.
func (r *Reporter) Say(format string, args ...any) {
	fmt.Fprintf(r.out, format+"\n", args...)
}

func (r *Reporter) line(mark, name, note string, took time.Duration, last bool) {
	start, end := "", ""
	if r.terminal {
		start = "\r\x1b[K"
	}
	if last {
		end = "\n"
	}
	if note != "" {
		note = " (" + note + ")"
	}
	fmt.Fprintf(r.out, "%s%s %s%s %.1fs%s", start, mark, name, note, took.Seconds(), end)
}
