package operation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
)

const (
	uid    = "9d0c8b1e-0000-4000-8000-000000000001"
	member = "0b7a8f6c-0000-4000-8000-00000000000a"
	carts  = "carts-5a1c395e000040008000000000000001"
)

// kept is the store of a test, which notes what is put into it.
type kept struct {
	store.Directory
	mu  sync.Mutex
	put []string
	// fails is asked before each Put.
	fails func(key string) error
}

func (k *kept) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	if k.fails != nil {
		if err := k.fails(key); err != nil {
			return err
		}
	}
	err := k.Directory.Put(ctx, key, content, size)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.put = append(k.put, key)
	}
	return err
}

// backed is a node with a snapshot on its disk.
type backed struct {
	t      *testing.T
	volume string
	to     *kept
	host   *Host
	noted  operation.Handle
	said   string
	// opened is how often each file was, by its name, and read is how many bytes of it were.
	opened, read map[string]int
	// now is the time; waited is told of each wait.
	now    time.Time
	waited func()
}

func newBacked(t *testing.T) *backed {
	b := &backed{t: t, volume: t.TempDir(), to: &kept{Directory: store.Directory(t.TempDir())},
		opened: map[string]int{}, read: map[string]int{},
		now: time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC), waited: func() {}}
	b.host = &Host{
		JVM: &readers{},
		Now: func() time.Time { return b.now },
		Wait: func(_ context.Context, d time.Duration) error {
			b.now = b.now.Add(d)
			b.waited()
			return nil
		},
		Ring: func(context.Context) (*facts.Ring, error) {
			return &facts.Ring{HostID: member, SchemaVersion: "s-1", ReleaseVersion: "5.0.9",
				Endpoints: []facts.Endpoint{{HostID: member, Datacenter: "dc1", Rack: "r1", Status: facts.StatusNormal,
					Tokens: []int64{-7, 9}}},
				Keyspaces: map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"}}, nil
		},
		Record: &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: "orders-dc1-r1-0", Namespace: "shop"},
			Spec: v1alpha1.CassandraNodeSpec{Cluster: v1alpha1.ClusterReference{Name: "orders", UID: uid},
				Configuration: v1alpha1.NodeConfiguration{ClusterName: "Orders"}}},
		Snapshots: func(tag string) ([]disk.Snapshot, error) {
			root, err := os.OpenRoot(b.volume)
			if err != nil {
				t.Fatal(err)
			}
			found, err := disk.Snapshots(root, disk.DefaultLayout(), tag)
			for _, s := range found {
				for i := range s.Files {
					s.Files[i].Open = b.counted(s.Table+"/"+s.Files[i].Name, s.Files[i].Open)
				}
			}
			return found, err
		},
		Store:     func(context.Context, *v1alpha1.BackupStoreSpec) (store.Store, error) { return b.to, nil },
		Cancelled: func() bool { return false },
		Note:      func(h operation.Handle) error { b.noted = h; return nil },
		Say:       func(_, _ int, message string) { b.said = message },
	}
	b.snapshot("b-1", "2026-03-01T03:00:01.5Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": "data",
		"nb-1-big-Statistics.db": "statistics", ".by_name/nb-1-big-Data.db": "index"})
	b.snapshot("b-1", "2026-03-01T03:00:00Z", "system_schema/tables-1",
		map[string]string{"nb-3g_1-big-Data.db": "schema"})
	b.snapshot("b-1", "2026-03-01T02:00:00Z", "system/local-1", map[string]string{"nb-1-big-Data.db": "own"})
	b.snapshot("b-1", "2026-03-01T03:00:02Z", "shop/dropped-2", nil)
	return b
}

// counted notes when a file is opened, and what is read of it.
func (b *backed) counted(name string, open func() (io.ReadSeekCloser, error)) func() (io.ReadSeekCloser, error) {
	return func() (io.ReadSeekCloser, error) {
		b.to.mu.Lock()
		defer b.to.mu.Unlock()
		b.opened[name]++
		file, err := open()
		return opened{file, b, name}, err
	}
}

type opened struct {
	io.ReadSeekCloser
	of   *backed
	name string
}

func (o opened) Read(p []byte) (int, error) {
	n, err := o.ReadSeekCloser.Read(p)
	o.of.to.mu.Lock()
	defer o.of.to.mu.Unlock()
	o.of.read[o.name] += n
	return n, err
}

func (o opened) Stat() (fs.FileInfo, error) {
	return o.ReadSeekCloser.(interface{ Stat() (fs.FileInfo, error) }).Stat()
}

func (b *backed) snapshot(id, at, table string, files map[string]string) {
	b.t.Helper()
	dir := filepath.Join(b.volume, "data", table, "snapshots", v1alpha1.BackupTagPrefix+id)
	all := map[string]string{"manifest.json": fmt.Sprintf(`{"files":[],"created_at":%q,"expires_at":null}`, at),
		"schema.cql": "CREATE TABLE"}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750),
			os.WriteFile(path, []byte(content), 0o600)); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *backed) run(o v1alpha1.OperationType, a v1alpha1.BackupArguments) (string, error) {
	b.to.put = nil
	a.ID = max(a.ID, "b-1")
	return Run(b.t.Context(), b.host, &v1alpha1.OperationIntent{Type: o,
		Arguments: &v1alpha1.OperationArguments{Backup: &a}}, nil)
}

func blobOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return format.BlobKey(uid, hex.EncodeToString(sum[:]))
}

func TestUploadPutsTheSnapshot(t *testing.T) {
	for _, atOnce := range []int{0, 2} {
		b := newBacked(t)
		b.host.Uploads = atOnce
		message, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{Bandwidth: 64 << 20})
		if err != nil || message != "4 files of 25 bytes are in the store, 25 of them new" {
			t.Fatalf("%q, %v", message, err)
		}
		for name, times := range b.opened {
			if times != 1 || len(b.opened) != 4 {
				t.Errorf("file %s of %d was opened %d times: what was read is gone from the page cache", name,
					len(b.opened), times)
			}
		}
		manifest := format.ManifestKey(uid, "b-1", member)
		if last := b.to.put[len(b.to.put)-1]; last != manifest {
			t.Errorf("the last object is %s", last)
		}
		want := []string{blobOf("data"), blobOf("statistics"), blobOf("index"), blobOf("schema"), manifest}
		if got := slices.Sorted(slices.Values(b.to.put)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("put %q, want %q", got, want)
		}
		m, err := sweep.Read[format.Manifest](t.Context(), b.to, manifest)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, table := range m.Tables {
			names = append(names, table.Keyspace+"/"+table.Directory())
			for _, s := range table.SSTables {
				for _, f := range s.Files {
					for _, c := range f.Unpacked() {
						names = append(names, s.Name+"-"+c.Name)
					}
				}
			}
		}
		if got := strings.Join(names, " "); got != "shop/"+carts+" .by_name/nb-1-big-Data.db nb-1-big-Data.db "+
			"nb-1-big-Statistics.db shop/dropped-2 system_schema/tables-1 nb-3g_1-big-Data.db" {
			t.Errorf("has %s", got)
		}
		if n := m.Node; n.HostID != member || !slices.Equal(n.Tokens, []string{"-7", "9"}) || m.SchemaVersion != "s-1" ||
			m.Replication["shop"]["class"] != "NetworkTopologyStrategy" || m.Replication["shop"]["dc1"] != "3" ||
			!m.TakenAt.Equal(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)) {
			t.Errorf("manifest %+v", m)
		}
		if u := b.noted.Uploaded; u.Member != member || u.Files != 4 || u.Bytes != 25 || u.NewBytes != 25 ||
			!u.TakenAt.Time.Equal(m.TakenAt) {
			t.Errorf("noted %+v", u)
		}
	}
}

// A second backup of what is unchanged sends a manifest, and nothing else.
func TestUploadSendsWhatIsNew(t *testing.T) {
	b := newBacked(t)
	if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
		t.Fatal(err)
	}
	b.snapshot("b-2", "2026-03-02T03:00:00Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": "data",
		"nb-1-big-Statistics.db": "changed in place"})
	b.snapshot("b-2", "2026-03-02T03:00:00Z", "shop/secrets-1", map[string]string{"nb-1-big-Data.db": "excluded"})
	if _, err := b.run(v1alpha1.OperationUpload,
		v1alpha1.BackupArguments{ID: "b-2", ExcludeTables: []string{"shop.secrets"}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{blobOf("changed in place"), format.ManifestKey(uid, "b-2", member)}; !slices.Equal(b.to.put, want) {
		t.Errorf("put %q, want %q", b.to.put, want)
	}
	if u := b.noted.Uploaded; u.Bytes != 20 || u.NewBytes != 16 {
		t.Errorf("noted %+v", u)
	}
}

// An upload that was interrupted anywhere resumes; until it has finished there is no manifest.
func TestUploadGoesOn(t *testing.T) {
	for most := range 5 {
		b, n := newBacked(t), 0
		b.to.fails = func(string) error {
			if n++; n > most {
				return errors.New("the agent has ended")
			}
			return nil
		}
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err == nil {
			t.Fatal("it did not end")
		}
		before := len(b.to.put)
		if _, err := b.to.Size(t.Context(), format.ManifestKey(uid, "b-1", member)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after %d objects the manifest is there: %v", most, err)
		}
		b.to.fails = nil
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil ||
			before+len(b.to.put) != 5 {
			t.Errorf("after %d objects %d more were put: %v", before, len(b.to.put), err)
		}
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil || len(b.to.put) != 0 ||
			b.noted.Uploaded.Bytes != 25 {
			t.Errorf("once more: %v, put %q, noted %+v", err, b.to.put, b.noted.Uploaded)
		}
	}
}

func TestUploadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*backed)
		want   string
	}{
		"the snapshot is gone": {func(b *backed) { _ = os.RemoveAll(filepath.Join(b.volume, "data")) }, "is not there"},
		"an object of another length": {func(b *backed) {
			_ = b.to.Directory.Put(b.t.Context(), blobOf("statistics"), strings.NewReader("?"), 1)
		}, "has 1 bytes, and its hash is of a file of 10"},
		"what is no SSTable": {func(b *backed) {
			b.snapshot("b-1", "2026-03-01T03:00:00Z", "shop/"+carts, map[string]string{"notes.txt": "mine"})
		}, "notes.txt of shop.carts is no component"},
		"a snapshot that is not whole": {func(b *backed) {
			_ = os.Remove(filepath.Join(b.volume, "data/shop", carts, "snapshots/helenus-backup-b-1/manifest.json"))
		}, "manifest.json"},
		"the content changes": {func(b *backed) {
			b.to.fails = func(key string) error {
				if key != blobOf("data") {
					return nil
				}
				return os.WriteFile(filepath.Join(b.volume, "data/shop", carts,
					"snapshots/helenus-backup-b-1/nb-1-big-Data.db"), []byte("DATA"), 0o600)
			}
		}, "its content has changed"},
		"it is cancelled": {func(b *backed) { b.host.Cancelled = func() bool { return true } }, ErrCancelled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBacked(t)
			c.before(b)
			if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if slices.ContainsFunc(b.to.put, func(key string) bool { return strings.HasSuffix(key, ".manifest") }) ||
				strings.Contains(c.want, "content") && slices.Contains(b.to.put, blobOf("data")) {
				t.Errorf("put %q", b.to.put)
			}
		})
	}
}

func TestCompleteBackupComesLast(t *testing.T) {
	b := newBacked(t)
	other := strings.ReplaceAll(member, "a", "b")
	a := v1alpha1.BackupArguments{Members: []string{member, other}, ClusterSpec: `{"cassandra":{}}`}
	if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(v1alpha1.OperationCompleteBackup, a); !errors.Is(err, store.ErrNotFound) || len(b.to.put) > 0 {
		t.Fatalf("without the manifest of %s: %v, put %q", other, err, b.to.put)
	}
	m, err := sweep.Read[format.Manifest](t.Context(), b.to, format.ManifestKey(uid, "b-1", member))
	if err != nil {
		t.Fatal(err)
	}
	m.Node.HostID, m.TakenAt = other, m.TakenAt.Add(1400*time.Millisecond)
	if err := putObject(t.Context(), b.to, format.ManifestKey(uid, "b-1", other), m); err != nil {
		t.Fatal(err)
	}
	for range 2 { // each writer writes the same
		if _, err := b.run(v1alpha1.OperationCompleteBackup, a); err != nil {
			t.Fatal(err)
		}
	}
	d, err := sweep.Read[format.Backup](t.Context(), b.to, format.BackupKey(uid, "b-1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Nodes) != 2 || d.Bytes != 50 || d.Skew != 1400*time.Millisecond || d.SchemaVersion != "s-1" ||
		d.Cluster != (format.Cluster{UID: uid, Name: "orders", Namespace: "shop", CassandraName: "Orders"}) ||
		!bytes.Contains(d.Spec, []byte("cassandra")) || d.Replication["shop"]["dc1"] != "3" {
		t.Errorf("description %+v", d)
	}
}

// What a backup is taken without is in its description, with its place in the ring, if the others
// have a quorum of each range.
func TestCompleteBackupWithoutANode(t *testing.T) {
	other, down := strings.ReplaceAll(member, "a", "b"), strings.ReplaceAll(member, "a", "d")
	left := strings.ReplaceAll(member, "a", "e")
	for name, c := range map[string]struct {
		shop, down string
		tokens     []string // as they were
		want       string
	}{
		"others have it": {"NetworkTopologyStrategy {dc1=3}", down, nil, ""},
		"a quorum is all of two": {"NetworkTopologyStrategy {dc1=2}", down, nil,
			"of keyspace shop has 2 replicas in datacenter dc1"},
		"it is no member": {"NetworkTopologyStrategy {dc1=3}", left, nil,
			"node orders-dc1-r3-0 is no member of the ring any more"},
		"it was a member": {"NetworkTopologyStrategy {dc1=3}", left, []string{"200"}, ""},
		"it was a member, and a quorum is all of two": {"NetworkTopologyStrategy {dc1=2}", left, []string{"200"},
			"of keyspace shop has 2 replicas in datacenter dc1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBacked(t)
			view, err := b.host.Ring(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			view.Keyspaces["shop"] = c.shop
			for i, id := range []string{other, down} {
				view.Endpoints = append(view.Endpoints, facts.Endpoint{HostID: id, Datacenter: "dc1",
					Rack: fmt.Sprint("r", i+2), Status: facts.StatusNormal, Tokens: []int64{int64(100 * (i + 1))}})
			}
			b.host.Ring = func(context.Context) (*facts.Ring, error) { return view, nil }
			if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
				t.Fatal(err)
			}
			m, err := sweep.Read[format.Manifest](t.Context(), b.to, format.ManifestKey(uid, "b-1", member))
			if err != nil {
				t.Fatal(err)
			}
			m.Node = format.Node{Name: "orders-dc1-r2-0", HostID: other, Datacenter: "dc1", Rack: "r2", Tokens: []string{"100"}}
			if err := putObject(t.Context(), b.to, format.ManifestKey(uid, "b-1", other), m); err != nil {
				t.Fatal(err)
			}
			_, err = b.run(v1alpha1.OperationCompleteBackup, v1alpha1.BackupArguments{
				Members: []string{member, other, c.down},
				LeftOut: []v1alpha1.LeftOutNode{{Node: "orders-dc1-r3-0", HostID: c.down, Datacenter: "dc1", Rack: "r3",
					Tokens: c.tokens}}})
			d, none := sweep.Read[format.Backup](t.Context(), b.to, format.BackupKey(uid, "b-1"))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(none, store.ErrNotFound) {
					t.Errorf("%v, %v", err, none)
				}
				return
			}
			if err := errors.Join(err, none); err != nil {
				t.Fatal(err)
			}
			if of := d.LeftOut; len(d.Nodes) != 2 || len(of) != 1 || of[0].Name != "orders-dc1-r3-0" || of[0].HostID != c.down ||
				of[0].Rack != "r3" || !slices.Equal(of[0].Tokens, []string{"200"}) {
				t.Errorf("description %+v", d)
			}
		})
	}
}

// marks blobs as garbage, as the operator does.
func (b *backed) marks(contents ...string) {
	b.t.Helper()
	m, all := &format.Marks{Version: format.Version, At: b.now}, garbage.Marks{}
	for _, content := range contents {
		all[sha256.Sum256([]byte(content))] = b.now
	}
	m.Put(all)
	if err := putObject(b.t.Context(), b.to.Directory, format.MarksKey(uid, b.now), m); err != nil {
		b.t.Fatal(err)
	}
}

// A file whose blob is marked is pinned, and looked for when nobody deletes it any more: if it is
// gone by then it is put again.
func TestUploadPinsWhatIsMarked(t *testing.T) {
	b := newBacked(t)
	if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
		t.Fatal(err)
	}
	if err := b.to.Delete(t.Context(), format.ManifestKey(uid, "b-1", member)); err != nil {
		t.Fatal(err)
	}
	b.marks("data", "index")
	began, pins := b.now, 0
	b.waited = func() {
		pins = 0
		if err := b.to.List(t.Context(), format.PinPrefix(uid), func(store.Object) error { pins++; return nil }); err != nil {
			t.Error(err)
		}
		if b.now.Sub(began) == before+9*time.Minute+time.Nanosecond { // one that has looked before the pins
			if err := b.to.Delete(t.Context(), blobOf("data")); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
		t.Fatal(err)
	}
	if waited := b.now.Sub(began); pins != 2 || waited < garbage.Default.Settle || !slices.Contains(b.to.put, blobOf("data")) {
		t.Errorf("%d pins, waited %s, put %q", pins, waited, b.to.put)
	}
	if err := b.to.List(t.Context(), format.PinPrefix(uid), func(o store.Object) error {
		return errors.New(o.Key + " is left")
	}); err != nil {
		t.Error(err)
	}
}

// An upload that takes longer than marks count reads them again before its manifest.
func TestUploadReadsTheMarksAgain(t *testing.T) {
	b := newBacked(t)
	b.to.fails = func(key string) error {
		if key == blobOf("statistics") && b.now.Hour() == 4 {
			b.now = b.now.Add(21 * time.Hour)
			b.marks("data")
			return b.to.Delete(t.Context(), blobOf("data"))
		}
		return nil
	}
	if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.to.Size(t.Context(), blobOf("data")); err != nil {
		t.Errorf("the manifest names what is not there: %v; put %q", err, b.to.put)
	}
}

// What a verification has found damaged is put again, and is damaged no more. What nobody has any
// more stays noted.
func TestUploadMendsWhatIsDamaged(t *testing.T) {
	for _, atOnce := range []int{0, 2} {
		b := newBacked(t)
		b.host.Uploads = atOnce
		b.snapshot("b-1", "2026-03-01T03:00:00Z", "shop/"+carts, map[string]string{"nb-2-big-Data.db": "data"})
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil {
			t.Fatal(err)
		}
		stays := format.DamagedKey(uid, strings.Repeat("ab", 32))
		for _, key := range []string{stays, format.DamagedKey(uid, filepath.Base(blobOf("data"))),
			format.DamagedKey(uid, filepath.Base(blobOf("index")))} {
			if err := b.to.Put(t.Context(), key, strings.NewReader(""), 0); err != nil {
				t.Fatal(err)
			}
		}
		for content, is := range map[string]string{"data": "date", "index": "longer than it was"} {
			path := filepath.Join(string(b.to.Directory), blobOf(content))
			if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(is), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		b.snapshot("b-2", "2026-03-02T03:00:00Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": "data",
			"nb-2-big-Data.db": "data", "nb-1-big-Statistics.db": "statistics", ".by_name/nb-1-big-Data.db": "index"})
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{ID: "b-2"}); err != nil {
			t.Fatal(err)
		}
		want := []string{blobOf("data"), blobOf("index"), format.ManifestKey(uid, "b-2", member)}
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(b.to.put)); !slices.Equal(got, want) {
			t.Errorf("put %q, want %q", got, want)
		}
		for _, content := range []string{"data", "index"} {
			if got, err := os.ReadFile(filepath.Join(string(b.to.Directory), blobOf(content))); string(got) != content {
				t.Errorf("%s is %q, %v", content, got, err)
			}
		}
		damaged, err := sweep.Damaged(t.Context(), b.to, uid)
		if _, left := damaged[[32]byte(bytes.Repeat([]byte{0xab}, 32))]; err != nil || !left || len(damaged) != 1 {
			t.Errorf("left are %v, %v", damaged, err)
		}
	}
}
