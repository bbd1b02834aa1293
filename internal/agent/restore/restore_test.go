package restore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/agent/restore"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/threads"
)

const (
	cluster = "11111111-0000-4000-8000-000000000001"
	hostID  = "aaaaaaaa-0000-4000-8000-000000000001"
	another = "bbbbbbbb-0000-4000-8000-000000000002"
	// shopPack is what the pack of keyspace shop has.
	shopPack = "shopStatistics.dbshopTOC.txt"
)

// backup puts into a directory what a node has of some keyspaces.
func backup(t *testing.T, keyspaces ...string) store.Directory {
	t.Helper()
	d := store.Directory(t.TempDir())
	put := func(key string, content []byte) {
		t.Helper()
		if err := d.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))); err != nil &&
			!errors.Is(err, store.ErrExists) {
			t.Fatal(err)
		}
	}
	m := format.Manifest{Version: format.Version, Backup: "b1", Cluster: cluster, Node: format.Node{HostID: hostID}}
	for _, keyspace := range keyspaces {
		table := format.Table{Keyspace: keyspace, Name: "t", ID: "1", SSTables: []format.SSTable{{Name: "nb-1-big"}}}
		file := func(name, content string) format.File {
			sum := sha256.Sum256([]byte(content))
			return format.File{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
		}
		statistics, toc := keyspace+"Statistics.db", keyspace+"TOC.txt"
		pack := file(format.Pack, statistics+toc)
		pack.Files = []format.File{file("Statistics.db", statistics), file("TOC.txt", toc)}
		table.SSTables[0].Files = []format.File{file("Data.db", keyspace+"Data.db"), pack}
		put(format.BlobKey(cluster, table.SSTables[0].Files[0].SHA256), []byte(keyspace+"Data.db"))
		put(format.BlobKey(cluster, pack.SHA256), []byte(statistics+toc))
		m.Tables = append(m.Tables, table)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	put(format.ManifestKey(cluster, "b1", hostID), text)
	return d
}

// counted counts what is read, and fails at one object.
type counted struct {
	store.Store
	read  map[string]int
	fails string
}

func (c counted) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	c.read[key]++
	if key == c.fails {
		return nil, errors.New("the store is not available")
	}
	return c.Store.Get(ctx, key)
}

// oneByOne has one thing done at a time.
type oneByOne struct{ threads.Goroutines }

func (oneByOne) Together(_ int, all ...func()) {
	for _, f := range all {
		f()
	}
}

func TestARestoreIsResumed(t *testing.T) {
	d, volume := backup(t, "system", "system_schema", "system_auth", "shop"), t.TempDir()
	sum := sha256.Sum256([]byte(shopPack))
	reads := counted{d, map[string]int{}, format.BlobKey(cluster, hex.EncodeToString(sum[:]))}
	h := restore.Host{Threads: oneByOne{}, Store: reads, Disk: pod.Volume{Name: "data", Directory: volume}}
	var done, all int64
	h.Say = func(d, a int64) { done, all = d, a }
	from := &v1alpha1.DiskRestore{Cluster: cluster, Backup: "b1", HostID: hostID, Roles: v1alpha1.RolesFresh}
	if _, err := restore.Run(t.Context(), h, from); err == nil ||
		!strings.Contains(err.Error(), "restore nb-1-big-pack of shop.t: the store is not available") {
		t.Fatalf("error %v", err)
	}
	away := filepath.Join(string(d), reads.fails)
	reads.fails, h.Store = "", counted{d, reads.read, ""}
	if err := os.Rename(away, away+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := restore.Run(t.Context(), h, from); err == nil || !strings.Contains(err.Error(), "of shop.t: ") ||
		!strings.Contains(err.Error(), "A ring of another shape, or a CassandraRestore of tables, can do without it") {
		t.Fatalf("error %v", err)
	}
	if err := os.Rename(away+".away", away); err != nil {
		t.Fatal(err)
	}
	if _, err := restore.Run(t.Context(), h, from); err != nil || done != all || all == 0 {
		t.Fatalf("%v, %d of %d", err, done, all)
	}
	have := func() []string {
		found, err := filepath.Glob(volume + "/data/*/*/*")
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			found[i] = strings.TrimPrefix(found[i], volume+"/data/")
		}
		return found
	}
	want := []string{"shop/t-1/nb-1-big-Data.db", "shop/t-1/nb-1-big-Statistics.db",
		"shop/t-1/nb-1-big-TOC.txt", "system_schema/t-1/nb-1-big-Data.db",
		"system_schema/t-1/nb-1-big-Statistics.db", "system_schema/t-1/nb-1-big-TOC.txt"}
	if got := have(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	again := slices.DeleteFunc(slices.Collect(maps.Keys(reads.read)),
		func(key string) bool { return reads.read[key] < 2 })
	if slices.Sort(again); len(again) != 2 { // the manifest, and what failed
		t.Errorf("read more than once: %v", again)
	}
	from.Roles = v1alpha1.RolesRestore
	if _, err := restore.Run(t.Context(), h, from); err != nil || len(have()) != 9 ||
		slices.ContainsFunc(have(), func(f string) bool { return strings.HasPrefix(f, "system/") }) {
		t.Errorf("with the roles of the backup: %v, %q", err, have())
	}
}

// A pack of which a file has another content, or which has lost its end, gives those that are
// right; once it is right again the others alone are placed.
func TestAPackIsResumed(t *testing.T) {
	for name, is := range map[string]string{"a bit is flipped": "shopStatistics.dbshopTOC.tyt",
		"its end is lost": "shopStatistics.dbshop", "all of it is lost": ""} {
		d, volume := backup(t, "shop"), t.TempDir()
		sum := sha256.Sum256([]byte(shopPack))
		pack := filepath.Join(string(d), format.BlobKey(cluster, hex.EncodeToString(sum[:])))
		h := restore.Host{Threads: oneByOne{}, Store: d, Disk: pod.Volume{Name: "data", Directory: volume},
			Say: func(int64, int64) {}}
		run := func(content string) error {
			err := os.WriteFile(pack, []byte(content), 0o600)
			if err == nil {
				_, err = restore.Run(t.Context(), h, &v1alpha1.DiskRestore{Cluster: cluster, Backup: "b1", HostID: hostID})
			}
			return err
		}
		inode := func(of string) os.FileInfo {
			info, _ := os.Stat(filepath.Join(volume, "data/shop/t-1/nb-1-big-"+of))
			return info
		}
		err := run(is)
		before := inode("Statistics.db")
		if !restore.IsDamage(err) || inode("TOC.txt") != nil || (before == nil) != (is == "") {
			t.Errorf("%s: %v", name, err)
		}
		err = run(shopPack)
		if after := inode("Statistics.db"); err != nil || inode("TOC.txt") == nil || after == nil ||
			before != nil && !os.SameFile(before, after) {
			t.Errorf("%s, and right again: %v", name, err)
		}
	}
}

// Onto a disk of a ring of another shape goes the schema alone, and how each keyspace is replicated
// now: the same on every node, and beside what the backup has.
func TestTheSchemaForAnotherShape(t *testing.T) {
	d, contents := backup(t, "system_schema", "system_auth", "shop"), map[string]string{}
	edit(d, `{"keyspace":"system_schema","name":"t","id":"1","sstables":[{"name":"nb-1-big"`,
		`{"keyspace":"system_schema","name":"keyspaces","id":"1","sstables":[{"name":"nb-1000000000-big"`)
	edit(d, `"replication":null`, `"replication":{"shop":{"class":"NetworkTopologyStrategy","dc1":"3"},`+
		`"system_auth":{"class":"SimpleStrategy","replication_factor":"1"}}`)
	from := &v1alpha1.DiskRestore{Cluster: cluster, Backup: "b1", HostID: hostID,
		Datacenters: map[string]int32{"east": 2}}
	for range 2 {
		volume := t.TempDir()
		h := restore.Host{Threads: oneByOne{}, Store: d, Disk: pod.Volume{Name: "data", Directory: volume},
			Say: func(int64, int64) {}}
		for range 2 { // again, when the first was broken off
			if _, err := restore.Run(t.Context(), h, from); err != nil {
				t.Fatal(err)
			}
		}
		found, err := filepath.Glob(volume + "/data/*/*/*")
		if err != nil || len(found) != 3+2*6 {
			t.Fatalf("%v: %q", err, found)
		}
		for _, path := range found {
			content, err := os.ReadFile(path)
			name := strings.TrimPrefix(path, volume+"/data/system_schema/keyspaces-1/nb-10000000")
			if had, is := contents[name]; err != nil || is && had != string(content) {
				t.Errorf("%s: %q on one disk and %q on another: %v", name, had, content, err)
			}
			contents[name] = string(content)
		}
	}
	for name, want := range map[string]string{"01": "\x00\x00\x00\x04east\x00\x00\x00\x012",
		"02": "\x00\x00\x00\x04east\x00\x00\x00\x011"} {
		if got := contents[name+"-big-Data.db"]; !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	edit(d, `"SimpleStrategy"`, `"EverywhereStrategy"`)
	edit(d, `"shop":{"class":"NetworkTopologyStrategy"`, `"shop":{"class":"EverywhereStrategy"`)
	h := restore.Host{Threads: oneByOne{}, Store: d, Disk: pod.Volume{Name: "data", Directory: t.TempDir()},
		Say: func(int64, int64) {}}
	if _, err := restore.Run(t.Context(), h, from); err == nil || !strings.Contains(err.Error(), "keyspace shop") {
		t.Errorf("error %v", err)
	}
}

// Of a keyspace that does not come back neither files nor schema are there.
func TestSomeKeyspaces(t *testing.T) {
	d, volume := backup(t, "system_schema", "shop", "logs"), t.TempDir()
	edit(d, `"keyspace":"system_schema","name":"t"`, `"keyspace":"system_schema","name":"keyspaces"`)
	edit(d, `"replication":null`, `"replication":{"shop":{},"logs":{},"system_auth":{},"system_schema":{}}`)
	h := restore.Host{Threads: oneByOne{}, Store: d, Disk: pod.Volume{Name: "data", Directory: volume},
		Say: func(int64, int64) {}}
	from := &v1alpha1.DiskRestore{Cluster: cluster, Backup: "b1", HostID: hostID, Keyspaces: []string{"shop"}}
	for range 2 { // again, when the first was broken off
		if _, err := restore.Run(t.Context(), h, from); err != nil {
			t.Fatal(err)
		}
	}
	found, err := filepath.Glob(volume + "/data/*/*/*")
	if err != nil || len(found) != 3+3+6 || slices.ContainsFunc(found, func(f string) bool {
		return strings.Contains(f, "/logs/")
	}) {
		t.Errorf("%v: %q", err, found)
	}
	content, err := os.ReadFile(volume + "/data/system_schema/keyspaces-1/nb-1000000000-big-Data.db")
	if err != nil || !bytes.HasPrefix(content, []byte("\x00\x04logs")) {
		t.Errorf("%v: %q", err, content)
	}
}

func TestWhatIsNotRestored(t *testing.T) {
	for name, change := range map[string]func(d store.Directory, from *v1alpha1.DiskRestore){
		"there is no manifest":       func(_ store.Directory, from *v1alpha1.DiskRestore) { from.HostID = another },
		"the manifest is of another": func(d store.Directory, _ *v1alpha1.DiskRestore) { edit(d, hostID, another) },
		"its format is a later one": func(d store.Directory, _ *v1alpha1.DiskRestore) {
			edit(d, `"version":1`, `"version":2`)
		},
		"a byte is another": func(d store.Directory, _ *v1alpha1.DiskRestore) { flip(d, "shopData.db") },
		"a byte of a pack":  func(d store.Directory, _ *v1alpha1.DiskRestore) { flip(d, shopPack) },
		"a file leads out of the disk": func(d store.Directory, _ *v1alpha1.DiskRestore) {
			edit(d, `"keyspace":"shop"`, `"keyspace":"../../x"`)
		},
	} {
		d, volume := backup(t, "shop"), t.TempDir()
		from := &v1alpha1.DiskRestore{Cluster: cluster, Backup: "b1", HostID: hostID}
		change(d, from)
		h := restore.Host{Threads: threads.Goroutines{}, Store: d, Disk: pod.Volume{Name: "data", Directory: volume},
			Say: func(int64, int64) {}}
		if _, err := restore.Run(t.Context(), h, from); err == nil {
			t.Errorf("%s: it is restored", name)
		}
	}
}

func edit(d store.Directory, from, to string) {
	path := filepath.Join(string(d), format.ManifestKey(cluster, "b1", hostID))
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600)
	}
	if err != nil {
		panic(err)
	}
}

func flip(d store.Directory, content string) {
	sum := sha256.Sum256([]byte(content))
	path := filepath.Join(string(d), format.BlobKey(cluster, hex.EncodeToString(sum[:])))
	if err := os.WriteFile(path, []byte(strings.ToUpper(content)), 0o600); err != nil {
		panic(err)
	}
}
