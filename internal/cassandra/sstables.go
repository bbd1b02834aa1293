package cassandra

import (
	"context"
	"fmt"

	"helenus.io/helenus/internal/jolokia"
)

// SSTablesForKey are the paths of the SSTables in use that have a partition, by its key as text.
// What is in memory alone is not found: flush it before.
func (n *Node) SSTablesForKey(ctx context.Context, keyspace, table, key string) ([]string, error) {
	var paths []string
	bean := "org.apache.cassandra.db:type=Tables,keyspace=" + keyspace + ",table=" + table
	if err := n.call(ctx, jolokia.Exec(bean, "getSSTablesForKey(java.lang.String)", key), &paths); err != nil {
		return nil, fmt.Errorf("look for key %s in table %s.%s: %w", key, keyspace, table, err)
	}
	return paths, nil
}

// LoadNewSSTables has a table use the SSTables that were put into its directory, under names of its
// own. It passes over files of a format that it cannot read, or that are no SSTable yet: look
// whether they are in use. A flush that ends meanwhile would be taken for a new one
// (SSTableImporter#importNewSSTables, 4.1 and 5.0): nothing may write to the table.
func (n *Node) LoadNewSSTables(ctx context.Context, keyspace, table string) error {
	request := jolokia.Exec(beanStorageService, "loadNewSSTables(java.lang.String,java.lang.String)", keyspace, table)
	if err := n.callBlocking(ctx, request, nil); err != nil {
		return fmt.Errorf("load new SSTables of table %s.%s: %w", keyspace, table, err)
	}
	return nil
}

// Truncate removes all rows of a table, and of its views, on all members of the ring: each must be
// up, and Cassandra waits until all have done so (StorageProxy#truncateBlocking, 4.1 and 5.0).
func (n *Node) Truncate(ctx context.Context, keyspace, table string) error {
	request := jolokia.Exec(beanStorageService, "truncate(java.lang.String,java.lang.String)", keyspace, table)
	if err := n.callBlocking(ctx, request, nil); err != nil {
		return fmt.Errorf("truncate table %s.%s: %w", keyspace, table, err)
	}
	return nil
}

// BulkLoad streams the SSTables in a directory to all nodes that own their rows now, this one among
// them. The last two names of the directory are those of keyspace and table. It passes over files
// of a table that is not there, or of a format that it cannot read, and takes columns of another
// type as they are (SSTableLoader, 4.1 and 5.0): look before. All owners must be up.
func (n *Node) BulkLoad(ctx context.Context, directory string) error {
	if err := n.callBlocking(ctx, jolokia.Exec(beanStorageService, "bulkLoad(java.lang.String)", directory),
		nil); err != nil {
		return fmt.Errorf("load the SSTables in %s: %w", directory, err)
	}
	return nil
}
