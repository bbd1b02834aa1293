package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
	"helenus.io/helenus/internal/jolokia"
)

// JVM is what operations ask of Cassandra. A call that blocks returns when Cassandra is done.
type JVM interface {
	// AlterSystemKeyspaces gives the system keyspaces at least so many replicas by datacenter,
	// AlterKeyspaces other ones by their names. They take none away.
	AlterSystemKeyspaces(ctx context.Context, least map[string]int32) (message string, err error)
	AlterKeyspaces(ctx context.Context, least map[string]map[string]int32) (message string, err error)
	// SetSystemKeyspaces gives the system keyspaces exactly so many replicas by datacenter.
	SetSystemKeyspaces(ctx context.Context, exact map[string]int32) (message string, err error)
	// SetKeyspaces does the same to other ones by their names.
	SetKeyspaces(ctx context.Context, exact map[string]map[string]int32) (message string, err error)
	// ForgetStreamedRanges has the next rebuild of a keyspace stream all of its ranges.
	ForgetStreamedRanges(ctx context.Context, keyspace string) error

	// SetRoles gives the system keyspaces at least so many replicas by datacenter, makes the roles
	// of the logins, and locks those whose password others know. ProveLogin is nil if the node lets
	// in whom SetRoles has made, and nobody whose password others know. SetPassword gives the
	// superuser its password by the one before.
	SetRoles(ctx context.Context, logins cassandra.Logins, least map[string]int32) (message string, err error)
	ProveLogin(ctx context.Context, logins cassandra.Logins) error
	// ProvePassword is nil if the node lets the superuser in, and refuses his password before.
	ProvePassword(ctx context.Context, superuser cassandra.Login, old string) error
	SetPassword(ctx context.Context, logins cassandra.Logins) (message string, err error)
	// KeepRoles makes roles of applications, or makes them so, as a superuser.
	KeepRoles(ctx context.Context, superuser cassandra.Login, roles []cassandra.KeptRole) (message string, err error)
	// CheckRows asks queries, where a password is asked for as a superuser.
	CheckRows(ctx context.Context, superuser cassandra.Login, checks []v1alpha1.RowCheck) (message string, err error)

	// The others are those of cassandra.Node.
	Assassinate(ctx context.Context, endpoint string) error
	Decommission(ctx context.Context, force bool) error
	RemoveNode(ctx context.Context, hostID string) error
	Cleanup(ctx context.Context, jobs int, keyspace string, tables ...string) error
	Flush(ctx context.Context, keyspace string, tables ...string) error
	Rebuild(ctx context.Context, sourceDatacenter, keyspace string) error
	RebuildIndex(ctx context.Context, keyspace, table string, indexes []string) error
	InvalidateCaches(ctx context.Context) error
	StartRepair(ctx context.Context, keyspace string, options cassandra.RepairOptions) (command int, err error)
	RepairStatus(ctx context.Context, command int) (cassandra.RepairStatus, error)
	RunningRepairs(ctx context.Context, after int) ([]int, error)
	StopRepairs(ctx context.Context) error
	UpgradeSSTables(ctx context.Context, jobs int, keyspace string, tables ...string) error
	Compact(ctx context.Context, split bool, keyspace string, tables ...string) error
	GarbageCollect(ctx context.Context, jobs int, keyspace string, tables ...string) error
	Scrub(ctx context.Context, jobs int, keyspace string, tables ...string) error
	Verify(ctx context.Context, keyspace string, tables ...string) error
	Compacting(ctx context.Context, c cassandra.Compaction) (keyspaces []string, err error)
	StopCompactions(ctx context.Context, keyspace string, kinds ...cassandra.Compaction) error
	TakeSnapshot(ctx context.Context, tag string, ttl time.Duration, keyspace string, tables ...string) error
	ClearSnapshot(ctx context.Context, tag, keyspace string) error
	SSTablesForKey(ctx context.Context, keyspace, table, key string) (paths []string, err error)
	LoadNewSSTables(ctx context.Context, keyspace, table string) error
	BulkLoad(ctx context.Context, directory string) error
	Truncate(ctx context.Context, keyspace, table string) error
	Reads(ctx context.Context) (cassandra.Reads, error)
	// Describe has the statements that create the types, tables and views of a keyspace.
	Describe(ctx context.Context, keyspace string) (string, error)
}

// Host is what an operation works with.
type Host struct {
	JVM JVM
	// Ring is how the JVM sees the ring at this moment.
	Ring func(ctx context.Context) (*facts.Ring, error)
	// NodesAt are the nodes whose agents answer at an address now.
	NodesAt func(ctx context.Context, address string) []string
	// Room is how large the SSTables of a keyspace are by table, and what is free on their volume,
	// in bytes.
	Room func(keyspace string) (sizes map[string][]int64, free int64, err error)
	// PlaceSSTable puts an SSTable into the directory of a table, for the JVM to load it.
	PlaceSSTable func(keyspace, table, name string, files map[string][]byte) error
	// Secret reads a Secret of the namespace.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	// Record of the node as it was when the operation began; from the journal it has no namespace.
	Record *v1alpha1.CassandraNode
	// Snapshots are those of all tables under a tag.
	Snapshots func(tag string) ([]disk.Snapshot, error)
	// Store opens one. Uploads is how many files are put into it at a time.
	Store   func(ctx context.Context, spec *v1alpha1.BackupStoreSpec) (store.Store, error)
	Uploads int
	// DataVolume is the directory of the volume with the snapshots; empty if it is no real one.
	DataVolume string
	// Staging is what was downloaded under a tag.
	Staging func(tag string) (Staging, error)
	// Cancelled says that the operation is to end, as soon as it can.
	Cancelled func() bool
	// Note keeps for the next agent what of the operation runs in the JVM.
	Note func(operation.Handle) error
	// Say tells how far the operation is: so many parts of all are done, and what it does now.
	Say func(finished, all int, message string)
	// Now is the time.
	Now func() time.Time
	// Wait returns after some time, or earlier with the error of ctx.
	Wait func(ctx context.Context, d time.Duration) error
}

// Staging is what was downloaded under a tag: see disk.Staging.
type Staging interface {
	HasFile(name string, size int64, sum string) bool
	PlaceFile(name string, size int64, sum string, content io.Reader) error
	Complete() error
	Tables() ([]string, error)
	Loaded(table string) error
	Clear() error
	ClearOthers() error
	Close() error
}

// ErrCutOff means that the JVM went silent while it did something, so that it is not known what
// came of it.
var ErrCutOff = errors.New("cut off")

// ErrCancelled means that an operation has ended since that was asked for.
var ErrCancelled = errors.New("cancelled")

// task is one operation under way.
type task struct {
	*Host
	intent    *v1alpha1.OperationIntent
	arguments v1alpha1.OperationArguments
	// handle is what runs, and resumed says that it has run since before this agent followed it.
	handle  operation.Handle
	resumed bool
}

// carrier carries a type of operation out.
type carrier struct {
	// run says what was done.
	run func(context.Context, *task) (string, error)
	// stop has what runs in the JVM by a handle end; nil where Cassandra does not end it.
	stop func(context.Context, JVM, operation.Handle) error
}

//nolint:gochecknoglobals // a table
var table = map[v1alpha1.OperationType]carrier{
	v1alpha1.OperationAlterSystemKeyspaces: {alterSystemKeyspaces, nil},
	v1alpha1.OperationAlterKeyspaces:       {alterKeyspaces, nil},
	v1alpha1.OperationAssassinate:          {assassinate, nil},
	v1alpha1.OperationCleanup:              {cleanup.run, cleanup.stop},
	v1alpha1.OperationDecommission:         {decommission, nil},
	v1alpha1.OperationFlush:                {flush, nil},
	v1alpha1.OperationRebuild:              {rebuild, nil},
	v1alpha1.OperationRepair:               {repair, stopRepair},
	v1alpha1.OperationSnapshot:             {snapshot, nil},
	v1alpha1.OperationClearSnapshot:        {clearSnapshot, nil},
	v1alpha1.OperationUpgradeSSTables:      {upgradeSSTables.run, upgradeSSTables.stop},
	v1alpha1.OperationCompact:              {compact.run, compact.stop},
	v1alpha1.OperationGarbageCollect:       {garbageCollect.run, garbageCollect.stop},
	v1alpha1.OperationScrub:                {scrub.run, scrub.stop},
	v1alpha1.OperationVerify:               {verify.run, verify.stop},
	v1alpha1.OperationInvalidateCaches:     {invalidateCaches, nil},
	v1alpha1.OperationRebuildIndex:         {rebuildIndex, nil},
	v1alpha1.OperationRemoveNode:           {removeNode, nil},
	v1alpha1.OperationImportSuperuser:      {importSuperuser, nil},
	v1alpha1.OperationSetRoles:             {setRoles, nil},
	v1alpha1.OperationProveLogin:           {proveLogin, nil},
	v1alpha1.OperationSetPassword:          {setPassword, nil},
	v1alpha1.OperationKeepRoles:            {keepRoles, nil},
	v1alpha1.OperationCheckRows:            {checkRows, nil},
	v1alpha1.OperationUpload:               {upload, nil},
	v1alpha1.OperationCompleteBackup:       {completeBackup, nil},
	v1alpha1.OperationStageTables:          {stageTables, nil},
	v1alpha1.OperationLoadTables:           {loadTables, nil},
	v1alpha1.OperationTruncate:             {truncate, nil},
}

// Stop has what runs in the JVM for an operation end, where Cassandra can. Between two keyspaces,
// and two tables, nothing may run: call it until the operation has ended.
func Stop(ctx context.Context, jvm JVM, t v1alpha1.OperationType, h operation.Handle) error {
	if stop := table[t].stop; stop != nil {
		return stop(ctx, jvm, h)
	}
	return nil
}

// Run carries an operation out and says what was done: from the beginning, or from what continues
// in the JVM by the handle of an earlier Run. The error is ErrCutOff where the JVM went silent
// meanwhile.
func Run(ctx context.Context, h *Host, o *v1alpha1.OperationIntent, from *operation.Handle) (string, error) {
	carrier, known := table[o.Type]
	if !known {
		return "", fmt.Errorf("operation %s is not known", o.Type)
	}
	t := &task{Host: h, intent: o}
	if o.Arguments != nil {
		t.arguments = *o.Arguments
	}
	if from != nil {
		t.handle, t.resumed = *from, true
	}
	message, err := carrier.run(ctx, t)
	if err != nil && h.Cancelled() && !errors.Is(err, ErrCancelled) {
		err = fmt.Errorf("%w: %w", ErrCancelled, err)
	}
	if errors.Is(err, jolokia.ErrUnreachable) {
		err = fmt.Errorf("%w: %w", ErrCutOff, err)
	}
	return message, err
}

// eachKeyspace does one keyspace after the other, each of which is noted before it begins. The
// first error ends it, and says what was done before. While it does a keyspace, resumed says that
// this may run in the JVM since before.
func (t *task) eachKeyspace(ctx context.Context, verb string, do func(name string) error) (string, error) {
	ring, err := t.Ring(ctx)
	if err != nil {
		return "", err
	}
	names, skipped, err := operation.Keyspaces(t.intent, ring)
	if err != nil {
		return "", err
	}
	done := "there is no keyspace to do it for"
	if len(names) > 0 {
		done = verb + " " + strings.Join(names, ", ")
	}
	if len(skipped) > 0 {
		done += "; skipped " + strings.Join(skipped, "; ")
	}
	for i, name := range names {
		if name < t.handle.Keyspace {
			continue
		}
		if t.resumed = t.resumed && name == t.handle.Keyspace; !t.resumed {
			t.handle.Keyspace, t.handle.Asked = name, true // Command is another's
		}
		if err := t.Note(t.handle); err != nil {
			return "", err
		}
		t.Say(i, len(names), fmt.Sprintf("keyspace %s, %d of %d", name, i+1, len(names)))
		err := ErrCancelled
		if t.resumed || !t.Cancelled() {
			err = do(name)
		}
		if err != nil {
			if i > 0 {
				return "", fmt.Errorf("keyspace %s: %w (%s before: %s)", name, err, verb, strings.Join(names[:i], ", "))
			}
			return "", fmt.Errorf("keyspace %s: %w", name, err)
		}
	}
	return done, nil
}
