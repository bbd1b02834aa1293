package operation

import (
	"context"
	"errors"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
)

func flush(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "flushed",
		func(name string) error { return t.JVM.Flush(ctx, name, t.arguments.Tables...) })
}

// snapshot removes what an attempt whose JVM ended has left under the tag, which may be half of it.
// One that was begun when its agent ended is taken by the JVM all the same.
func snapshot(ctx context.Context, t *task) (string, error) {
	ttl := time.Duration(0)
	if t.arguments.TTL != nil {
		ttl = t.arguments.TTL.Duration
	}
	return t.eachKeyspace(ctx, "snapshot "+t.arguments.Tag+" of", func(name string) error {
		if !t.resumed {
			if err := t.JVM.ClearSnapshot(ctx, t.arguments.Tag, name); err != nil {
				return err
			}
		}
		err := t.JVM.TakeSnapshot(ctx, t.arguments.Tag, ttl, name, t.arguments.Tables...)
		if t.resumed && errors.Is(err, cassandra.ErrSnapshotExists) {
			return nil
		}
		return err
	})
}

// truncate does not ask again for what an agent before this one has asked for: it may have been
// done long ago, and rows have come back since.
func truncate(ctx context.Context, t *task) (string, error) {
	if len(t.arguments.Keyspaces) != 1 || len(t.arguments.Tables) == 0 {
		return "", errors.New("truncate: name the tables, and their keyspace")
	}
	return t.eachKeyspace(ctx, "truncated "+strings.Join(t.arguments.Tables, ", ")+" of", func(name string) error {
		if t.resumed {
			return errors.New("the agent ended while it truncated: whether all is done is not known")
		}
		for _, table := range t.arguments.Tables {
			if err := t.JVM.Truncate(ctx, name, table); err != nil {
				return err
			}
		}
		return nil
	})
}

// clearSnapshot removes what was kept, or downloaded, under a tag.
func clearSnapshot(ctx context.Context, t *task) (string, error) {
	if strings.HasPrefix(t.arguments.Tag, v1alpha1.RestoreTagPrefix) {
		staging, err := t.Staging(t.arguments.Tag)
		if err != nil {
			return "", err
		}
		return "removed what was downloaded", errors.Join(staging.Clear(), staging.Close())
	}
	return t.eachKeyspace(ctx, "cleared snapshot "+t.arguments.Tag+" of",
		func(name string) error { return t.JVM.ClearSnapshot(ctx, t.arguments.Tag, name) })
}

func invalidateCaches(ctx context.Context, t *task) (string, error) {
	return "emptied the caches of keys, rows and counters", t.JVM.InvalidateCaches(ctx)
}

// rebuildIndex is not stopped once it runs: an index that is built half is not read by.
func rebuildIndex(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "rebuilt indexes in", func(name string) error {
		return t.JVM.RebuildIndex(ctx, name, t.arguments.Tables[0], t.arguments.Indexes)
	})
}
