package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/internal/core/node/operation"
)

// cleanup looks again before each keyspace whether it may.
func cleanup(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "cleaned up", func(name string) error {
		if t.resumed {
			// Cassandra does not tell later how a cleanup ended. Another one finds nothing left to
			// do where it succeeded, and says so.
			if err := t.awaitCleanup(ctx, name); err != nil {
				return err
			}
		}
		ring, err := t.Ring(ctx)
		if err != nil {
			return err
		}
		if why := operation.CleanupRefused(ring); why != nil {
			return errors.New(why.Message)
		}
		if err := t.room(name); err != nil {
			return err
		}
		return t.JVM.Cleanup(ctx, int(t.arguments.Jobs), name)
	})
}

// room refuses a cleanup for which the disk is too small: it rewrites what stays of an SSTable
// before the old one goes, of as many at a time as there are jobs. A full disk would end the JVM
// (disk_failure_policy die).
func (t *task) room(keyspace string) error {
	sizes, free, err := t.Room(keyspace)
	if err != nil {
		return err
	}
	slices.Sort(sizes)
	needed := int64(0)
	for _, size := range sizes[max(0, len(sizes)-max(1, int(t.arguments.Jobs))):] {
		needed += size
	}
	if needed > free {
		return fmt.Errorf("it needs %d MiB to rewrite its largest SSTables, and %d MiB are free", needed>>20, free>>20)
	}
	return nil
}

// A cleanup goes from table to table, with nothing to be seen in between: it is over when it was
// not seen so many times in a row.
const (
	cleanupPoll    = 2 * time.Second
	unseenCleanups = 5
)

func (t *task) awaitCleanup(ctx context.Context, keyspace string) error {
	for unseen := 0; unseen < unseenCleanups; {
		running, err := t.JVM.RunningCleanups(ctx)
		if err != nil {
			return err
		}
		if unseen++; slices.Contains(running, keyspace) {
			unseen = 0
		}
		if err := t.Wait(ctx, cleanupPoll); err != nil {
			return fmt.Errorf("await the end of the cleanup that runs: %w", err)
		}
	}
	return nil
}
