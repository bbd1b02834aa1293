package operation

import (
	"context"
	"errors"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/node/operation"
)

// cleanup looks again before each keyspace whether it may.
func cleanup(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "cleaned up", func(name string) error {
		if err := t.awaitResumed(ctx, cassandra.CompactionCleanup, name); err != nil {
			return err
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
