package threads

import (
	"context"
	"sync"
	"time"
)

// Threads runs and waits. Code that uses it holds no lock while it waits.
type Threads interface {
	// Now is the time.
	Now() time.Time
	// Go runs something beside the caller.
	Go(f func())
	// Together runs all of the functions at once, at most limit of them at the same time (0: no
	// limit), and returns when all have ended.
	Together(limit int, all ...func())
	// Wait returns when the signal is set, which takes it, when d has passed, or when ctx ends. A
	// negative d never passes; the signal may be nil.
	Wait(ctx context.Context, d time.Duration, s *Signal)
	// WithTimeout is a context that ends after d; a negative d never passes.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Forever is a wait without an end of its own.
const Forever time.Duration = -1

// Signal remembers that something happened, once, however often it was set.
type Signal struct {
	c      chan struct{}
	waiter func()
}

// NewSignal makes a signal that is not set.
func NewSignal() *Signal { return &Signal{c: make(chan struct{}, 1)} }

// Set sets it and wakes who waits for it.
func (s *Signal) Set() {
	select {
	case s.c <- struct{}{}:
		if s.waiter != nil {
			s.waiter()
		}
	default:
	}
}

// Take says whether it was set, and unsets it.
func (s *Signal) Take() bool {
	select {
	case <-s.c:
		return true
	default:
		return false
	}
}

// OnSet has a function called whenever the signal becomes set; nil for none. It is for a
// simulation, where one thing happens at a time.
func (s *Signal) OnSet(f func()) { s.waiter = f }

// Goroutines are the threads of a real process.
type Goroutines struct{}

var _ Threads = Goroutines{}

// Now is the time of the host, without what is done to its clock while the process runs: see
// Steady.
func (Goroutines) Now() time.Time { return steady() }

var steady = Steady()

// Steady is a clock that starts with the time of day and then goes by what has passed: it is not
// moved when somebody sets the host's clock. What it says can be compared with times that were
// written down, by this process or by an earlier one on another host, as far as their clocks agree.
func Steady() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

// Go starts a goroutine.
func (Goroutines) Go(f func()) { go f() }

// Together starts goroutines and waits for them.
func (Goroutines) Together(limit int, all ...func()) {
	if limit <= 0 {
		limit = max(len(all), 1)
	}
	slots := make(chan struct{}, limit)
	var group sync.WaitGroup
	for _, f := range all {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f()
		})
	}
	group.Wait()
}

// Wait blocks the goroutine.
func (Goroutines) Wait(ctx context.Context, d time.Duration, s *Signal) {
	var set <-chan struct{}
	if s != nil {
		set = s.c
	}
	var passed <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-set:
	case <-passed:
	case <-ctx.Done():
	}
}

// WithTimeout is that of package context.
func (Goroutines) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
