package cassandra

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helenus.io/helenus/internal/jolokia"
)

// ErrSnapshotExists means that a keyspace has a snapshot under the tag already.
var ErrSnapshotExists = errors.New("the snapshot exists")

// TakeSnapshot writes what is in memory of a keyspace to the disk, and keeps its SSTables, by hard
// links, under a tag: of all tables or those named, for so long, or until it is cleared (0). A
// keyspace may be one that is local to the node.
func (n *Node) TakeSnapshot(ctx context.Context, tag string, ttl time.Duration, keyspace string,
	tables ...string) error {
	options, of := map[string]string{}, []string{keyspace}
	if ttl > 0 {
		options["ttl"] = fmt.Sprintf("%ds", int(ttl.Seconds()))
	}
	if len(tables) > 0 {
		of = nil
	}
	for _, table := range tables {
		of = append(of, keyspace+"."+table)
	}
	request := jolokia.Exec(beanStorageService, "takeSnapshot(java.lang.String,java.util.Map,[Ljava.lang.String;)",
		tag, options, of)
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
