package operation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"helenus.io/helenus/internal/cassandra"
)

// repairPoll is how often a repair is asked for: Cassandra loses what it tells by itself.
const repairPoll = 2 * time.Second

func repair(ctx context.Context, t *task) (string, error) {
	options := cassandra.RepairOptions{Incremental: !t.arguments.Full, Datacenters: t.arguments.Datacenters,
		PrimaryRangesOnly: t.arguments.PrimaryRange}
	return t.eachKeyspace(ctx, "repaired", func(name string) error {
		command, err := t.JVM.StartRepair(ctx, name, options)
		if err != nil || command == 0 {
			return err // nothing to repair: the node has no range of it
		}
		return t.awaitRepair(ctx, command)
	})
}

func (t *task) awaitRepair(ctx context.Context, command int) error {
	for {
		status, err := t.JVM.RepairStatus(ctx, command)
		switch {
		case err != nil:
			return err
		case status.State == cassandra.RepairCompleted:
			return nil
		case status.State == cassandra.RepairFailed:
			return fmt.Errorf("repair failed: %s", strings.Join(status.Messages, "; "))
		case status.State != cassandra.RepairInProgress:
			return fmt.Errorf("%w: the JVM does not know the repair, as one that was started since", ErrCutOff)
		}
		if err := t.Wait(ctx, repairPoll); err != nil {
			return fmt.Errorf("await the end of repair %d: %w", command, err)
		}
	}
}
