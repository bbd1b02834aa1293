package operation

import (
	"context"
	"errors"

	"helenus.io/helenus/internal/cassandra"
)

// snapshot removes what an attempt whose JVM ended has left under the tag, which may be half of it.
// One that was begun when its agent ended is taken by the JVM all the same.
func snapshot(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "snapshot "+t.arguments.Tag+" of", func(name string) error {
		if !t.resumed {
			if err := t.JVM.ClearSnapshot(ctx, t.arguments.Tag, name); err != nil {
				return err
			}
		}
		err := t.JVM.TakeSnapshot(ctx, t.arguments.Tag, name)
		if t.resumed && errors.Is(err, cassandra.ErrSnapshotExists) {
			return nil
		}
		return err
	})
}
