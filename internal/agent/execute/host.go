package execute

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/operation"
	"helenus.io/helenus/internal/agent/restore"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/threads"
)

// Host is everything an agent touches.
type Host struct {
	Threads threads.Threads
	Init    Init
	Journal Journal
	Disk    Disk
	Files   Files
	JVM     JVM
	Record  Record
	Peers   Peers
	// Certificates are those of Cassandra.
	Certificates Certificates
	// Store opens a store of backups, into which so many files are put at a time.
	Store   func(ctx context.Context, spec *v1alpha1.BackupStoreSpec) (store.Store, error)
	Uploads int
	// LogVolume is the directory of the volume with the commit log, DataVolume that of the data;
	// empty if it is no real one.
	LogVolume, DataVolume string
	// Staging is what was downloaded of one under a tag.
	Staging func(tag string) (operation.Staging, error)
	// Logf writes one line of the agent's log.
	Logf func(format string, args ...any)
}

// Init is the client of helenus-init.
type Init interface {
	State(ctx context.Context) (initapi.State, error)
	WaitChange(ctx context.Context, seen initapi.State, limit time.Duration) (initapi.State, error)
	Start(ctx context.Context, seen initapi.State, id uint64, command initclient.Command) (initapi.State, error)
	Signal(ctx context.Context, seen initapi.State, p initapi.Process, signal initclient.Signal) (initapi.State, error)
	TakeStop(ctx context.Context, seen initapi.State, lease time.Duration) (initapi.State, error)
}

// Journal keeps the memory on the data volume.
type Journal interface {
	// Load reads it once, at the start. An error means that nothing may be started on this disk.
	Load() (node.Memory, error)
	// Put returns when it is durable.
	Put(memory node.Memory) error
}

// Disk looks at the volumes and marks them.
type Disk interface {
	Inspect(ctx context.Context) node.Disk
	// Mark makes the volumes those of a node. Markers of from (another uid that is being adopted;
	// empty for none) are replaced, others are an error.
	Mark(volumes []string, cluster types.UID, node string, from types.UID) error
	// WipeRows removes what an unfinished join has streamed.
	WipeRows() error
	// SSTables are the sizes of those of a keyspace.
	SSTables(keyspace string) (map[string][]int64, error)
	// PlaceSSTable puts an SSTable into the directory of a table, for Cassandra to load it.
	PlaceSSTable(keyspace, table, name string, files map[string][]byte) error
	// Snapshots are those of all tables under a tag.
	Snapshots(tag string) ([]disk.Snapshot, error)
	// The files of tables are placed while no JVM runs.
	restore.Disk
	// Hints counts the files of hints by the host id that they are for.
	Hints() (map[string]int, error)
	// Space is what the data volume has room for.
	Space() (free, capacity int64, err error)
	// Probe has a few bytes written to the volumes, each of which is named before, and says how one
	// fails. It may hang.
	Probe(begins func(volume string)) node.DiskProblem
}

// Files are the configuration directories in the shared volume.
type Files interface {
	// Base reads the image's own configuration, which lies in directory.
	Base(directory string) (config.Files, error)
	// Install makes the configuration directory of the JVM: a copy of base with files over it.
	Install(base string, files config.Files) error
	// Read and Replace are for one file of it.
	Read(name string) ([]byte, error)
	Replace(name string, content []byte) error
	// Directories and Java agents that a configuration names.
	Complete(n *config.Node) error
	// FatalLine is the last line by which Cassandra explained its end since a time; empty if it did
	// not.
	FatalLine(since time.Time) string
}

// Certificates are those of Cassandra that the pod is given.
type Certificates interface {
	// Given reads a leaf and the bundle of authorities as they are now.
	Given(use v1alpha1.CertificateUse) (leaf pki.Pair, bundle []byte, err error)
	// Served is the certificate that Cassandra shows to one who has this leaf and trusts this
	// bundle.
	Served(ctx context.Context, use v1alpha1.CertificateUse, leaf pki.Pair, bundle []byte) (*x509.Certificate, error)
}

// ErrNotYet means that Cassandra is not so far yet; the same is asked of it again in a moment.
var ErrNotYet = errors.New("not yet")

// JVM is Cassandra over JMX and CQL.
type JVM interface {
	operation.JVM
	// Look reads how the ring looks from there. A JVM whose beans are not there yet gives nil and
	// no error.
	Look(ctx context.Context) (*facts.Ring, error)
	// Streams is how far the streams of the node are. For this Cassandra looks at every file that
	// it streams.
	Streams(ctx context.Context) (facts.Transfer, error)
	// Unfinished is what another release would find unfinished. For this Cassandra reads a table.
	Unfinished(ctx context.Context) (facts.Unfinished, error)
	// PlainClients are those of other pods that are connected without encryption.
	PlainClients(ctx context.Context) ([]string, error)
	// OpenNative opens CQL; ErrNotYet while Cassandra still sets itself up.
	OpenNative(ctx context.Context) error
	CloseNative(ctx context.Context) error
	Drain(ctx context.Context) error
	ReloadSeeds(ctx context.Context) error
	// ReloadCertificates has Cassandra read its certificates again. It says nothing of whether it
	// could.
	ReloadCertificates(ctx context.Context) error
	Apply(ctx context.Context, writes []config.Write) error
	// Tables are those of users and of roles that have more than one replica, and for how long
	// those of users keep deletions, at least; 0 if there is none.
	Tables(ctx context.Context) ([]facts.Table, time.Duration, error)
}

// Record is the line to the API server.
type Record interface {
	// Record is nil if it does not exist; known is false before the server has answered.
	Record() (record *v1alpha1.CassandraNode, known bool)
	Seeds() []string
	// Replaced are the host ids that must never start again.
	Replaced() []string
	HeardAt() time.Time
	// Secret reads a Secret of the node's namespace.
	Secret(ctx context.Context, name string) (map[string][]byte, error)
	WriteStatus(ctx context.Context, uid types.UID, status *v1alpha1.CassandraNodeStatus) error
}

// Peers asks the agents of other nodes.
type Peers interface {
	// Ask asks all at once about an address and a host id, each for a short while. Those that do
	// not prove to be of this cluster count as silent.
	Ask(ctx context.Context, addresses []string, address, hostID string) (answers []facts.Peer, silent []string)
}
