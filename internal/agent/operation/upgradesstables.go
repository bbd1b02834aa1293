package operation

import (
	"context"

	"helenus.io/helenus/internal/cassandra"
)

func upgradeSSTables(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "upgraded", func(name string) error {
		if err := t.awaitResumed(ctx, cassandra.CompactionUpgrade, name); err != nil {
			return err
		}
		if err := t.room(name); err != nil {
			return err
		}
		return t.JVM.UpgradeSSTables(ctx, int(t.arguments.Jobs), name)
	})
}
