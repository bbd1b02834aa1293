package operation

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
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
	all := func(a *v1alpha1.RestoreArguments) { a.Tables, a.NewRing = nil, true }
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
		"no such keyspace in it": {change: func(a *v1alpha1.RestoreArguments) {
			a.Tables, a.Keyspaces = nil, []string{"shop", "shoq"}
		}, want: "keyspaces: backup b-1 has no table of keyspace shoq"},
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

// ofThree is a backup of three replicas of each range, by the host ids, each with a file of its
// own.
func ofThree(t *testing.T) (l *loading, hosts []string) {
	l, hosts = newLoading(t), []string{member, strings.Repeat("b", 36), strings.Repeat("c", 36)}
	for i, host := range hosts[1:] {
		m, err := sweep.Read[format.Manifest](t.Context(), l.to, format.ManifestKey(uid, "b-1", member))
		if err != nil {
			t.Fatal(err)
		}
		m.Node.Name, m.Node.HostID, m.Node.Rack, m.Node.Tokens = "n-"+host[:1], host, host, []string{strconv.Itoa(i)}
		for j := range m.Tables {
			if table := &m.Tables[j]; table.Name == "carts" {
				file := &table.SSTables[len(table.SSTables)-1].Files[0]
				file.SHA256, file.Size = path.Base(blobOf(host)), int64(len(host))
			}
		}
		if err := errors.Join(l.to.Put(t.Context(), blobOf(host), strings.NewReader(host), int64(len(host))),
			putObject(t.Context(), l.to, format.ManifestKey(uid, "b-1", host), m)); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.to.Delete(t.Context(), format.BackupKey(uid, "b-1"))
	if _, err := l.run(v1alpha1.OperationCompleteBackup, v1alpha1.BackupArguments{Members: hosts}); err != nil {
		t.Fatal(err)
	}
	return l, hosts
}

// as is another node of the ring, with a disk of its own.
func (l *loading) as(hostID string) {
	before := l.host.Ring
	l.volume, l.loaded = l.t.TempDir(), nil
	l.host.Ring = func(ctx context.Context) (*facts.Ring, error) {
		view, err := before(ctx)
		view.HostID = hostID
		return view, err
	}
}

// All that a node had of a table is left out if a file of it is damaged in the store, and the
// others have a quorum of each range. Nodes know of each other's.
func TestDamagedFilesAreLeftOut(t *testing.T) {
	l, hosts := ofThree(t)
	flip := func(host string) {
		t.Helper()
		name := filepath.Join(string(l.to.Directory), blobOf(host))
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[3] ^= 1
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(o v1alpha1.OperationType, members []string, want ...string) {
		t.Helper()
		said, err := l.do(o, func(a *v1alpha1.RestoreArguments) { a.Members = members })
		if failed := strings.HasPrefix(want[0], "refused"); failed != (err != nil) {
			t.Fatalf("%q, %v", said, err)
		} else if failed {
			said, want = err.Error(), want[1:]
		}
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("%q has no %q", said, text)
			}
		}
	}
	const without = "; without what n-b had of shop.carts: files of it are damaged"
	flip(hosts[1])
	file := hosts[1] + "/shop/carts/nb-1-big-Data.db: its content is not what was backed up"
	ends(v1alpha1.OperationStageTables, []string{member}, without, file)
	noted := 0
	if err := l.to.List(t.Context(), format.DamagedPrefix(uid), func(o store.Object) error {
		if noted++; path.Base(o.Key) != path.Base(blobOf(hosts[1])) {
			t.Errorf("noted is %s", o.Key)
		}
		return nil
	}); err != nil || noted != 1 {
		t.Errorf("%d are noted, %v", noted, err)
	}
	ends(v1alpha1.OperationLoadTables, []string{member}, "streamed to all that own it"+without)
	if s := strings.Join(l.loaded, " "); len(l.loaded) != 4 || strings.Contains(s, hosts[1]) {
		t.Errorf("loaded %q", l.loaded)
	}

	// Another node finds another one, too late.
	two := []string{member, strings.Repeat("f", 36)}
	l, hosts = ofThree(t)
	flip(hosts[1])
	ends(v1alpha1.OperationStageTables, two, without)
	first := l.volume
	l.as(two[1])
	away := filepath.Join(string(l.to.Directory), blobOf(hosts[2]))
	if err := os.Rename(away, away+".away"); err != nil {
		t.Fatal(err)
	}
	refused := []string{"refused", hosts[2] + "/shop/carts/nb-1-big-Data.db: ", "of shop.carts has 3 replicas in " +
		"datacenter dc1, and files of n-b, n-c are damaged: 1 may be left out (RF - quorum)"}
	ends(v1alpha1.OperationStageTables, two, refused...)
	ends(v1alpha1.OperationLoadTables, two, "refused", "not all of it")
	if err := os.Rename(away+".away", away); err != nil {
		t.Fatal(err)
	}
	ends(v1alpha1.OperationStageTables, two, without)
	ends(v1alpha1.OperationLoadTables, two, without)
	if len(l.loaded) != 2 || !strings.Contains(l.loaded[0], hosts[2]) {
		t.Errorf("loaded %q", l.loaded)
	}
	// One that was not seen, since a list lags, is before any row is loaded.
	if err := l.to.Put(t.Context(), format.LeftOutKey(uid, v1alpha1.RestoreTagPrefix+"1", two[1], hosts[2],
		strings.TrimPrefix(carts, "carts-")), strings.NewReader(""), 0); err != nil {
		t.Fatal(err)
	}
	l.as(member)
	l.volume = first
	ends(v1alpha1.OperationLoadTables, two, "refused", refused[2])
	if len(l.loaded) > 0 {
		t.Errorf("loaded %q", l.loaded)
	}
}
