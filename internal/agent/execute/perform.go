package execute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"time"

	"helenus.io/helenus/internal/core/config"
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

// begin writes down what is about to happen, and then lets it happen beside the loop. An action of the journal alone is over at once. It goes by the facts on which the
// action was decided: a record that is gone by now is not there to be read.
func (a *Agent) begin(ctx context.Context, f *node.Facts, action node.Action) {
	a.mu.Lock()
	defer a.mu.Unlock()
	memory := node.Before(f, action, a.host.Threads.Now())
	if err := a.remember(f.Memory, memory); err != nil {
		a.fail(action.Kind, err)
		return
	}
	switch action.Kind {
	case node.RunOperation:
		a.startJob(ctx, f, action)
	case node.FinishOperation, node.InterruptOperation:
		a.dropJob(action.ID)
	default:
	}
	effect := a.effectOf(f, action)
	if effect == nil {
		delete(a.failures, action.Kind)
		return
	}
	a.doing = &node.Doing{Action: action, Since: a.host.Threads.Now()}
	bounded, cancel := a.host.Threads.WithTimeout(ctx, limitOf(action.Kind))
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

// limitOf is the longest that an action may take: everything else waits for it. A drain has a deadline of its own, which is earlier.
func limitOf(kind node.ActionKind) time.Duration {
	switch kind {
	case node.Drain:
		return 24 * time.Hour
	default:
		return time.Minute
	}
}

// interruptible are actions that give way when the container is to end, or the JVM has.
func interruptible(kind node.ActionKind) bool {
	switch kind {
	case node.OpenTraffic, node.SetSeeds, node.ApplySettings, node.AskPeers, node.LookAtRing:
		return true
	default:
		return false
	}
}

// giveWay cuts the action under way off if it is in the way. The lock is held.
func (a *Agent) giveWay(f *node.Facts) {
	a.cutJobs(f)
	if a.doing == nil || !interruptible(a.doing.Action.Kind) {
		return
	}
	if f.Init.Stopping != nil || f.Init.Process == nil && a.doing.Action.Kind != node.AskPeers {
		a.interrupt()
	}
}

// remember makes a memory durable before anything follows from it. One that is as it was decided on changes nothing: whose the journal is may not be known at the moment,
// and then it is neither gone by nor forgotten. The lock is held.
func (a *Agent) remember(was, memory node.Memory) error {
	if reflect.DeepEqual(memory, was) {
		return nil
	}
	if a.memoryProblem != "" {
		return errors.New(a.memoryProblem)
	}
	// On a disk that is not this node's nothing is written: what is to be remembered before the disk is claimed is lost with the agent, and must be
	// worth no more than that.
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
		err = a.remember(f.Memory, node.After(&f, r.action, a.host.Threads.Now()))
	}
	if err != nil {
		a.fail(r.action.Kind, err)
		return
	}
	delete(a.failures, r.action.Kind)
}

// fail notes a failure and when the action may be tried again. The lock is held.
func (a *Agent) fail(kind node.ActionKind, err error) {
	if errors.Is(err, ErrNotYet) {
		a.failures[kind] = failure{node.Failure{Message: err.Error(), Until: a.host.Threads.Now().Add(notYetPause), NotYet: true}, 0}
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

// effectOf is nil for an action of the journal alone. The lock is held; the effect runs without it.
func (a *Agent) effectOf(f *node.Facts, action node.Action) effect {
	seen := a.init
	call := func(do func(context.Context) error) effect {
		return func(ctx context.Context) result { return result{err: do(ctx)} }
	}
	switch action.Kind {
	case node.InspectDisk:
		return a.inspect()
	case node.ClaimDisk:
		return a.claim(f, action)
	case node.AskPeers:
		return a.askPeers(action)
	case node.LookAtRing:
		return call(func(ctx context.Context) error { a.LookAtRing(ctx); return nil })
	case node.StartJVM:
		return a.startJVM(action, seen)
	case node.OpenTraffic:
		return a.thenLook(a.host.JVM.OpenNative)
	case node.CloseTraffic:
		return a.thenLook(a.untilDeadline(a.host.JVM.CloseNative, action.Deadline))
	case node.Drain:
		return a.thenLook(a.untilDeadline(a.host.JVM.Drain, action.Deadline))
	case node.SetSeeds:
		return call(func(ctx context.Context) error { return a.setSeeds(ctx, action.Seeds) })
	case node.ApplySettings:
		return a.applySettings(f, action)
	case node.Terminate:
		return a.signalJVM(seen, initclient.SignalTerminate)
	case node.Kill:
		return a.kill(seen, action.Dump)
	case node.RunOperation, node.FinishOperation, node.NoteExit, node.NoteNormal, node.NoteLeft, node.KeepRecord, node.FinishJoin, node.WithdrawJoin, node.WithdrawRestart,
		node.WithdrawOperation, node.BeginStop, node.BeginRestart, node.FinishRestart, node.InterruptOperation:
		return nil
	default:
		panic("unknown action " + string(action.Kind))
	}
}

// thenLook is an effect on Cassandra after which the ring is looked at, so that the next decision sees it.
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

func (a *Agent) inspect() effect {
	return func(ctx context.Context) result {
		found := a.host.Disk.Inspect(ctx)
		found.Known, found.SeenAt = true, a.host.Threads.Now()
		return result{apply: func(a *Agent) {
			// A JVM that was started meanwhile has changed the disk; nobody but this agent starts one.
			if a.init.Process == nil {
				a.disk = found
			}
		}}
	}
}

func (a *Agent) claim(f *node.Facts, action node.Action) effect {
	adopted := f.Record.Spec.Cluster.AdoptedUID
	return func(ctx context.Context) result {
		if err := a.host.Disk.Mark(action.Volumes, action.Cluster, a.self.Node, adopted); err != nil {
			return result{err: err}
		}
		found := a.host.Disk.Inspect(ctx)
		found.Known, found.SeenAt = true, a.host.Threads.Now()
		return result{apply: func(a *Agent) { a.disk = found }}
	}
}

func (a *Agent) askPeers(action node.Action) effect {
	return func(ctx context.Context) result {
		answers, silent := a.host.Peers.Ask(ctx, action.Ask, action.Address, action.HostID)
		return result{apply: func(a *Agent) {
			heard := a.peers.HeardAt
			now := a.host.Threads.Now()
			if len(answers) > 0 {
				heard = now
			}
			a.peers = node.Peers{
				AskedAt: now, Address: action.Address, HostID: action.HostID, StartID: action.StartID, Answers: answers, Silent: silent, HeardAt: heard,
			}.After(a.peers, a.jvm)
		}}
	}
}

// startJVM renders the configuration and asks init to start the JVM under the id that the journal has.
func (a *Agent) startJVM(action node.Action, seen initapi.State) effect {
	return func(ctx context.Context) result {
		rendered, files, err := a.render(action.Start, seen)
		if err != nil {
			return result{err: err}
		}
		if err := a.host.Files.Install(seen.Image.Base, files); err != nil {
			return result{err: err}
		}
		start, err := config.StartOf(rendered, action.Start.Ticket)
		if err != nil {
			return result{err: err}
		}
		command := initclient.Command{Argv: append([]string{path.Join(seen.Image.CassandraHome, "bin", "cassandra")}, start.Arguments...), Dir: seen.Image.CassandraHome}
		for _, v := range start.Environment {
			command.Env = append(command.Env, v.Name+"="+v.Value)
		}
		state, err := a.host.Init.Start(ctx, seen, action.Start.StartID, command)
		if err != nil {
			return result{err: fmt.Errorf("start JVM: %w", err)}
		}
		return result{apply: func(a *Agent) { a.seeInit(state) }}
	}
}

// render makes the files of a start. The native transport is always closed at the start; the agent opens it.
func (a *Agent) render(s *node.StartArguments, seen initapi.State) (config.Node, config.Files, error) {
	n := config.Node{Configuration: s.Configuration, MemoryLimit: a.memoryLimit}
	var err error
	if n.Address, err = netip.ParseAddr(a.self.Address); err != nil {
		return n, nil, fmt.Errorf("address of the pod: %w", err)
	}
	if n.Seeds, err = parseAddresses(s.Seeds); err != nil {
		return n, nil, err
	}
	if err := a.host.Files.Complete(&n); err != nil {
		return n, nil, err
	}
	base, err := a.host.Files.Base(seen.Image.Base)
	if err != nil {
		return n, nil, err
	}
	files, err := config.Render(base, n)
	return n, files, err
}

func parseAddresses(texts []string) ([]netip.Addr, error) {
	out := make([]netip.Addr, 0, len(texts))
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("seed: %w", err)
		}
		out = append(out, address)
	}
	return out, nil
}

func (a *Agent) setSeeds(ctx context.Context, seeds []string) error {
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

// applySettings writes the new cassandra.yaml, so that a restart for another reason has it, and tells the JVM what it can take over.
func (a *Agent) applySettings(f *node.Facts, action node.Action) effect {
	seen, start := a.init, f.Memory.Start
	wanted := f.Record.Spec.Configuration
	return func(ctx context.Context) result {
		_, files, err := a.render(&node.StartArguments{Configuration: wanted, Seeds: start.Seeds}, seen)
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

// dumpTime is what a JVM gets to write its threads down before it is killed.
const dumpTime = 3 * time.Second

// kill ends the JVM and all that it started, after a thread dump if that is asked for.
func (a *Agent) kill(seen initapi.State, dump bool) effect {
	end := a.signalJVM(seen, initclient.SignalKill)
	return func(ctx context.Context) result {
		if dump && seen.Process != nil {
			if _, err := a.host.Init.Signal(ctx, seen, *seen.Process, initclient.SignalThreadDump); err == nil {
				a.host.Threads.Wait(ctx, dumpTime, nil)
			}
		}
		return end(ctx)
	}
}
