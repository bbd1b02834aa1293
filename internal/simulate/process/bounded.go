package process

import (
	"context"
	"time"

	"helenus.io/helenus/internal/simulate/timeline"
)

// bounded is a context whose end is an event of a timeline. The standard library propagates it to
// the contexts it makes by AfterFunc, without a goroutine.
type bounded struct {
	parent context.Context
	line   *timeline.Timeline
	done   chan struct{}
	err    error
	event  *timeline.Event
	leave  func() bool
	ended  map[int]func()
	order  int
}

// key finds the nearest bounded context.
type key struct{}

func newBounded(parent context.Context, line *timeline.Timeline, d time.Duration) *bounded {
	c := &bounded{parent: parent, line: line, done: make(chan struct{}), ended: map[int]func(){}}
	if above, ok := parent.Value(key{}).(*bounded); ok {
		c.leave = above.AfterFunc(func() { c.end(above.err) })
	}
	if d >= 0 && c.err == nil {
		c.event = line.After(d, "deadline", func() { c.end(context.DeadlineExceeded) })
	}
	return c
}

// end ends the context once.
func (c *bounded) end(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	c.line.Cancel(c.event)
	if c.leave != nil {
		c.leave()
	}
	for i := range c.order {
		if f := c.ended[i]; f != nil {
			delete(c.ended, i)
			f()
		}
	}
}

// AfterFunc calls f when the context ends, in whatever ends it, or now if it has ended. Package
// context uses it too.
func (c *bounded) AfterFunc(f func()) (stop func() bool) {
	if c.err != nil {
		f()
		return func() bool { return false }
	}
	i := c.order
	c.order++
	c.ended[i] = f
	return func() bool {
		_, waiting := c.ended[i]
		delete(c.ended, i)
		return waiting
	}
}

// Deadline is none that a clock of this machine could reach.
func (c *bounded) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *bounded) Done() <-chan struct{} { return c.done }

func (c *bounded) Err() error {
	if c.err == nil {
		return c.parent.Err() // one of the standard library tells nobody
	}
	return c.err
}

func (c *bounded) Value(k any) any {
	if (k == key{}) {
		return c
	}
	return c.parent.Value(k)
}

// Sleep lets virtual time pass in the task that runs, until ctx ends, and returns its error then.
// It is how the world's devices take their time.
func Sleep(ctx context.Context, line *timeline.Timeline, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	task := line.Running()
	if task == nil {
		return nil
	}
	if c, ok := ctx.Value(key{}).(*bounded); ok {
		defer c.AfterFunc(task.Wake)()
	}
	if d >= 0 {
		line.Sleep(d)
	} else {
		task.Park()
	}
	return ctx.Err()
}
