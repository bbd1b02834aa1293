package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/internal/jolokia"
)

// InvalidateCaches empties the caches of keys, rows and counters.
func (n *Node) InvalidateCaches(ctx context.Context) error {
	answers, err := n.jmx.Do(ctx, jolokia.Exec(beanCaches, "invalidateKeyCache()"),
		jolokia.Exec(beanCaches, "invalidateRowCache()"), jolokia.Exec(beanCaches, "invalidateCounterCache()"))
	for i := range answers {
		err = errors.Join(err, answers[i].Err)
	}
	if err != nil {
		return fmt.Errorf("invalidate caches: %w", err)
	}
	return nil
}

// RebuildIndex builds indexes of a table again. It blocks until done. Cassandra passes over a name
// that no index has (SecondaryIndexManager#rebuildIndexesBlocking, 4.1 and 5.0): that is an error.
func (n *Node) RebuildIndex(ctx context.Context, keyspace, table string, indexes []string) error {
	what := fmt.Sprintf("rebuild indexes of table %s.%s", keyspace, table)
	request := jolokia.Exec(beanStorageService,
		"rebuildSecondaryIndex(java.lang.String,java.lang.String,[Ljava.lang.String;)", keyspace, table, list(indexes))
	if err := n.callBlocking(ctx, request, nil); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var wire struct{ BuiltIndexes []string }
	bean := "org.apache.cassandra.db:type=Tables,keyspace=" + keyspace + ",table=" + table
	if err := n.call(ctx, jolokia.Read(bean, "BuiltIndexes"), &wire); err != nil {
		return fmt.Errorf("%s: read which are built: %w", what, err)
	}
	missing := slices.DeleteFunc(slices.Clone(indexes), func(name string) bool {
		return slices.Contains(wire.BuiltIndexes, name)
	})
	if len(missing) > 0 {
		return fmt.Errorf("%s: %s is not there, or was not built; those that are built: %s", what,
			strings.Join(missing, ", "), strings.Join(wire.BuiltIndexes, ", "))
	}
	return nil
}
