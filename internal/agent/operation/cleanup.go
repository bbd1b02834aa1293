package operation

import (
	"context"
	"errors"

	"helenus.io/helenus/internal/core/node/operation"
)

// cleanup looks again before each keyspace whether ranges move.
func cleanup(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "cleaned up", func(name string) error {
		ring, err := t.Ring(ctx)
		if err != nil {
			return err
		}
		if why := operation.RangesMove(ring); why != "" {
			return errors.New(why)
		}
		return t.JVM.Cleanup(ctx, int(t.arguments.Jobs), name)
	})
}
