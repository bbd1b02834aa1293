package process

import (
	"context"
	"time"

	"helenus.io/helenus/internal/simulate/timeline"
	"helenus.io/helenus/internal/threads"
)

// Process is one run of a program.
type Process struct {
	line  *timeline.Timeline
	name  string
	tasks []*timeline.Task
	ctx   *bounded
	dead  bool
	// skew is how far its clock is from the virtual time.
	skew time.Duration

	onEnd, onPark func()
}

var _ threads.Threads = (*Process)(nil)

// Start runs a program from the next event on. Its context ends when it is killed.
func Start(line *timeline.Timeline, name string, run func(ctx context.Context, p *Process)) *Process {
	p := &Process{line: line, name: name}
	p.ctx = newBounded(context.Background(), line, threads.Forever)
	p.Go(func() { run(p.ctx, p) })
	return p
}

// Name is for messages.
func (p *Process) Name() string { return p.name }

// Dead says that it was killed.
func (p *Process) Dead() bool { return p.dead }

// OnEnd has a function called once, when the program was killed.
func (p *Process) OnEnd(f func()) { p.onEnd = f }

// OnPark has a function called whenever a part of the program has run.
func (p *Process) OnPark(f func()) { p.onPark = f }

// Kill ends the program at once: none of its code runs any more, except what it deferred. Called by
// the program itself, it does not return.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.dead = true
	var self *timeline.Task
	for _, task := range p.tasks {
		if task == p.line.Running() {
			self = task
			continue
		}
		task.Kill()
	}
	p.tasks = nil
	if p.onEnd != nil {
		p.onEnd()
	}
	if self != nil {
		self.Kill()
	}
}

// Now is what its clock says.
func (p *Process) Now() time.Time { return p.line.Now().Add(p.skew) }

// StepClock sets its clock forward or back. What it waits for comes as it would have: that is
// measured by another clock.
func (p *Process) StepClock(d time.Duration) { p.skew += d }

// Go begins a task of the program.
func (p *Process) Go(f func()) { p.begin(f, nil) }

func (p *Process) begin(f func(), ended func()) {
	if p.dead {
		return
	}
	var task *timeline.Task
	task = p.line.Go(p.name, f, func() {
		if ended != nil && !p.dead {
			ended()
		}
		for i, t := range p.tasks {
			if t == task {
				p.tasks = append(p.tasks[:i:i], p.tasks[i+1:]...)
				break
			}
		}
	})
	task.OnPark(func() {
		if p.onPark != nil && !p.dead {
			p.onPark()
		}
	})
	p.tasks = append(p.tasks, task)
}

// Together begins a task for each function, and parks until all have ended. The limit does not
// count: a timeline runs one thing at a time.
func (p *Process) Together(_ int, all ...func()) {
	caller, left := p.line.Running(), len(all)
	for _, f := range all {
		p.begin(f, func() {
			if left--; left == 0 {
				caller.Wake()
			}
		})
	}
	for left > 0 {
		caller.Park()
	}
}

// Wait lets virtual time pass.
func (p *Process) Wait(ctx context.Context, d time.Duration, s *threads.Signal) {
	if ctx.Err() != nil || s != nil && s.Take() {
		return
	}
	task := p.line.Running()
	if s != nil {
		s.OnSet(task.Wake)
		defer s.OnSet(nil)
	}
	if c, ok := ctx.Value(key{}).(*bounded); ok {
		defer c.AfterFunc(task.Wake)()
	}
	if d >= 0 {
		p.line.Sleep(d)
	} else {
		task.Park()
	}
	if s != nil {
		s.Take()
	}
}

// WithTimeout is a context that ends in virtual time.
func (p *Process) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c := newBounded(ctx, p.line, d)
	return c, func() { c.end(context.Canceled) }
}
