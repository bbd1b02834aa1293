package cassandra

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/jolokia"
)

// Rebuild streams to this node, from another datacenter, the data of its ranges: of one keyspace,
// or of all if keyspace is empty. It blocks until the data is here. The node refuses a datacenter
// that it does not know, and a second rebuild while one runs.
func (n *Node) Rebuild(ctx context.Context, sourceDatacenter, keyspace string) error {
	request := jolokia.Exec(beanStorageService, "rebuild(java.lang.String)", sourceDatacenter)
	if keyspace != "" {
		// Tokens and sources: all.
		request = jolokia.Exec(beanStorageService,
			"rebuild(java.lang.String,java.lang.String,java.lang.String,java.lang.String)",
			sourceDatacenter, keyspace, nil, nil)
	}
	err := n.callBlocking(ctx, request, nil)
	if refusal := (*jolokia.Error)(nil); errors.As(err, &refusal) &&
		strings.Contains(refusal.Message, "still rebuilding") { // StorageService#rebuild, 4.1 and 5.0
		err = fmt.Errorf("%w: %w", ErrRebuilding, err)
	}
	if err != nil {
		return fmt.Errorf("rebuild from datacenter %s: %w", sourceDatacenter, err)
	}
	return nil
}

// Decommission has the node stream its data to those that take its place, and leave the ring. It
// blocks until the node has left; 5.0 returns at once if one runs already. The node refuses if a
// keyspace has as many replicas as its datacenter has nodes, unless it is forced.
func (n *Node) Decommission(ctx context.Context, force bool) error {
	err := n.callBlocking(ctx, jolokia.Exec(beanStorageService, "decommission(boolean)", force), nil)
	if refusal := (*jolokia.Error)(nil); errors.As(err, &refusal) &&
		strings.Contains(refusal.Message, "still decommissioning") { // StorageService#decommission, 4.1 and 5.0
		err = fmt.Errorf("%w: %w", ErrLeaving, err)
	}
	if err != nil {
		return fmt.Errorf("decommission: %w", err)
	}
	return nil
}

// RemoveNode removes the member with a host id, which must be down, from the ring. The new owners
// of its ranges stream the data from the other replicas. It blocks for the ring delay (30 s) and
// until all of them have finished (measured on 5.0: 33 s without data).
func (n *Node) RemoveNode(ctx context.Context, hostID string) error {
	err := n.callBlocking(ctx, jolokia.Exec(beanStorageService, "removeNode(java.lang.String)", hostID), nil)
	if refusal := (*jolokia.Error)(nil); errors.As(err, &refusal) &&
		strings.Contains(refusal.Message, "already processing a removal") { // StorageService#removeNode, 4.1 and 5.0
		err = fmt.Errorf("%w: %w", ErrRemoving, err)
	}
	if err != nil {
		return fmt.Errorf("remove node %s: %w", hostID, err)
	}
	return nil
}

// ErrRemoving means that this node coordinates another removal already.
var ErrRemoving = errors.New("another removal runs")

// ErrLeaving means that the node leaves the ring already.
var ErrLeaving = errors.New("another decommission runs")

// ErrRebuilding means that the node is being rebuilt already.
var ErrRebuilding = errors.New("another rebuild runs")

// Streams reads the sums over the streaming sessions that this node takes part in now. Sessions
// come when they begin and are gone when they end: the sums show that data flows, not how much is
// left. It asks for the sums only: the whole answer lists every file.
func (n *Node) Streams(ctx context.Context) (facts.Transfer, error) {
	names := []string{"currentRxBytes", "totalRxBytes", "currentTxBytes", "totalTxBytes"}
	requests := make([]jolokia.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, jolokia.ReadPath(beanStreamManager, "CurrentStreams", "*/"+name))
	}
	answers, err := n.jmx.Do(ctx, requests...)
	if err != nil {
		return facts.Transfer{}, fmt.Errorf("read streams: %w", err)
	}
	var sums [4]int64
	var streams facts.Transfer
	for i := range names {
		var bytes []int64
		if err := answers[i].Decode(&bytes); err != nil {
			return facts.Transfer{}, fmt.Errorf("read streams: %w", whileStarting(err))
		}
		for _, b := range bytes {
			sums[i] += b
		}
		streams.Plans = max(streams.Plans, len(bytes))
	}
	streams.Received, streams.ToReceive, streams.Sent, streams.ToSend = sums[0], sums[1], sums[2], sums[3]
	return streams, nil
}

// Unfinished counts the logged batches that are not known to have reached all of their replicas,
// for which Cassandra reads all of system.batches, tombstones included
// (BatchlogManager#countAllBatches), and the incremental repairs that this node takes part in and
// that are neither finished nor failed (LocalSessions#sessionInfo); both in 4.1 and 5.0.
func (n *Node) Unfinished(ctx context.Context) (facts.Unfinished, error) {
	var out facts.Unfinished
	answers, err := n.jmx.Do(ctx, jolokia.Exec(beanBatchlogManager, "countAllBatches()"),
		jolokia.Exec(beanRepairService, "getSessions(boolean,java.lang.String)", false, ""))
	if err != nil {
		return out, fmt.Errorf("count batches and repairs: %w", err)
	}
	var repairs []struct{}
	if err := errors.Join(answers[0].Decode(&out.Batches), answers[1].Decode(&repairs)); err != nil {
		return facts.Unfinished{}, fmt.Errorf("count batches and repairs: %w", err)
	}
	out.IncrementalRepairs = len(repairs)
	return out, nil
}

// PendingRanges counts the ranges of keyspaces that are on their way to new owners, as far as this
// node knows.
func (n *Node) PendingRanges(ctx context.Context, keyspaces []string) (int, error) {
	requests := make([]jolokia.Request, 0, len(keyspaces))
	for _, keyspace := range keyspaces {
		requests = append(requests, jolokia.Exec(beanStorageService,
			"getPendingRangeToEndpointWithPortMap(java.lang.String)", keyspace))
	}
	answers, err := n.jmx.Do(ctx, requests...)
	if err != nil {
		return 0, fmt.Errorf("read pending ranges: %w", err)
	}
	count := 0
	for i, keyspace := range keyspaces {
		// The key is a list of two tokens, which arrives as text.
		var wire map[string][]string
		if err := answers[i].Decode(&wire); err != nil {
			return 0, fmt.Errorf("read pending ranges of keyspace %s: %w", keyspace, whileStarting(err))
		}
		count += len(wire)
	}
	return count, nil
}
