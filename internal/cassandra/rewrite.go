package cassandra

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"helenus.io/helenus/internal/jolokia"
)

// Compaction is a kind of work on SSTables, as Cassandra names it.
type Compaction string

// Kinds of compactions (db/compaction/OperationType, 4.1 and 5.0). CompactionAny is one that
// Cassandra begins by itself, and in 4.1 also one that was asked for.
const (
	CompactionAny            Compaction = "Compaction"
	CompactionMajor          Compaction = "Major compaction"
	CompactionCleanup        Compaction = "Cleanup"
	CompactionUpgrade        Compaction = "Upgrade sstables"
	CompactionGarbageCollect Compaction = "Remove deleted data"
	CompactionScrub          Compaction = "Scrub"
	CompactionVerify         Compaction = "Verify"
)

// running is a compaction that runs, with its id.
type running struct {
	TaskType     Compaction
	Keyspace     string
	CompactionID string
}

// compactions are those that run just now, of some kinds.
func (n *Node) compactions(ctx context.Context, kinds []Compaction) ([]running, error) {
	var wire struct{ Compactions []running }
	if err := n.call(ctx, jolokia.Read(beanCompactionManager, "Compactions"), &wire); err != nil {
		return nil, fmt.Errorf("read which compactions run: %w", err)
	}
	return slices.DeleteFunc(wire.Compactions,
		func(c running) bool { return !slices.Contains(kinds, c.TaskType) }), nil
}

// Compacting are the keyspaces of which a table is in work just now by a kind of compaction.
func (n *Node) Compacting(ctx context.Context, kind Compaction) ([]string, error) {
	compactions, err := n.compactions(ctx, []Compaction{kind})
	var keyspaces []string
	for _, c := range compactions {
		keyspaces = append(keyspaces, c.Keyspace)
	}
	return keyspaces, err
}

// StopCompactions interrupts the compactions of some kinds that are in work on a keyspace just now.
// Who asked for them gets an error; what they have not replaced yet stays as it was.
func (n *Node) StopCompactions(ctx context.Context, keyspace string, kinds ...Compaction) error {
	compactions, err := n.compactions(ctx, kinds)
	if err != nil {
		return err
	}
	var requests []jolokia.Request
	for _, c := range compactions {
		if c.Keyspace == keyspace {
			requests = append(requests, jolokia.Exec(beanCompactionManager, "stopCompactionById(java.lang.String)",
				c.CompactionID))
		}
	}
	if len(requests) == 0 {
		return nil
	}
	answers, err := n.jmx.Do(ctx, requests...)
	for i := range answers {
		err = errors.Join(err, answers[i].Err)
	}
	if err != nil {
		return fmt.Errorf("stop compactions of keyspace %s: %w", keyspace, err)
	}
	return nil
}

// Cleanup removes the rows of one keyspace that this node no longer owns, from all tables or those
// named, with so many compactions at a time (0: as many as there are compactors). It blocks until
// done. The node refuses while ranges are moving to it.
func (n *Node) Cleanup(ctx context.Context, jobs int, keyspace string, tables ...string) error {
	return n.rewrite(ctx, "clean up keyspace "+keyspace, jolokia.Exec(beanStorageService,
		"forceKeyspaceCleanup(int,java.lang.String,[Ljava.lang.String;)", jobs, keyspace, list(tables)))
}

// UpgradeSSTables rewrites the SSTables of one keyspace, which may be local to the node, that have
// another version than new ones of their format get, with so many compactions at a time. It blocks
// until done.
func (n *Node) UpgradeSSTables(ctx context.Context, jobs int, keyspace string, tables ...string) error {
	const ofAnyAge = math.MaxInt64
	return n.rewrite(ctx, "upgrade the SSTables of keyspace "+keyspace, jolokia.Exec(beanStorageService,
		"upgradeSSTables(java.lang.String,boolean,long,int,[Ljava.lang.String;)", keyspace, true, int64(ofAnyAge), jobs,
		list(tables)))
}

// Compact merges the SSTables of each table of a keyspace: into one, or into several by size where
// the strategy of the table knows that (split). It blocks until done.
func (n *Node) Compact(ctx context.Context, split bool, keyspace string, tables ...string) error {
	request := jolokia.Exec(beanStorageService,
		"forceKeyspaceCompaction(boolean,java.lang.String,[Ljava.lang.String;)", split, keyspace, list(tables))
	if err := n.callBlocking(ctx, request, nil); err != nil {
		return fmt.Errorf("compact keyspace %s: %w", keyspace, err)
	}
	return nil
}

// GarbageCollect rewrites the SSTables of one keyspace without the rows that later ones delete or
// replace, as nodetool has it. It blocks until done.
func (n *Node) GarbageCollect(ctx context.Context, jobs int, keyspace string, tables ...string) error {
	const granularity = "ROW"
	return n.rewrite(ctx, "collect the garbage of keyspace "+keyspace, jolokia.Exec(beanStorageService,
		"garbageCollect(java.lang.String,int,java.lang.String,[Ljava.lang.String;)", granularity, jobs, keyspace,
		list(tables)))
}

// Scrub takes a snapshot of one keyspace and rewrites its SSTables without the rows that cannot be
// read, as nodetool has it. It blocks until done.
func (n *Node) Scrub(ctx context.Context, jobs int, keyspace string, tables ...string) error {
	const noSnapshot, skipCorruptedCounters, checkData, reinsertOverflowedTTL = false, false, true, false
	return n.rewrite(ctx, "scrub keyspace "+keyspace, jolokia.Exec(beanStorageService,
		"scrub(boolean,boolean,boolean,boolean,int,java.lang.String,[Ljava.lang.String;)", noSnapshot,
		skipCorruptedCounters, checkData, reinsertOverflowedTTL, jobs, keyspace, list(tables)))
}

// Verify compares the SSTables of one keyspace with their checksums. It changes nothing: neither
// what they say of repairs, nor is the failure policy asked. It blocks until done. The error names
// the first SSTable that is not as it was written.
func (n *Node) Verify(ctx context.Context, keyspace string, tables ...string) error {
	const everyRow, checkVersion, failurePolicy, unrepair, checkTokens, quick = false, false, false, false, false, false
	return n.rewrite(ctx, "verify keyspace "+keyspace, jolokia.Exec(beanStorageService,
		"verify(boolean,boolean,boolean,boolean,boolean,boolean,java.lang.String,[Ljava.lang.String;)", everyRow,
		checkVersion, failurePolicy, unrepair, checkTokens, quick, keyspace, list(tables)))
}

// list is an array on the wire, also where it is empty.
func list(names []string) []string { return append([]string{}, names...) }

// rewrite asks for SSTables to be rewritten.
func (n *Node) rewrite(ctx context.Context, what string, request jolokia.Request) error {
	var result int
	if err := n.callBlocking(ctx, request, &result); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	switch result { // CompactionManager.AllSSTableOpStatus
	case rewriteSuccessful:
		return nil
	case rewriteAborted:
		return fmt.Errorf("%s: aborted; the log of the node says why", what)
	case rewriteUnableToCancel:
		return fmt.Errorf("%s: compactions that are in the way could not be cancelled; try again later", what)
	default:
		return fmt.Errorf("%s: %w: unknown result %d", what, jolokia.ErrProtocol, result)
	}
}

const (
	rewriteSuccessful     = 0
	rewriteAborted        = 1
	rewriteUnableToCancel = 2
)
