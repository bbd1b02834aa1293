package process

import (
	"context"
	"errors"
	"testing"
	"time"

	"helenus.io/helenus/internal/simulate/timeline"
	"helenus.io/helenus/internal/threads"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAProgramWaitsInVirtualTime(t *testing.T) {
	line := timeline.New(start, 1)
	signal := threads.NewSignal()
	var bySignal, byTime, byContext time.Duration
	Start(line, "program", func(ctx context.Context, p *Process) {
		p.Together(0,
			func() { p.Wait(ctx, time.Hour, signal); bySignal = p.Now().Sub(start) },
			func() { p.Wait(ctx, 2*time.Minute, nil); byTime = p.Now().Sub(start) },
			func() {
				bounded, cancel := p.WithTimeout(ctx, 3*time.Minute)
				defer cancel()
				derived, stop := context.WithCancel(bounded) // what libraries do
				defer stop()
				p.Wait(derived, threads.Forever, nil)
				if !errors.Is(derived.Err(), context.DeadlineExceeded) {
					t.Errorf("context ended by %v", derived.Err())
				}
				byContext = p.Now().Sub(start)
			},
		)
		if p.Now().Sub(start) != 3*time.Minute {
			t.Errorf("together they took %s", p.Now().Sub(start))
		}
	})
	line.After(time.Minute, "set", signal.Set)
	line.RunFor(time.Hour)
	if bySignal != time.Minute || byTime != 2*time.Minute || byContext != 3*time.Minute {
		t.Errorf("signal %s, time %s, context %s", bySignal, byTime, byContext)
	}
}

func TestASignalThatWasSetBeforeIsNotLost(t *testing.T) {
	line := timeline.New(start, 1)
	signal := threads.NewSignal()
	signal.Set()
	ended := false
	Start(line, "program", func(ctx context.Context, p *Process) {
		p.Wait(ctx, threads.Forever, signal)
		ended = true
	})
	line.RunFor(time.Second)
	if !ended {
		t.Error("it waits for a signal that it has")
	}
}

func TestKillingAProgramEndsAllOfIt(t *testing.T) {
	line := timeline.New(start, 1)
	ran, deferred := 0, 0
	part := func(ctx context.Context, p *Process, d time.Duration) func() {
		return func() {
			defer func() { deferred++ }()
			p.Wait(ctx, d, nil)
			ran++
		}
	}
	outside := Start(line, "killed from outside", func(ctx context.Context, p *Process) {
		p.Together(0, part(ctx, p, time.Second), part(ctx, p, time.Hour))
		ran += 100
	})
	Start(line, "kills itself", func(ctx context.Context, p *Process) {
		p.Go(part(ctx, p, time.Hour))
		p.Wait(ctx, time.Second, nil)
		p.Kill()
		ran += 100
	})
	line.After(time.Minute, "kill", outside.Kill)
	line.RunFor(2 * time.Hour)
	if ran != 1 || deferred != 3 || !outside.Dead() {
		t.Errorf("ran %d, deferred %d", ran, deferred)
	}
}
