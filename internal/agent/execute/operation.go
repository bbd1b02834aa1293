package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/operation"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	core "helenus.io/helenus/internal/core/node/operation"
)

const (
	// operationLimit is longer than any operation takes; the end of the JVM and that of the agent
	// end one earlier.
	operationLimit = 60 * 24 * time.Hour
	// sayEvery is how often the words about a job change: each change is a write of the status.
	sayEvery = 3 * time.Second
	// stopAgain is how often what is to end is told so: the next table may be in work by now.
	stopAgain = time.Second
)

// job is an operation that runs beside the loop.
type job struct {
	node.Operation
	// incarnation and startID name the JVM that it runs on.
	incarnation string
	startID     uint64
	record      *v1alpha1.CassandraNode
	cancel      context.CancelFunc
	// progress and message are the latest, of which Operation has those that were shown last.
	progress int32
	message  string
	shownAt  time.Time
	// waits says that the latest are to be shown in a moment.
	waits bool
}

// startJob begins an operation whose beginning is in the journal, or follows one that continues in
// the JVM. The lock is held.
func (a *Agent) startJob(ctx context.Context, f *node.Facts, o *v1alpha1.OperationIntent, from *core.Handle) {
	bounded, cancel := a.host.Threads.WithTimeout(ctx, operationLimit)
	j := &job{Operation: node.Operation{ID: o.ID, Message: "begins"}, cancel: cancel,
		record: cmp.Or(f.Record, &v1alpha1.CassandraNode{})} // as remembered, before the API server has answered
	if p := f.Init.Process; p != nil {
		j.incarnation, j.startID = f.Init.Incarnation, p.StartID
	}
	a.jobs = append(a.jobs, j)
	a.host.Threads.Go(func() {
		message, err := operation.Run(bounded, a.hostOf(bounded, j), o, from)
		cut := err != nil && (bounded.Err() != nil || errors.Is(err, operation.ErrCutOff))
		a.LookAtRing(ctx)
		cancel()
		a.mu.Lock()
		j.Ended, j.CutOff, j.Message = true, cut, message
		if err != nil {
			j.Failure = err.Error()
			a.host.Logf("operation %s (%s): %v", o.ID, o.Type, err)
		}
		a.mu.Unlock()
		a.wake.Set()
	})
	if o.Withdraw != nil && o.Withdraw.Cancel {
		a.cancelJob(ctx, o.ID)
	}
}

// cancelJob has the operation of a job end: before its next keyspace, or earlier where Cassandra
// ends what runs. The lock is held.
func (a *Agent) cancelJob(ctx context.Context, id string) {
	i := slices.IndexFunc(a.jobs, func(j *job) bool { return j.ID == id })
	if i < 0 {
		return
	}
	j := a.jobs[i]
	j.Cancelled = true
	a.host.Threads.Go(func() {
		for ctx.Err() == nil {
			a.mu.Lock()
			m, ended := a.memory.Operation(id), j.Ended
			a.mu.Unlock()
			if ended || m == nil {
				return
			}
			if err := operation.Stop(ctx, a.host.JVM, m.Type, m.Handle); err != nil {
				a.host.Logf("stop operation %s (%s): %v", id, m.Type, err)
			}
			a.host.Threads.Wait(ctx, stopAgain, nil)
		}
	})
}

// cutJobs ends the jobs whose JVM is gone. The lock is held.
func (a *Agent) cutJobs(f *node.Facts) {
	for _, j := range a.jobs {
		p := f.Init.Process
		if !j.Ended && (p == nil || f.Init.Incarnation != j.incarnation || p.StartID != j.startID) {
			j.cancel()
		}
	}
}

// dropJob forgets a job whose end is in the journal. The lock is held.
func (a *Agent) dropJob(id string) {
	a.jobs = slices.DeleteFunc(a.jobs, func(j *job) bool { return j.ID == id })
}

// note writes down what of an operation runs in the JVM.
func (a *Agent) note(id string, h core.Handle) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.remember(a.memory, a.memory.WithHandle(id, h))
}

// say tells how far a job is: so many parts of all are done, and what it does now.
func (a *Agent) say(ctx context.Context, j *job, finished, all int, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j.progress, j.message = int32(100*finished/all), message //nolint:gosec // at most 100
	pause := j.shownAt.Add(sayEvery).Sub(a.host.Threads.Now())
	if pause <= 0 {
		a.show(j)
		return
	}
	if j.waits {
		return
	}
	j.waits = true
	a.host.Threads.Go(func() {
		a.host.Threads.Wait(ctx, pause, nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		j.waits = false
		a.show(j)
	})
}

// show takes over what was said last. The lock is held.
func (a *Agent) show(j *job) {
	if j.Ended {
		return
	}
	percent := j.progress
	j.Progress, j.Message, j.shownAt = &percent, j.message, a.host.Threads.Now()
	a.wake.Set()
}

// hostOf is what the operation of a job works with.
func (a *Agent) hostOf(ctx context.Context, j *job) *operation.Host {
	return &operation.Host{
		JVM:  a.host.JVM,
		Ring: a.ringNow,
		NodesAt: func(ctx context.Context, address string) []string {
			answers, _ := a.host.Peers.Ask(ctx, []string{address}, address, "")
			nodes := make([]string, len(answers))
			for i, answer := range answers {
				nodes[i] = answer.Node
			}
			return nodes
		},
		Cancelled: func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return j.Cancelled
		},
		Room: func(keyspace string) (map[string][]int64, int64, error) {
			sizes, err := a.host.Disk.SSTables(keyspace)
			if err != nil {
				return nil, 0, err
			}
			free, _, err := a.host.Disk.Space()
			return sizes, free, err
		},
		PlaceSSTable: a.host.Disk.PlaceSSTable,
		Secret:       a.host.Record.Secret,
		Now:          a.host.Threads.Now,
		Record:       j.record,
		Snapshots:    a.host.Disk.Snapshots,
		Store:        a.host.Store,
		Uploads:      a.host.Uploads,
		DataVolume:   a.host.DataVolume,
		Staging:      a.host.Staging,
		Note:         func(h core.Handle) error { return a.note(j.ID, h) },
		Say:          func(finished, all int, message string) { a.say(ctx, j, finished, all, message) },
		Wait: func(ctx context.Context, d time.Duration) error {
			a.host.Threads.Wait(ctx, d, nil)
			return ctx.Err() //nolint:wrapcheck // who waits says for what
		},
	}
}

// ringNow is how the JVM sees the ring at this moment.
func (a *Agent) ringNow(ctx context.Context) (*facts.Ring, error) {
	a.LookAtRing(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jvm.Problem != "" || a.jvm.Ring == nil {
		return nil, fmt.Errorf("%w: the JVM does not tell how it sees the ring: %s", operation.ErrCutOff, a.jvm.Problem)
	}
	return a.jvm.Ring, nil
}
