package pod

import (
	"context"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/process"
	"helenus.io/helenus/internal/simulate/timeline"
)

// jvm is a JVM as helenus-init has it: a process that it started.
type jvm interface {
	// Terminate asks it to end in order, Kill ends it.
	Terminate()
	Kill()
	// CPU is the processor time that it has used.
	CPU() time.Duration
}

// initContainer keeps to the frozen protocol of package initd, without sockets and processes: the
// same refusals, the same state.
type initContainer struct {
	line *timeline.Timeline
	// start runs the JVM; exited is to be called when it ends.
	start  func(command initclient.Command, exited func(cassandra.Exit)) (jvm, error)
	exited func(code int)

	// volume is the data volume, of which one init at a time holds the lock.
	volume *Content

	state   initapi.State
	jvm     jvm
	alone   *timeline.Event
	waiting []*timeline.Task
	gone    bool
}

func newInit(line *timeline.Timeline, incarnation string, image initapi.Image, volume *Content,
	start func(initclient.Command, func(cassandra.Exit)) (jvm, error), exited func(int)) *initContainer {
	i := &initContainer{
		line: line, start: start, exited: exited, volume: volume,
		state: initapi.State{Incarnation: incarnation, Seq: 1, StartedAt: line.Now(), Image: image},
	}
	i.lock()
	return i
}

// lock takes the lock of the data volume, now or as soon as it is free.
func (i *initContainer) lock() {
	switch before := i.state.Unlocked; {
	case i.gone || i.volume == nil:
	case i.volume.holder == nil:
		i.volume.holder, i.state.Unlocked = i, ""
		if before != "" {
			i.change()
		}
	default:
		i.state.Unlocked = "another process holds " + initapi.LockPath
		i.line.After(500*time.Millisecond, "lock", i.lock)
	}
}

// change wakes all that wait for one.
func (i *initContainer) change() {
	i.state.Seq++
	i.wake()
}

func (i *initContainer) wake() {
	waiting := i.waiting
	i.waiting = nil
	for _, t := range waiting {
		t.Wake()
	}
}

// terminate is SIGTERM to the container.
func (i *initContainer) terminate() {
	if i.gone || i.state.Stopping != nil {
		return
	}
	i.stopping(initapi.Stopping{Since: i.line.Now()}, initapi.DefaultWindow)
	i.maybeOver()
}

// stopping publishes how the stop stands and when init takes it over.
func (i *initContainer) stopping(s initapi.Stopping, left time.Duration) {
	s.Deadline = i.line.Now().Add(left)
	i.state.Stopping = &s
	i.line.Cancel(i.alone)
	i.alone = i.line.After(left, "init alone", func() {
		s := *i.state.Stopping
		s.Alone = true
		i.state.Stopping = &s
		if i.jvm != nil {
			i.jvm.Terminate()
		}
		i.change()
	})
	i.change()
}

// maybeOver ends the container when it is to end and no JVM runs.
func (i *initContainer) maybeOver() {
	s := i.state.Stopping
	if i.gone || s == nil || i.state.Process != nil {
		return
	}
	code := 143
	if n := len(i.state.Exits); n > 0 && !i.state.Exits[n-1].EndedAt.Before(s.Since) {
		code = i.state.Exits[n-1].Code
	}
	i.end(code)
}

// kill is the end of the container and of all in it.
func (i *initContainer) kill() {
	if !i.gone {
		i.end(137)
	}
}

func (i *initContainer) end(code int) {
	i.gone = true
	i.line.Cancel(i.alone)
	if j := i.jvm; j != nil {
		i.jvm = nil
		j.Kill()
	}
	if i.volume != nil && i.volume.holder == i {
		i.volume.holder = nil
	}
	i.wake()
	i.exited(code)
}

func (i *initContainer) jvmEnded(startID uint64, e cassandra.Exit) {
	p := i.state.Process
	if i.gone || p == nil || p.StartID != startID {
		return
	}
	exits := append(slices.Clone(i.state.Exits),
		initapi.Exit{Process: *p, EndedAt: i.line.Now(), Code: e.Code, Signal: e.Signal, Words: e.Words})
	if len(exits) > 16 {
		exits = exits[len(exits)-16:]
	}
	i.state.Exits, i.state.Process, i.jvm = exits, nil, nil
	i.change()
	i.maybeOver()
}

// connection is the agent's side.
type connection struct {
	line *timeline.Timeline
	// at is the container at this moment; nil while it does not run.
	at func() *initContainer
}

// socketDelay is what a question over the socket takes.
const socketDelay = time.Millisecond

func (c connection) reach(ctx context.Context) (*initContainer, error) {
	if err := process.Sleep(ctx, c.line, socketDelay); err != nil {
		return nil, err
	}
	i := c.at()
	if i == nil || i.gone {
		return nil, initclient.ErrUnreachable
	}
	return i, nil
}

func (i *initContainer) snapshot() initapi.State {
	s := i.state
	s.Exits = slices.Clone(s.Exits)
	if i.jvm != nil {
		s.CPUNanos = int64(i.jvm.CPU())
	}
	return s
}

// State asks for the state.
func (c connection) State(ctx context.Context) (initapi.State, error) {
	i, err := c.reach(ctx)
	if err != nil {
		return initapi.State{}, err
	}
	return i.snapshot(), nil
}

// WaitChange waits for another state.
func (c connection) WaitChange(ctx context.Context, seen initapi.State, limit time.Duration) (initapi.State, error) {
	i, err := c.reach(ctx)
	if err != nil {
		return initapi.State{}, err
	}
	until := c.line.Now().Add(limit)
	for i.state.Seq <= seen.Seq && i.state.Incarnation == seen.Incarnation && c.line.Now().Before(until) {
		task := c.line.Running()
		i.waiting = append(i.waiting, task)
		err := process.Sleep(ctx, c.line, until.Sub(c.line.Now()))
		i.waiting = slices.DeleteFunc(i.waiting, func(t *timeline.Task) bool { return t == task })
		if err != nil {
			return initapi.State{}, err
		}
		if i.gone {
			return initapi.State{}, initclient.ErrUnreachable
		}
	}
	return i.snapshot(), nil
}

func (c connection) meant(ctx context.Context, seen initapi.State) (*initContainer, error) {
	i, err := c.reach(ctx)
	if err == nil && seen.Incarnation != i.state.Incarnation {
		err = initapi.Refuse(initapi.CodeIncarnation, "it was meant for another start of this container")
	}
	return i, err
}

// Start starts the JVM once per id.
func (c connection) Start(ctx context.Context, seen initapi.State, id uint64,
	command initclient.Command) (initapi.State, error) {
	i, err := c.meant(ctx, seen)
	if err != nil {
		return initapi.State{}, err
	}
	switch p := i.state.Process; {
	case p != nil && p.StartID == id, p == nil && id == i.state.LastStartID:
		return i.snapshot(), nil // the same start once more
	case p != nil:
		return initapi.State{}, initapi.Refuse(initapi.CodeRunning, "start %d runs", p.StartID)
	case id < i.state.LastStartID:
		return initapi.State{}, initapi.Refuse(initapi.CodeStale, "start %d was used", i.state.LastStartID)
	case i.state.Stopping != nil:
		return initapi.State{}, initapi.Refuse(initapi.CodeStopping, "the container is to end")
	case i.state.Unlocked != "":
		return initapi.State{}, initapi.Refuse(initapi.CodeUnlocked, "%s", i.state.Unlocked)
	}
	i.state.LastStartID = id
	i.state.Process = &initapi.Process{StartID: id, PID: int(id) + 100, StartedAt: c.line.Now()} //nolint:gosec // small
	if i.jvm, err = i.start(command, func(e cassandra.Exit) { i.jvmEnded(id, e) }); err != nil {
		return initapi.State{}, fmt.Errorf("start: %w", err)
	}
	i.change()
	return i.snapshot(), nil
}

// Signal signals the JVM.
func (c connection) Signal(ctx context.Context, seen initapi.State, p initapi.Process,
	s initclient.Signal) (initapi.State, error) {
	i, err := c.meant(ctx, seen)
	if err != nil {
		return initapi.State{}, err
	}
	if now := i.state.Process; now == nil || now.StartID != p.StartID {
		return initapi.State{}, initapi.Refuse(initapi.CodeNotRunning, "start %d does not run", p.StartID)
	}
	switch s {
	case initclient.SignalTerminate:
		i.jvm.Terminate()
	case initclient.SignalKill:
		i.jvm.Kill()
	case initclient.SignalThreadDump:
	}
	return i.snapshot(), nil
}

// TakeStop takes the stop of the container over.
func (c connection) TakeStop(ctx context.Context, seen initapi.State, lease time.Duration) (initapi.State, error) {
	i, err := c.meant(ctx, seen)
	if err != nil {
		return initapi.State{}, err
	}
	switch s := i.state.Stopping; {
	case s == nil:
		return initapi.State{}, initapi.Refuse(initapi.CodeNotStopping, "nothing to take")
	case s.Alone:
		return initapi.State{}, initapi.Refuse(initapi.CodeTooLate, "SIGTERM was sent to Cassandra already")
	}
	i.stopping(initapi.Stopping{Since: i.state.Stopping.Since, Taken: true}, lease)
	return i.snapshot(), nil
}
