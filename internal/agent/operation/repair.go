package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/node/operation"
)

// repairPoll is how often a repair is asked for, and repairPollFirst after what time first:
// Cassandra loses what it tells by itself, and most keyspaces of Cassandra are repaired at once.
const (
	repairPoll      = 2 * time.Second
	repairPollFirst = 100 * time.Millisecond
)

// recordedWithin is for how long a repair that was just started may be unknown: Cassandra records
// it on the thread that runs it (RepairRunnable#runMayThrow in 4.1, RepairCoordinator in 5.0).
const recordedWithin = time.Minute

func repair(ctx context.Context, t *task) (string, error) {
	options := cassandra.RepairOptions{Incremental: !t.arguments.Full, Datacenters: t.arguments.Datacenters,
		PrimaryRangesOnly: t.arguments.PrimaryRange, Tables: t.arguments.Tables, Ranges: t.arguments.Ranges}
	if len(t.arguments.Without) > 0 {
		hosts, err := t.hostsWithout(ctx, t.arguments.Without)
		if err != nil {
			return "", err
		}
		options.Hosts = hosts
	}
	return t.eachKeyspace(ctx, "repaired", func(name string) error {
		unknown := time.Duration(0)
		if !t.resumed || t.handle.Asked {
			if started, err := t.startRepair(ctx, name, options); err != nil || !started {
				return err
			}
			unknown = recordedWithin
		}
		return t.awaitRepair(ctx, t.handle.Command, unknown)
	})
}

// stopRepair fails all repairs of the JVM: who cancels one has made sure that there is no other.
// Before its number is known it may not have begun.
func stopRepair(ctx context.Context, jvm JVM, h operation.Handle) error {
	if h.Command == 0 || h.Asked {
		return nil
	}
	return jvm.StopRepairs(ctx)
}

// hostsWithout are the addresses of the members that take part, in the node's own view: all but
// some, which must be down.
func (t *task) hostsWithout(ctx context.Context, hostIDs []string) ([]string, error) {
	ring, err := t.Ring(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range ring.Endpoints {
		switch {
		case !e.Member():
		case !slices.Contains(hostIDs, e.HostID):
			out = append(out, e.Address)
		case e.Live:
			return nil, fmt.Errorf("the member with host id %s is to be left out since it is lost, and is up at %s",
				e.HostID, e.Address)
		}
	}
	return out, nil
}

// startRepair starts one, which is noted as asked for, and notes its number. It says whether there
// is anything to repair. One whose number no agent has heard has to end before.
func (t *task) startRepair(ctx context.Context, keyspace string, options cassandra.RepairOptions) (bool, error) {
	for t.resumed {
		running, err := t.JVM.RunningRepairs(ctx, t.handle.Command)
		if err != nil {
			return false, err
		}
		if len(running) == 0 {
			break
		}
		if err := t.Wait(ctx, repairPoll); err != nil {
			return false, fmt.Errorf("await the end of the repair that runs: %w", err)
		}
	}
	if t.Cancelled() {
		return false, ErrCancelled
	}
	command, err := t.JVM.StartRepair(ctx, keyspace, options)
	if err != nil || command == 0 {
		return false, err // nothing to repair: the node has no range of it
	}
	t.handle.Command, t.handle.Asked = command, false
	_ = t.Note(t.handle) // it runs; without its number the next agent waits until none runs
	return true, nil
}

// awaitRepair waits for the end of a repair, which the JVM may not know yet for some time.
func (t *task) awaitRepair(ctx context.Context, command int, unknown time.Duration) error {
	for waited := time.Duration(0); ; {
		status, err := t.JVM.RepairStatus(ctx, command)
		switch {
		case err != nil:
			return err
		case status.State == cassandra.RepairCompleted:
			return nil
		case status.State == cassandra.RepairFailed:
			return fmt.Errorf("repair failed: %s", strings.Join(status.Messages, "; "))
		case status.State == cassandra.RepairInProgress:
			unknown = 0
		case waited >= unknown:
			return errors.New("the JVM does not know how the repair ended: it was restarted, or a day has passed")
		}
		pause := min(max(waited/4, repairPollFirst), repairPoll)
		waited += pause
		if err := t.Wait(ctx, pause); err != nil {
			return fmt.Errorf("await the end of repair %d: %w", command, err)
		}
	}
}
