package timeline

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// Timeline is a world's clock, its list of what comes next, and its dice. It is not safe for
// concurrent use: everything in a world runs in it, one thing at a time.
type Timeline struct {
	now    time.Time
	dice   *rand.Rand
	queue  queue
	count  uint64
	task   *Task
	events uint64
}

// New starts a timeline at a point. The seed determines every choice that is made by its dice.
func New(start time.Time, seed uint64) *Timeline {
	return &Timeline{now: start, dice: rand.New(rand.NewPCG(seed,
		0x68656c656e7573))} //nolint:gosec // reproducible, not secret
}

// Now is the virtual time.
func (t *Timeline) Now() time.Time { return t.now }

// Dice is the one source of choice.
func (t *Timeline) Dice() *rand.Rand { return t.dice }

// Between chooses a duration of at least low and less than high; low if they are the same.
func (t *Timeline) Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(t.dice.Int64N(int64(high-low)))
}

// Events is how many events have happened.
func (t *Timeline) Events() uint64 { return t.events }

// Event is something that will happen.
type Event struct {
	at    time.Time
	order uint64
	name  string
	do    func()
	// index in the queue; -1 when it is not in it.
	index int
}

// At has something happen at a point, or now if that has passed. Events of one point happen in the
// order in which they were made.
func (t *Timeline) At(when time.Time, name string, do func()) *Event {
	if when.Before(t.now) {
		when = t.now
	}
	t.count++
	e := &Event{at: when, order: t.count, name: name, do: do}
	heap.Push(&t.queue, e)
	return e
}

// After has something happen in a while.
func (t *Timeline) After(d time.Duration, name string, do func()) *Event {
	return t.At(t.now.Add(d), name, do)
}

// Cancel takes an event back. It may have happened already, or be nil.
func (t *Timeline) Cancel(e *Event) {
	if e != nil && e.index >= 0 && e.index < len(t.queue) && t.queue[e.index] == e {
		heap.Remove(&t.queue, e.index)
	}
}

// Step lets the next event happen and says which; ok is false if there is none.
func (t *Timeline) Step() (name string, ok bool) {
	if t.task != nil {
		panic(fmt.Sprintf("task %s steps the timeline that it runs in", t.task.name))
	}
	if len(t.queue) == 0 {
		return "", false
	}
	e := heap.Pop(&t.queue).(*Event)
	t.now = e.at
	t.events++
	e.do()
	return e.name, true
}

// Next is when the next event happens; ok is false if there is none.
func (t *Timeline) Next() (at time.Time, ok bool) {
	if len(t.queue) == 0 {
		return time.Time{}, false
	}
	return t.queue[0].at, true
}

// RunUntil lets events happen until a condition holds, which is looked at after each, or until the
// deadline, and says whether it held. At the deadline it is that time; events of later points stay.
func (t *Timeline) RunUntil(deadline time.Time, condition func() bool) bool {
	for {
		if condition() {
			return true
		}
		at, ok := t.Next()
		if !ok || at.After(deadline) {
			if t.now.Before(deadline) {
				t.now = deadline
			}
			return condition()
		}
		t.Step()
	}
}

// RunFor lets everything happen that happens in a while.
func (t *Timeline) RunFor(d time.Duration) {
	t.RunUntil(t.now.Add(d), func() bool { return false })
}

type queue []*Event

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	e := x.(*Event)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.index = -1
	return e
}
