package execute

import (
	"context"
	"errors"
	"reflect"
	"time"

	"helenus.io/helenus/internal/agent/archive"
	"helenus.io/helenus/internal/agent/restore"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

// The back-off of an action that fails again and again.
const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = time.Minute
	// notYetPause is between two attempts at what Cassandra is not ready for.
	notYetPause = 250 * time.Millisecond
)

// begin writes down what is about to happen, and then lets it happen beside the loop. An action of
// the journal alone is over at once. It goes by the facts on which the action was decided: a record
// that is gone by now is not there to be read.
func (a *Agent) begin(ctx context.Context, f *node.Facts, action node.Action) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.Memory = node.Own(a.memory, a.self, f.Record) // an operation may have noted something since
	memory := node.Before(f, action, a.host.Threads.Now())
	if err := a.remember(f.Memory, memory); err != nil {
		a.fail(action, err)
		return
	}
	switch action := action.(type) {
	case node.RunOperation:
		a.startJob(ctx, f, action.Operation, nil)
	case node.ResumeOperation:
		a.dropJob(action.Operation.ID)
		a.startJob(ctx, f, action.Operation, &action.Handle)
	case node.CancelOperation:
		a.cancelJob(ctx, action.ID)
	case node.FinishOperation:
		a.dropJob(action.ID)
		a.look.Set() // at what it has changed
	case node.InterruptOperation:
		a.dropJob(action.ID)
	}
	effect := a.effectOf(f, action)
	if effect == nil {
		delete(a.failures, node.KindOf(action))
		return
	}
	a.doing = &node.Doing{Action: action, Since: a.host.Threads.Now()}
	bounded, cancel := a.host.Threads.WithTimeout(ctx, action.Limit())
	a.interrupt = cancel
	a.host.Threads.Go(func() {
		r := effect(bounded)
		cancel()
		r.action, r.record = action, f.Record
		a.mu.Lock()
		a.ended = &r
		a.mu.Unlock()
		a.wake.Set()
	})
}

// giveWay cuts the action under way off if it is in the way. The lock is held.
func (a *Agent) giveWay(f *node.Facts) {
	a.cutJobs(f)
	if a.doing == nil || !node.Interruptible(a.doing.Action) {
		return
	}
	needsJVM := true
	switch doing := a.doing.Action.(type) {
	case node.AskPeers:
		needsJVM = false
	case node.RestoreDisk:
		needsJVM = false
		if r := f.Record; r == nil || r.Spec.Join == nil || r.Spec.Join.ID != doing.Ticket.ID ||
			r.Spec.Join.Withdraw != nil {
			a.interrupt()
		}
	}
	if f.Init.Stopping != nil || f.Init.Process == nil && needsJVM {
		a.interrupt()
	}
}

// remember makes a memory durable before anything follows from it. One that is as it was decided on
// changes nothing: whose the journal is may not be known at the moment, and then it is neither gone
// by nor forgotten. The lock is held.
func (a *Agent) remember(was, memory node.Memory) error {
	if reflect.DeepEqual(memory, was) {
		return nil
	}
	if a.memoryProblem != "" {
		return errors.New(a.memoryProblem)
	}
	// On a disk that is not this node's nothing is written: what is to be remembered before the
	// disk is claimed is lost with the agent, and must be worth no more than that.
	if memory.ClusterUID == a.self.ClusterUID && memory.Node == a.self.Node {
		if err := a.host.Journal.Put(memory); err != nil {
			return err // it says what it is about
		}
	}
	a.memory = memory
	return nil
}

// finish takes the result of the action in that was under way, if it has ended.
func (a *Agent) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended == nil {
		return
	}
	r := *a.ended
	a.ended, a.doing = nil, nil
	if r.apply != nil {
		r.apply(a)
	}
	err := r.err
	if err == nil {
		f := a.gather()
		f.Memory = node.Own(a.memory, a.self, r.record) // the record may be away by now that says whose disk is adopted
		err = a.remember(f.Memory, node.After(&f, r.action))
	}
	if err != nil {
		a.fail(r.action, err)
		return
	}
	delete(a.failures, node.KindOf(r.action))
}

// fail notes a failure and when the action may be tried again. The lock is held.
func (a *Agent) fail(action node.Action, err error) {
	kind := node.KindOf(action)
	if errors.Is(err, ErrNotYet) {
		until := a.host.Threads.Now().Add(notYetPause)
		a.failures[kind] = failure{node.Failure{Message: err.Error(), Until: until, NotYet: true}, 0}
		return
	}
	f := a.failures[kind]
	pause := min(firstRetry<<min(f.row, 10), longestRetry)
	pause = pause/2 + time.Duration(a.random()*float64(pause)/2)
	a.failures[kind] = failure{node.Failure{Message: err.Error(), Until: a.host.Threads.Now().Add(pause)}, f.row + 1}
	a.host.Logf("%s: %v", kind, err)
}

// effect is what an action does outside of the journal.
type effect func(ctx context.Context) result

// effects are those of the actions that have one, by their type. The lock is held while one is
// made; it runs without.
var effects = tableOf(
	of((*Agent).inspect), of((*Agent).claim), of((*Agent).wipe), of((*Agent).restore),
	of((*Agent).askPeers), of((*Agent).lookAtRing),
	of((*Agent).startJVM), of((*Agent).drain), of((*Agent).terminate), of((*Agent).kill),
	of((*Agent).openTraffic), of((*Agent).closeTraffic), of((*Agent).setSeeds), of((*Agent).applySettings),
	of((*Agent).proveCertificates),
)

// entry of the table.
type entry struct {
	kind node.ActionKind
	make func(a *Agent, f *node.Facts, action node.Action) effect
}

// of is the entry for the effect of one type of action.
func of[A node.Action](effectOf func(*Agent, *node.Facts, A) effect) entry {
	var zero A
	return entry{node.KindOf(zero), func(a *Agent, f *node.Facts, action node.Action) effect {
		return effectOf(a, f, action.(A)) // the table is by the type
	}}
}

func tableOf(entries ...entry) map[node.ActionKind]entry {
	table := map[node.ActionKind]entry{}
	for _, e := range entries {
		table[e.kind] = e
	}
	return table
}

// effectOf is nil for an action of the journal alone, and for an operation, which runs beside all
// others.
func (a *Agent) effectOf(f *node.Facts, action node.Action) effect {
	if e, found := effects[node.KindOf(action)]; found {
		return e.make(a, f, action)
	}
	switch action.(type) {
	case node.RunOperation, node.ResumeOperation, node.CancelOperation:
	default:
		if !node.InJournal(action) {
			panic("unknown action " + string(node.KindOf(action)))
		}
	}
	return nil
}

// thenLook is an effect on Cassandra after which the ring is looked at, so that the next decision
// sees it.
func (a *Agent) thenLook(do func(context.Context) error) effect {
	return func(ctx context.Context) result {
		err := do(ctx)
		a.LookAtRing(ctx)
		return result{err: err}
	}
}

func (a *Agent) untilDeadline(do func(context.Context) error, deadline time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		if deadline.IsZero() {
			return do(ctx)
		}
		ctx, cancel := a.host.Threads.WithTimeout(ctx, max(deadline.Sub(a.host.Threads.Now()), time.Second))
		defer cancel()
		return do(ctx)
	}
}

func (a *Agent) inspect(*node.Facts, node.InspectDisk) effect {
	return func(ctx context.Context) result {
		found := a.host.Disk.Inspect(ctx)
		found.Known, found.SeenAt = true, a.host.Threads.Now()
		return result{apply: func(a *Agent) {
			// A JVM that was started meanwhile has changed the disk; nobody but this agent starts
			// one.
			if a.init.Process == nil {
				a.disk = found
			}
		}}
	}
}

func (a *Agent) claim(f *node.Facts, action node.ClaimDisk) effect {
	adopted := f.Record.Spec.Cluster.AdoptedUID
	return a.thenInspect(func(context.Context) error {
		return a.host.Disk.Mark(action.Volumes, action.Cluster, a.self.Node, adopted)
	})
}

func (a *Agent) wipe(*node.Facts, node.WipeJoin) effect {
	return a.thenInspect(func(context.Context) error { return a.host.Disk.WipeRows() })
}

// restoringSaid is how often it is told how far a restore is.
const restoringSaid = 10 * time.Second

func (a *Agent) restore(_ *node.Facts, action node.RestoreDisk) effect {
	from, said := action.Ticket.Restore, time.Time{}
	say := func(done, all int64) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if now := a.host.Threads.Now(); now.Sub(said) >= restoringSaid && a.doing != nil {
			said = now
			a.doing = &node.Doing{Action: a.doing.Action, Since: a.doing.Since, Progress: facts.Share(done, all)}
			a.wake.Set()
		}
	}
	return a.thenInspect(func(ctx context.Context) error {
		opened, err := a.host.Store(ctx, &from.Store)
		if err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
		had, err := restore.Run(ctx, restore.Host{Threads: a.host.Threads, Store: opened, Disk: a.host.Disk, Say: say},
			from)
		if err != nil || from.PointInTime == nil {
			return err //nolint:wrapcheck // it says what it is about
		}
		return archive.Fetch(ctx, opened, a.host.LogVolume, had, from.Keyspaces, from.PointInTime.Time)
	})
}

// thenInspect is an effect on the volumes, which are looked at afterwards.
func (a *Agent) thenInspect(do func(context.Context) error) effect {
	return func(ctx context.Context) result {
		if err := do(ctx); err != nil {
			return result{err: err}
		}
		found := a.host.Disk.Inspect(ctx)
		found.Known, found.SeenAt = true, a.host.Threads.Now()
		return result{apply: func(a *Agent) { a.disk = found }}
	}
}

func (a *Agent) askPeers(_ *node.Facts, action node.AskPeers) effect {
	return func(ctx context.Context) result {
		answers, silent := a.host.Peers.Ask(ctx, action.Ask, action.Address, action.HostID)
		return result{apply: func(a *Agent) {
			heard := a.peers.HeardAt
			now := a.host.Threads.Now()
			if len(answers) > 0 {
				heard = now
			}
			a.peers = node.Peers{
				AskedAt: now, Address: action.Address, HostID: action.HostID, StartID: action.StartID, Answers: answers,
				Silent: silent, HeardAt: heard, GoingDown: action.GoingDown,
			}.After(a.peers, a.jvm)
		}}
	}
}

func (a *Agent) lookAtRing(*node.Facts, node.LookAtRing) effect {
	return func(ctx context.Context) result {
		a.LookAtRing(ctx)
		return result{}
	}
}

func (a *Agent) openTraffic(*node.Facts, node.OpenTraffic) effect {
	return a.thenLook(a.host.JVM.OpenNative)
}

func (a *Agent) closeTraffic(_ *node.Facts, action node.CloseTraffic) effect {
	return a.thenLook(a.untilDeadline(a.host.JVM.CloseNative, action.Deadline))
}

func (a *Agent) drain(_ *node.Facts, action node.Drain) effect {
	return a.thenLook(a.untilDeadline(a.host.JVM.Drain, action.Deadline))
}

func (a *Agent) setSeeds(_ *node.Facts, action node.SetSeeds) effect {
	return func(ctx context.Context) result { return result{err: a.reloadSeeds(ctx, action.Seeds)} }
}

func (a *Agent) reloadSeeds(ctx context.Context, seeds []string) error {
	addresses, err := parseAddresses(seeds)
	if err != nil {
		return err
	}
	text, err := a.host.Files.Read(config.CassandraYAML)
	if err != nil {
		return err
	}
	if text, err = config.WithSeeds(text, addresses); err != nil {
		return err
	}
	if err := a.host.Files.Replace(config.CassandraYAML, text); err != nil {
		return err
	}
	return a.host.JVM.ReloadSeeds(ctx)
}

// applySettings writes the new cassandra.yaml, so that a restart for another reason has it, and
// tells the JVM what it can take over.
func (a *Agent) applySettings(f *node.Facts, action node.ApplySettings) effect {
	seen, start, limit := a.init, f.Memory.Start, f.MemoryLimit(a.memoryLimit)
	wanted := f.Record.Spec.Configuration
	return func(ctx context.Context) result {
		_, files, err := a.render(&node.StartArguments{Configuration: wanted, Seeds: start.Seeds}, seen, limit)
		if err != nil {
			return result{err: err}
		}
		writes, err := config.HotWrites(wanted.Version, action.Settings, files[config.CassandraYAML])
		if err != nil {
			return result{err: err}
		}
		if err := a.host.Files.Replace(config.CassandraYAML, files[config.CassandraYAML]); err != nil {
			return result{err: err}
		}
		return result{err: a.host.JVM.Apply(ctx, writes)}
	}
}

func (a *Agent) signalJVM(seen initapi.State, s initclient.Signal) effect {
	return func(ctx context.Context) result {
		if seen.Process == nil {
			return result{}
		}
		state, err := a.host.Init.Signal(ctx, seen, *seen.Process, s)
		if initclient.Refused(err, initapi.CodeNotRunning) {
			err = nil // it ended in between, which is what was wanted
		}
		if err != nil {
			return result{err: err}
		}
		return result{apply: func(a *Agent) { a.seeInit(state) }}
	}
}

func (a *Agent) terminate(*node.Facts, node.Terminate) effect {
	return a.signalJVM(a.init, initclient.SignalTerminate)
}

// dumpTime is what a JVM gets to write its threads down before it is killed.
const dumpTime = 3 * time.Second

// kill ends the JVM and all that it started, after a thread dump if that is asked for.
func (a *Agent) kill(_ *node.Facts, action node.Kill) effect {
	seen := a.init
	end := a.signalJVM(seen, initclient.SignalKill)
	return func(ctx context.Context) result {
		if action.Dump && seen.Process != nil {
			if _, err := a.host.Init.Signal(ctx, seen, *seen.Process, initclient.SignalThreadDump); err == nil {
				a.host.Threads.Wait(ctx, dumpTime, nil)
			}
		}
		return end(ctx)
	}
}
