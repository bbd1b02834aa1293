package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
)

const (
	// operationLimit is longer than any operation takes; the end of the JVM and that of the agent end one earlier.
	operationLimit = 60 * 24 * time.Hour
	// repairPoll is how often a repair is asked for: Cassandra loses what it tells by itself.
	repairPoll = 2 * time.Second
	// forgotPoll is how often it is looked whether a member has forgotten an endpoint, which it does for a minute.
	forgotPoll = 2 * time.Second
	// sayEvery is how often the words about a job change: each change is a write of the status.
	sayEvery = 3 * time.Second
)

// job is an operation that runs beside the loop.
type job struct {
	node.Operation
	cancel context.CancelFunc
	// progress and message are the latest, of which Operation has those that were shown last.
	progress int32
	message  string
	shownAt  time.Time
	// waits says that the latest are to be shown in a moment.
	waits bool
}

// startJob begins an operation whose beginning is in the journal. The lock is held.
func (a *Agent) startJob(ctx context.Context, f *node.Facts, action node.Action) {
	bounded, cancel := a.host.Threads.WithTimeout(ctx, operationLimit)
	j := &job{Operation: node.Operation{ID: action.ID, Message: "begins"}, cancel: cancel}
	if p := f.Init.Process; p != nil {
		j.Incarnation, j.StartID = f.Init.Incarnation, p.StartID
	}
	a.jobs = append(a.jobs, j)
	a.host.Threads.Go(func() {
		message, err := a.operate(bounded, j, action.Operation)
		cut := err != nil && (bounded.Err() != nil || errors.Is(err, ErrCutOff))
		a.LookAtRing(ctx)
		cancel()
		a.mu.Lock()
		j.Ended, j.CutOff, j.Message = true, cut, message
		if err != nil {
			j.Failure = err.Error()
			a.host.Logf("operation %s (%s): %v", action.ID, action.Operation.Type, err)
		}
		a.mu.Unlock()
		a.wake.Set()
	})
}

// cutJobs ends the jobs whose JVM is gone. The lock is held.
func (a *Agent) cutJobs(f *node.Facts) {
	for _, j := range a.jobs {
		p := f.Init.Process
		if !j.Ended && (p == nil || f.Init.Incarnation != j.Incarnation || p.StartID != j.StartID) {
			j.cancel()
		}
	}
}

// dropJob forgets a job whose end is in the journal. The lock is held.
func (a *Agent) dropJob(id string) {
	a.jobs = slices.DeleteFunc(a.jobs, func(j *job) bool { return j.ID == id })
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

// operate carries an operation out and says what was done.
func (a *Agent) operate(ctx context.Context, j *job, o *v1alpha1.OperationIntent) (string, error) {
	arguments := v1alpha1.OperationArguments{}
	if o.Arguments != nil {
		arguments = *o.Arguments
	}
	switch o.Type {
	case v1alpha1.OperationAlterSystemKeyspaces:
		return a.host.JVM.AlterSystemKeyspaces(ctx, arguments.Replication)
	case v1alpha1.OperationAlterKeyspaces:
		least := map[string]map[string]int32{}
		for _, k := range arguments.KeyspaceReplication {
			least[k.Keyspace] = k.Replication
		}
		return a.host.JVM.AlterKeyspaces(ctx, least)
	case v1alpha1.OperationCleanup:
		return a.eachKeyspace(ctx, j, o, "cleaned up", func(name string) error {
			ring, err := a.ringNow(ctx)
			if err != nil {
				return err
			}
			if why := node.CleanupRefused(ring); why != "" {
				return errors.New(why)
			}
			return a.host.JVM.Cleanup(ctx, name, int(arguments.Jobs))
		})
	case v1alpha1.OperationRebuild:
		return a.eachKeyspace(ctx, j, o, "rebuilt", func(name string) error { return a.host.JVM.Rebuild(ctx, arguments.SourceDatacenter, name) })
	case v1alpha1.OperationRepair:
		return a.eachKeyspace(ctx, j, o, "repaired", func(name string) error { return a.repair(ctx, name, arguments) })
	case v1alpha1.OperationAssassinate:
		return a.assassinate(ctx, j, arguments.Endpoint)
	default:
		return "", fmt.Errorf("operation %s is not known", o.Type)
	}
}

// assassinate has the members forget a try to join that is over, once this one has forgotten it by itself.
func (a *Agent) assassinate(ctx context.Context, j *job, endpoint string) (string, error) {
	for {
		ring, err := a.ringNow(ctx)
		if err != nil {
			return "", err
		}
		there, _ := a.host.Peers.Ask(ctx, []string{endpoint}, endpoint, "")
		switch try, why := node.TryAt(ring, endpoint, there); try {
		case node.TryHasLeft:
			return "members take " + endpoint + " for one that has left", nil
		case node.TryIsForgotten:
			if err := a.host.JVM.Assassinate(ctx, endpoint); err != nil {
				return "", err
			}
			return "members hear that " + endpoint + " has left", nil
		case node.TryIsNone:
			return "", errors.New(why)
		case node.TryIsKnown:
			a.say(ctx, j, 0, 1, "waits until this member has forgotten "+endpoint+": then it takes seconds, and stands still for none")
		}
		a.host.Threads.Wait(ctx, forgotPoll, nil)
		if ctx.Err() != nil {
			return "", fmt.Errorf("await that %s is forgotten: %w", endpoint, ctx.Err())
		}
	}
}

// eachKeyspace does one keyspace after the other. The first error ends it, and says what was done before.
func (a *Agent) eachKeyspace(ctx context.Context, j *job, o *v1alpha1.OperationIntent, verb string, do func(name string) error) (string, error) {
	ring, err := a.ringNow(ctx)
	if err != nil {
		return "", err
	}
	names, err := node.KeyspacesOf(o, ring)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "there is no keyspace to do it for", nil
	}
	for i, name := range names {
		a.say(ctx, j, i, len(names), fmt.Sprintf("keyspace %s, %d of %d", name, i+1, len(names)))
		if err := do(name); err != nil {
			if i > 0 {
				return "", fmt.Errorf("keyspace %s: %w (%s before: %s)", name, err, verb, strings.Join(names[:i], ", "))
			}
			return "", fmt.Errorf("keyspace %s: %w", name, err)
		}
	}
	return verb + " " + strings.Join(names, ", "), nil
}

// ringNow is how the JVM sees the ring at this moment.
func (a *Agent) ringNow(ctx context.Context) (*facts.Ring, error) {
	a.LookAtRing(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jvm.Problem != "" || a.jvm.Ring == nil {
		return nil, fmt.Errorf("%w: the JVM does not tell how it sees the ring: %s", ErrCutOff, a.jvm.Problem)
	}
	return a.jvm.Ring, nil
}

// repair starts a repair and waits for its end.
func (a *Agent) repair(ctx context.Context, keyspace string, arguments v1alpha1.OperationArguments) error {
	command, err := a.host.JVM.StartRepair(ctx, keyspace, arguments.Full, arguments.Datacenters)
	if err != nil || command == 0 {
		return err // nothing to repair: the node has no range of it
	}
	for {
		running, err := a.host.JVM.Repairing(ctx, command)
		if err != nil || !running {
			return err
		}
		a.host.Threads.Wait(ctx, repairPoll, nil)
		if ctx.Err() != nil {
			return fmt.Errorf("await the end of repair %d: %w", command, ctx.Err())
		}
	}
}
