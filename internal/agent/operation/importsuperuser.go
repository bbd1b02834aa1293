package operation

import (
	"context"
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/superuser"
)

// importSuperuser has the JVM load an SSTable with the role helenus_root, unless the node has a row
// of that name, whatever is in it; or with a time to write it at, by which it wins over that row.
// What is in memory is flushed before: it would not be found, and a flush while the JVM loads would
// be taken for a new SSTable.
func importSuperuser(ctx context.Context, t *task) (string, error) {
	secret, err := t.Secret(ctx, v1alpha1.RolesName(t.Record.Spec.Cluster.Name))
	if err != nil {
		return "", err
	}
	at := int64(superuser.Oldest)
	if t.arguments.WrittenAt != nil {
		// By the clock of the operator or of this node, whichever is ahead: what is there was
		// written by that of a node.
		at = max(t.arguments.WrittenAt.UnixMicro(), t.Now().UnixMicro())
	}
	files, err := superuser.SSTable(string(secret[v1alpha1.KeyRootHash]), at)
	if err != nil {
		return "", err
	}
	if err := t.JVM.Flush(ctx, superuser.Keyspace, superuser.Table); err != nil {
		return "", err
	}
	before, err := t.superuserIn(ctx)
	if err != nil || t.arguments.WrittenAt == nil && len(before) > 0 {
		return "role " + v1alpha1.RoleRoot + " was there already", err
	}
	if err := t.PlaceSSTable(superuser.Keyspace, superuser.Table+"-"+superuser.TableID, superuser.Name, files); err != nil {
		return "", err
	}
	if err := t.JVM.LoadNewSSTables(ctx, superuser.Keyspace, superuser.Table); err != nil {
		return "", err
	}
	in, err := t.superuserIn(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(in, func(path string) bool { return !slices.Contains(before, path) }) {
		return "", fmt.Errorf("the JVM has not loaded the SSTable with role %s; its log says why", v1alpha1.RoleRoot)
	}
	return "imported role " + v1alpha1.RoleRoot, nil
}

func (t *task) superuserIn(ctx context.Context) ([]string, error) {
	return t.JVM.SSTablesForKey(ctx, superuser.Keyspace, superuser.Table, v1alpha1.RoleRoot)
}
