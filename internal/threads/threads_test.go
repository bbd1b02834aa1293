package threads

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestASignalIsRememberedOnce(t *testing.T) {
	s, told := NewSignal(), 0
	s.OnSet(func() { told++ })
	s.Set()
	s.Set()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	if !s.Take() || s.Take() {
		t.Error("want it set once")
	}
}

func TestWaitEndsByWhicheverComesFirst(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	set := NewSignal()
	set.Set()
	for name, c := range map[string]struct {
		ctx   context.Context
		limit time.Duration
		s     *Signal
		after time.Duration
	}{
		"signal":  {context.Background(), Forever, set, 0},
		"time":    {context.Background(), time.Minute, NewSignal(), time.Minute},
		"context": {cancelled, Forever, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.s
				if s != nil { // a channel belongs to the bubble that made it
					taken := s.Take()
					if s = NewSignal(); taken {
						s.Set()
					}
				}
				began := time.Now()
				Goroutines{}.Wait(c.ctx, c.limit, s)
				if got := time.Since(began); got != c.after {
					t.Errorf("waited %s, want %s", got, c.after)
				}
			})
		})
	}
}

func TestTogetherKeepsTheLimitAndWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, ended atomic.Int32
		f := func() {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			Goroutines{}.Wait(context.Background(), time.Second, nil)
			now.Add(-1)
			ended.Add(1)
		}
		began := time.Now()
		Goroutines{}.Together(2, f, f, f, f, f)
		if ended.Load() != 5 || most.Load() != 2 || time.Since(began) != 3*time.Second {
			t.Errorf("%d ended, at most %d at a time, in %s", ended.Load(), most.Load(), time.Since(began))
		}
	})
}
