package operation

import "context"

func rebuild(ctx context.Context, t *task) (string, error) {
	return t.eachKeyspace(ctx, "rebuilt", func(name string) error {
		return t.JVM.Rebuild(ctx, t.arguments.SourceDatacenter, name)
	})
}
