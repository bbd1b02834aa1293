package operation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/facts"
)

const schemaOfCarts = "CREATE TABLE shop.carts (\n    k int PRIMARY KEY,\n    v text\n) WITH ID = 1;\n"

// loading is a node that takes in what it has backed up, and the JVM of it.
type loading struct {
	JVM
	*backed
	schema string
	loaded []string
	fails  error
	// flushed is what a flush comes to.
	flushed error
}

func newLoading(t *testing.T) *loading {
	l := &loading{JVM: &readers{}, backed: newBacked(t),
		schema: schemaOfCarts + strings.ReplaceAll(schemaOfCarts, "carts", "carts_old")}
	path := filepath.Join(l.volume, "data/shop", carts, "snapshots", v1alpha1.BackupTagPrefix+"b-1", "schema.cql")
	if err := os.WriteFile(path, []byte(schemaOfCarts), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []v1alpha1.OperationType{v1alpha1.OperationUpload, v1alpha1.OperationCompleteBackup} {
		if _, err := l.run(o, v1alpha1.BackupArguments{Members: []string{member}, ClusterSpec: "{}"}); err != nil {
			t.Fatal(err)
		}
	}
	l.host.JVM = l
	l.host.Room = func(string) (map[string][]int64, int64, error) { return nil, 1 << 20, nil }
	l.host.Staging = func(tag string) (Staging, error) { return disk.OpenStaging(l.volume, tag) }
	return l
}

func (l *loading) Describe(context.Context, string) (string, error) { return l.schema, nil }

func (l *loading) Flush(context.Context, string, ...string) error { return l.flushed }

func (l *loading) BulkLoad(_ context.Context, directory string) error {
	l.loaded = append(l.loaded, directory)
	return l.fails
}

func (l *loading) do(o v1alpha1.OperationType, change func(*v1alpha1.RestoreArguments)) (string, error) {
	a := &v1alpha1.RestoreArguments{Tag: v1alpha1.RestoreTagPrefix + "1", Cluster: uid, Backup: "b-1",
		Tables:  []v1alpha1.RestoredTable{{From: "shop.carts"}, {From: "shop.carts", To: "shop.carts_old"}},
		Members: []string{member}}
	if change != nil {
		change(a)
	}
	return Run(l.t.Context(), l.host, &v1alpha1.OperationIntent{Type: o,
		Arguments: &v1alpha1.OperationArguments{Restore: a}}, nil)
}

func (l *loading) staged() (files []string) {
	root := filepath.Join(l.volume, "restore")
	_ = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(root, path)
			files = append(files, name)
		}
		return nil
	})
	return files
}

// What is staged is downloaded once, and loaded once: an attempt continues where the one before has
// ended.
func TestTablesAreStagedAndLoaded(t *testing.T) {
	l := newLoading(t)
	if _, err := l.do(v1alpha1.OperationLoadTables, nil); err == nil || len(l.loaded) > 0 {
		t.Errorf("loads before anything is staged: %v", err)
	}
	// One that was broken off: what another restore has left goes, what is right stays.
	if err := os.MkdirAll(filepath.Join(l.volume, "restore", "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum := strings.TrimPrefix(blobOf("data"), uid+"/blobs/")
	blob := filepath.Join(string(l.to.Directory), uid, "blobs", sum)
	if err := os.Rename(blob, blob+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.do(v1alpha1.OperationStageTables, nil); err == nil {
		t.Error("a file is missing, and nobody says so")
	}
	if _, err := l.do(v1alpha1.OperationLoadTables, nil); err == nil || len(l.loaded) > 0 {
		t.Errorf("loads what is not whole: %v", err)
	}
	if err := os.Rename(blob+".away", blob); err != nil {
		t.Fatal(err)
	}
	if _, err := l.do(v1alpha1.OperationStageTables, nil); err != nil {
		t.Fatal(err)
	}
	tag := v1alpha1.RestoreTagPrefix + "1/"
	want := []string{tag + "complete"}
	for _, table := range []string{"carts", "carts_old"} {
		for _, file := range []string{"Data.db", "Statistics.db"} {
			want = append(want, tag+member+"/shop/"+table+"/nb-1-big-"+file)
		}
	}
	if slices.Sort(want); !slices.Equal(l.staged(), want) {
		t.Errorf("staged %q, want %q", l.staged(), want)
	}
	l.fails = errors.New("a node is down")
	if _, err := l.do(v1alpha1.OperationLoadTables, nil); err == nil {
		t.Error("a stream that failed is no error")
	}
	l.fails, l.loaded = nil, nil
	for range 2 {
		if _, err := l.do(v1alpha1.OperationLoadTables, nil); err != nil {
			t.Fatal(err)
		}
	}
	at := "/var/lib/cassandra/restore/" + tag + member + "/shop/"
	if !slices.Equal(l.loaded, []string{at + "carts", at + "carts_old"}) {
		t.Errorf("loaded %q", l.loaded)
	}
	if _, err := Run(t.Context(), l.host, &v1alpha1.OperationIntent{Type: v1alpha1.OperationClearSnapshot,
		Arguments: &v1alpha1.OperationArguments{Tag: v1alpha1.RestoreTagPrefix + "1"}}, nil); err != nil ||
		len(l.staged()) > 0 {
		t.Errorf("%v: keeps %q", err, l.staged())
	}
}

// Into a ring that was made with the schema of the backup all tables of users come back, while CQL
// is closed. What does not fit is said before the first byte.
func TestAllTablesAreStaged(t *testing.T) {
	all := func(a *v1alpha1.RestoreArguments) { a.Tables = nil }
	for name, c := range map[string]struct {
		replication string
		flushed     error
		want        string
	}{
		"it fits":            {replication: "NetworkTopologyStrategy {dc1=1}"},
		"another datacenter": {replication: "NetworkTopologyStrategy {dc2=1}", want: "keyspace shop is replicated by"},
		"too many replicas":  {replication: "NetworkTopologyStrategy {dc1=3}", want: "keyspace shop is replicated by"},
		"no such keyspace":   {want: "keyspace shop is replicated by \"\""},
		"no such table": {replication: "NetworkTopologyStrategy {dc1=1}", flushed: errors.New("unknown table"),
			want: "unknown table"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoading(t)
			l.schema, l.flushed = "nobody is asked", c.flushed
			before := l.host.Ring
			l.host.Ring = func(ctx context.Context) (*facts.Ring, error) {
				view, err := before(ctx)
				view.Endpoints = view.Endpoints[:1]
				view.Keyspaces = map[string]string{"shop": c.replication}
				return view, err
			}
			_, err := l.do(v1alpha1.OperationStageTables, all)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || len(l.staged()) > 0 {
					t.Errorf("%v, want %q; staged %q", err, c.want, l.staged())
				}
				return
			}
			if err == nil {
				_, err = l.do(v1alpha1.OperationLoadTables, all)
			}
			at := "/var/lib/cassandra/restore/" + v1alpha1.RestoreTagPrefix + "1/" + member + "/shop/"
			if err != nil || len(l.loaded) == 0 || !slices.Contains(l.loaded, at+"carts") {
				t.Errorf("%v: loaded %q", err, l.loaded)
			}
		})
	}
}

// What cannot come back is said before the first byte.
func TestTablesThatCannotComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*loading)
		change func(*v1alpha1.RestoreArguments)
		want   string
	}{
		"no such backup": {change: func(a *v1alpha1.RestoreArguments) { a.Backup = "b-0" },
			want: "the last that it has: b-1"},
		"another cluster": {change: func(a *v1alpha1.RestoreArguments) { a.Cluster = "other" }, want: "that it has: none"},
		"no such table in it": {change: func(a *v1alpha1.RestoreArguments) { a.Tables[0].From = "shop.card" },
			want: "has no table shop.card"},
		"no such keyspace": {change: func(a *v1alpha1.RestoreArguments) { a.Tables[1].To = "shoq.carts" },
			want: "there is no keyspace shoq"},
		"no such table": {before: func(l *loading) { l.schema = "" }, want: "CREATE TABLE shop.carts (k int, v text"},
		"another type": {before: func(l *loading) { l.schema = strings.ReplaceAll(l.schema, "v text", "v int") },
			want: "column v of shop.carts is int, and was text"},
		"views of what is replaced": {before: func(l *loading) {
			l.schema += "CREATE MATERIALIZED VIEW shop.by_v AS\n    SELECT *\n    FROM shop.carts\n    WHERE v > 0;\n"
		}, change: func(a *v1alpha1.RestoreArguments) { a.Replace = true }, want: "shop.carts has views"},
		"not a member": {change: func(a *v1alpha1.RestoreArguments) { a.Members = []string{strings.Repeat("a", 36)} },
			want: "was no member"},
		"no room": {before: func(l *loading) {
			// twice a snapshot of 14 bytes, and as often for each of 3 replicas
			l.host.Room = func(string) (map[string][]int64, int64, error) { return nil, 4*28 - 1, nil }
		}, want: "room for 111 bytes, and 112 are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoading(t)
			if c.before != nil {
				c.before(l)
			}
			_, err := l.do(v1alpha1.OperationStageTables, c.change)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(l.staged()) > 0 {
				t.Errorf("%v, want %q; staged %q", err, c.want, l.staged())
			}
			if name != "no room" {
				if _, err := l.do(v1alpha1.OperationLoadTables, c.change); err == nil || len(l.loaded) > 0 {
					t.Errorf("loads all the same: %v", err)
				}
			}
		})
	}
	// A node of the backup that is no member any more is somebody's.
	l := newLoading(t)
	before, other := l.host.Ring, strings.Repeat("f", 36)
	l.host.Ring = func(ctx context.Context) (*facts.Ring, error) {
		view, err := before(ctx)
		view.HostID = other
		return view, err
	}
	if _, err := l.do(v1alpha1.OperationStageTables, func(a *v1alpha1.RestoreArguments) {
		a.Members = []string{other}
	}); err != nil || len(l.staged()) != 5 {
		t.Errorf("%v: staged %q", err, l.staged())
	}
}
