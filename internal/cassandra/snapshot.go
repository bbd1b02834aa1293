package cassandra

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"helenus.io/helenus/internal/jolokia"
)

// ErrSnapshotExists means that a keyspace has a snapshot under the tag already.
var ErrSnapshotExists = errors.New("the snapshot exists")

// TakeSnapshot writes what is in memory of a keyspace to the disk, and keeps its SSTables, by hard
// links, under a tag. A keyspace may be one that is local to the node.
func (n *Node) TakeSnapshot(ctx context.Context, tag, keyspace string) error {
	request := jolokia.Exec(beanStorageService, "takeSnapshot(java.lang.String,java.util.Map,[Ljava.lang.String;)",
		tag, map[string]string{}, []string{keyspace})
	err := n.callBlocking(ctx, request, nil)
	if refusal := (*jolokia.Error)(nil); errors.As(err, &refusal) &&
		strings.Contains(refusal.Message, "already exists") { // StorageService#takeSnapshot, 4.1 and 5.0
		err = fmt.Errorf("%w: %w", ErrSnapshotExists, err)
	}
	if err != nil {
		return fmt.Errorf("take snapshot %s of keyspace %s: %w", tag, keyspace, err)
	}
	return nil
}

// ClearSnapshot removes the snapshot that a keyspace has under a tag, if there is one. Without a
// tag Cassandra would remove all.
func (n *Node) ClearSnapshot(ctx context.Context, tag, keyspace string) error {
	request := jolokia.Exec(beanStorageService, "clearSnapshot(java.lang.String,[Ljava.lang.String;)", tag,
		[]string{keyspace})
	if err := n.callBlocking(ctx, request, nil); err != nil {
		return fmt.Errorf("clear snapshot %s of keyspace %s: %w", tag, keyspace, err)
	}
	return nil
}
