package operation

import "context"

func flush(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "flushed", func(name string) error { return t.JVM.Flush(ctx, name) })
}
