package operation

import "context"

func alterSystemKeyspaces(ctx context.Context, t *task) (string, error) {
	if t.arguments.Exact {
		return t.JVM.SetSystemKeyspaces(ctx, t.arguments.Replication)
	}
	return t.JVM.AlterSystemKeyspaces(ctx, t.arguments.Replication)
}

func alterKeyspaces(ctx context.Context, t *task) (string, error) {
	replicas := map[string]map[string]int32{}
	for _, k := range t.arguments.KeyspaceReplication {
		replicas[k.Keyspace] = k.Replication
	}
	if t.arguments.Exact {
		return t.JVM.SetKeyspaces(ctx, replicas)
	}
	return t.JVM.AlterKeyspaces(ctx, replicas)
}
