package operation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/internal/cassandra"
)

// room refuses to rewrite SSTables for which the disk is too small: the new one is there before the
// old one goes, of as many at a time as there are jobs. A full disk would end the JVM
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

// What rewrites SSTables goes from table to table, with nothing to be seen in between: it is over
// when it was not seen so many times in a row.
const (
	rewritePoll     = 2 * time.Second
	unseenRewriting = 5
)

// awaitResumed waits for the end of what runs since before this agent. Cassandra does not tell
// later how it ended. Another one finds nothing left to do where it succeeded, and says so.
func (t *task) awaitResumed(ctx context.Context, c cassandra.Compaction, keyspace string) error {
	for unseen := 0; t.resumed && unseen < unseenRewriting; {
		running, err := t.JVM.Compacting(ctx, c)
		if err != nil {
			return err
		}
		if unseen++; slices.Contains(running, keyspace) {
			unseen = 0
		}
		if err := t.Wait(ctx, rewritePoll); err != nil {
			return fmt.Errorf("await the end of %q, which runs: %w", c, err)
		}
	}
	return nil
}
