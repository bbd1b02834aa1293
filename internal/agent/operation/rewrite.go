package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
)

// rewriting is an operation that rewrites the SSTables of one keyspace after the other, or reads
// them all.
type rewriting struct {
	// verb says what was done.
	verb string
	// kinds are what Cassandra names it. The first one is its own; another one may be of others,
	// too, which stand back for it, and begin again when they are stopped.
	kinds []cassandra.Compaction
	// room is how many bytes it writes before it can remove any; nil if it writes none.
	room func(sizes map[string][]int64, jobs int) int64
	// refused says why it may not begin on the next keyspace; a nil one never does.
	refused func(*facts.Ring) *operation.Refusal
	call    func(ctx context.Context, t *task, keyspace string) error
}

//nolint:gochecknoglobals // entries of the table
var (
	cleanup = rewriting{
		verb: "cleaned up", kinds: []cassandra.Compaction{cassandra.CompactionCleanup}, room: largestSSTables,
		refused: operation.CleanupRefused,
		call: func(ctx context.Context, t *task, keyspace string) error {
			return t.JVM.Cleanup(ctx, int(t.arguments.Jobs), keyspace, t.arguments.Tables...)
		},
	}
	upgradeSSTables = rewriting{
		verb: "upgraded", kinds: []cassandra.Compaction{cassandra.CompactionUpgrade}, room: largestSSTables,
		call: func(ctx context.Context, t *task, keyspace string) error {
			return t.JVM.UpgradeSSTables(ctx, int(t.arguments.Jobs), keyspace, t.arguments.Tables...)
		},
	}
	compact = rewriting{
		verb: "compacted", room: largestTable,
		kinds: []cassandra.Compaction{cassandra.CompactionMajor, cassandra.CompactionAny},
		call: func(ctx context.Context, t *task, keyspace string) error {
			return t.JVM.Compact(ctx, t.arguments.Split, keyspace, t.arguments.Tables...)
		},
	}
	garbageCollect = rewriting{
		verb: "collected the garbage of", kinds: []cassandra.Compaction{cassandra.CompactionGarbageCollect},
		room: largestTable,
		call: func(ctx context.Context, t *task, keyspace string) error {
			return t.JVM.GarbageCollect(ctx, int(t.arguments.Jobs), keyspace, t.arguments.Tables...)
		},
	}
	// scrub takes a snapshot, which keeps all that it replaces.
	scrub = rewriting{
		verb: "scrubbed", kinds: []cassandra.Compaction{cassandra.CompactionScrub}, room: allTables,
		call: func(ctx context.Context, t *task, keyspace string) error {
			return t.JVM.Scrub(ctx, int(t.arguments.Jobs), keyspace, t.arguments.Tables...)
		},
	}
	verify = rewriting{
		verb: "verified", kinds: []cassandra.Compaction{cassandra.CompactionVerify},
		call: func(ctx context.Context, t *task, keyspace string) error {
			return t.JVM.Verify(ctx, keyspace, t.arguments.Tables...)
		},
	}
)

// run looks again before each keyspace whether it may.
func (r rewriting) run(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, r.verb, func(name string) error {
		if err := t.awaitResumed(ctx, r.kinds[0], name); err != nil {
			return err
		}
		if r.refused != nil {
			ring, err := t.Ring(ctx)
			if err != nil {
				return err
			}
			if why := r.refused(ring); why != nil {
				return errors.New(why.Message)
			}
		}
		if r.room != nil {
			if err := t.checkRoom(name, r.room); err != nil {
				return err
			}
		}
		if t.Cancelled() { // the one that was waited for was stopped
			return ErrCancelled
		}
		return r.call(ctx, t, name)
	})
}

// stop has it end on the keyspace in work.
func (r rewriting) stop(ctx context.Context, jvm JVM, h operation.Handle) error {
	if h.Keyspace == "" {
		return nil
	}
	return jvm.StopCompactions(ctx, h.Keyspace, r.kinds...)
}

// checkRoom refuses to rewrite SSTables for which the disk is too small: what is written is there
// before the old ones go. A full disk would end the JVM (disk_failure_policy die).
func (t *task) checkRoom(keyspace string, room func(map[string][]int64, int) int64) error {
	sizes, free, err := t.Room(keyspace)
	if err != nil {
		return err
	}
	if named := t.arguments.Tables; len(named) > 0 {
		for table := range sizes {
			if !slices.Contains(named, table) {
				delete(sizes, table)
			}
		}
	}
	if needed := room(sizes, int(t.arguments.Jobs)); needed > free {
		return fmt.Errorf("it may write %d MiB before it removes what it replaces, and %d MiB are free", needed>>20,
			free>>20)
	}
	return nil
}

// largestSSTables is for what rewrites each SSTable by itself: as many at a time as there are jobs.
func largestSSTables(sizes map[string][]int64, jobs int) int64 {
	var all []int64
	for _, of := range sizes {
		all = append(all, of...)
	}
	slices.Sort(all)
	return sum(all[max(0, len(all)-max(1, jobs)):])
}

// largestTable is for what rewrites a whole table, one after the other.
func largestTable(sizes map[string][]int64, _ int) int64 {
	largest := int64(0)
	for _, of := range sizes {
		largest = max(largest, sum(of))
	}
	return largest
}

// allTables is for what keeps all that it replaces.
func allTables(sizes map[string][]int64, _ int) int64 {
	all := int64(0)
	for _, of := range sizes {
		all += sum(of)
	}
	return all
}

func sum(sizes []int64) int64 {
	out := int64(0)
	for _, size := range sizes {
		out += size
	}
	return out
}

// What rewrites SSTables goes from table to table, with nothing to be seen in between: it is over
// when it was not seen so many times in a row.
const (
	rewritePoll     = 2 * time.Second
	unseenRewriting = 5
)

// awaitResumed waits for the end of what runs since before this agent. Cassandra does not tell
// later how it ended. Another one finds nothing left to do where it succeeded, or does it again.
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
