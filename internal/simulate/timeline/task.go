package timeline

import (
	"iter"
	"time"
)

// Task is ordinary code that runs in a timeline and may let time pass in the middle of a call: the
// code of a process of the world. It ends when its function returns, or when it is killed: then it
// unwinds from where it is parked and never continues.
type Task struct {
	timeline *Timeline
	name     string
	next     func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	// wake is the event that runs it on; nil while it is parked without a time.
	wake   *Event
	killed bool
	done   bool
	ended  func()
	parked func()
}

// OnPark has a function called whenever the task has run and parked again or ended; it is not
// called when it is killed.
func (k *Task) OnPark(f func()) { k.parked = f }

// unwinding is what a killed task panics with.
type unwinding struct{ task *Task }

// Go begins a task; its first step is an event of this moment. Ended is called once, when it has
// ended of itself or was killed; it may be nil.
func (t *Timeline) Go(name string, run func(), ended func()) *Task {
	k := &Task{timeline: t, name: name, ended: ended}
	k.next, k.stop = iter.Pull(func(yield func(struct{}) bool) {
		k.yield = yield
		defer func() {
			if r := recover(); r != nil && r != (unwinding{k}) {
				panic(r)
			}
		}()
		run()
	})
	k.wakeIn(0)
	return k
}

// Sleep lets time pass in the task that calls it. Outside of a task no time passes: what calls is
// no process of the world.
func (t *Timeline) Sleep(d time.Duration) {
	if k := t.task; k != nil {
		k.wakeIn(d)
		k.park()
	}
}

// Running is the task that runs; nil outside of tasks.
func (t *Timeline) Running() *Task { return t.task }

// Park stops the calling task until it is woken.
func (k *Task) Park() {
	if k.timeline.task != k {
		panic("task " + k.name + " parks and does not run")
	}
	k.park()
}

func (k *Task) park() {
	if k.killed || !k.yield(struct{}{}) {
		panic(unwinding{k})
	}
}

// Wake runs a parked task on, in an event of this moment. One that sleeps continues early; one that
// has ended stays so.
func (k *Task) Wake() {
	if !k.done && k.timeline.task != k {
		k.timeline.Cancel(k.wake)
		k.wakeIn(0)
	}
}

// Done says that the task has ended.
func (k *Task) Done() bool { return k.done }

// Kill ends a task where it is: its deferred calls run, nothing else does. A task that kills itself
// does not return from the call.
func (k *Task) Kill() {
	if k.done || k.killed {
		return
	}
	k.killed = true
	if k.timeline.task == k {
		panic(unwinding{k})
	}
	k.timeline.Cancel(k.wake)
	k.run(k.stop)
	k.end()
}

func (k *Task) wakeIn(d time.Duration) {
	k.wake = k.timeline.After(d, k.name, func() {
		k.wake = nil
		more := false
		k.run(func() { _, more = k.next() })
		if !more {
			k.end()
		}
		if k.parked != nil && !k.killed {
			k.parked()
		}
	})
}

// run has the task's code run in its own name, and gives control back to whoever had it.
func (k *Task) run(f func()) {
	before := k.timeline.task
	k.timeline.task = k
	defer func() { k.timeline.task = before }()
	f()
}

func (k *Task) end() {
	if k.done {
		return
	}
	k.done = true
	if k.ended != nil {
		k.ended()
	}
}
