package operation

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/restore"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	verifying "helenus.io/helenus/internal/backup/verify"
	"helenus.io/helenus/internal/threads"
)

// encrypted has all backups of a node go into an encrypted store, which it returns.
func (b *backed) encrypted(identities ...*age.X25519Identity) store.Store {
	b.t.Helper()
	text := ""
	for _, i := range identities {
		text += i.String() + "\n"
	}
	s, err := store.Encrypt(b.to, "backup-key", []byte(text))
	if err != nil {
		b.t.Fatal(err)
	}
	b.host.Store = func(context.Context, *v1alpha1.BackupStoreSpec) (store.Store, error) { return s, nil }
	return s
}

// emptied is the data volume of a node that is made from a backup.
type emptied struct{ *os.Root }

func (e emptied) HasFile(keyspace, table, name string, size int64, sum string) bool {
	return disk.HasFile(e.Root, disk.DefaultLayout().File(keyspace, table, name), size, sum)
}

func (e emptied) PlaceFile(keyspace, table, name string, size int64, sum string, content io.Reader) error {
	return disk.PlaceFile(e.Root, disk.DefaultLayout().File(keyspace, table, name), size, sum, content)
}

// objects are what is stored, by key.
func (b *backed) objects() map[string][]byte {
	b.t.Helper()
	out := map[string][]byte{}
	if err := fs.WalkDir(os.DirFS(string(b.to.Directory)), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out[path], err = os.ReadFile(filepath.Join(string(b.to.Directory), path))
		}
		return err
	}); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// A backup in an encrypted store tells nobody what it has, is verified and swept as any other, and
// comes back. One that follows a new identity is of its own, and the one before is read still.
func TestAnEncryptedBackup(t *testing.T) {
	first, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	second, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l := newLoading(t)
	for key := range l.objects() { // of the backup that is not encrypted
		_ = os.Remove(filepath.Join(string(l.to.Directory), key))
	}
	row := "a row of a customer"
	l.snapshot("b-1", "2026-03-01T03:00:01.5Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": row,
		"nb-1-big-Statistics.db": "min: a row, max: a row", "nb-1-big-TOC.txt": "Data.db"})
	schema := filepath.Join(l.volume, "data/shop", carts, "snapshots", v1alpha1.BackupTagPrefix+"b-1", "schema.cql")
	if err := os.WriteFile(schema, []byte(schemaOfCarts), 0o600); err != nil {
		t.Fatal(err)
	}
	take := func(id string) {
		t.Helper()
		for _, o := range []v1alpha1.OperationType{v1alpha1.OperationUpload, v1alpha1.OperationCompleteBackup} {
			if _, err := l.run(o, v1alpha1.BackupArguments{ID: id, Members: []string{member},
				ClusterSpec: `{"cassandra":{}}`}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := l.encrypted(first)
	take("b-1")
	names := map[string]bool{}
	for key, content := range l.objects() {
		for _, text := range []string{row, "a row", "CREATE TABLE", "shop", carts, "cassandra"} {
			if strings.Contains(string(content), text) {
				t.Errorf("%s has %q in it", key, text)
			}
		}
		names[key] = true
	}
	if len(names) != 6 || names[blobOf(row)] || names[blobOf("schema")] {
		t.Errorf("there is %v", names)
	}

	damaged := func(s store.Store, id string) (out []string) {
		t.Helper()
		found, err := verifying.Backup(t.Context(), s, uid, id, 100, 0, 0, 1<<30)
		if err != nil || found.FilesRead != 5 {
			t.Fatalf("%+v, %v", found, err)
		}
		for _, f := range found.Damaged {
			out = append(out, f.File+" "+f.Why)
		}
		return out
	}
	if bad := damaged(s, "b-1"); len(bad) > 0 {
		t.Errorf("damaged %q", bad)
	}
	m, err := sweep.Read[format.Manifest](t.Context(), s, format.ManifestKey(uid, "b-1", member))
	if err != nil {
		t.Fatal(err)
	}
	var blob string
	for _, table := range m.Tables {
		for _, sstable := range table.SSTables {
			for _, f := range sstable.Files {
				if sstable.Name == "nb-1-big" && f.Name == "Data.db" {
					blob = filepath.Join(string(l.to.Directory), format.BlobKey(uid, f.BlobName()))
				}
			}
		}
	}
	whole, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{30, len(whole) - 1} { // in what the identity reads, and in the row
		flipped := slices.Clone(whole)
		flipped[at] ^= 1
		if err := os.WriteFile(blob, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if bad := damaged(s, "b-1"); !slices.Equal(bad, []string{"nb-1-big-Data.db has another content"}) {
			t.Errorf("with a bit of byte %d flipped: damaged %q", at, bad)
		}
		if _, err := l.do(v1alpha1.OperationStageTables, nil); err == nil {
			t.Error("a file with another content is restored")
		}
	}
	l.snapshot("b-2", "2026-03-02T03:00:00Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": row})
	take("b-2") // it mends what is noted as damaged
	if bad := damaged(s, "b-1"); len(bad) > 0 {
		t.Errorf("damaged after another backup: %q", bad)
	}

	s = l.encrypted(second, first)
	before := len(l.objects())
	l.snapshot("b-3", "2026-03-03T03:00:00Z", "shop/"+carts, map[string]string{"nb-1-big-Data.db": row})
	take("b-3")
	if got := len(l.objects()); got != before+3 { // the row again, a manifest, a description
		t.Errorf("%d objects, before %d", got, before)
	}
	now := func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	for range 2 {
		if _, err := sweep.Sweep(t.Context(), s, uid, garbage.Default, now); err != nil {
			t.Fatal(err)
		}
		last := now()
		now = func() time.Time { return last.Add(25 * time.Hour) }
	}
	if bad := damaged(s, "b-1"); len(bad) > 0 {
		t.Errorf("damaged after a sweep: %q", bad)
	}

	if _, err := l.do(v1alpha1.OperationStageTables, nil); err != nil {
		t.Fatal(err)
	}
	volume := t.TempDir()
	root, err := os.OpenRoot(volume)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // of a test
	h := restore.Host{Threads: threads.Goroutines{}, Store: s, Say: func(_, _ int64) {}, Disk: emptied{root}}
	if _, err := restore.Run(t.Context(), h, &v1alpha1.DiskRestore{Cluster: uid, Backup: "b-1", HostID: member,
		Roles: v1alpha1.RolesFresh}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(volume, "data/shop", carts, "nb-1-big-Data.db"),
		filepath.Join(l.volume, "restore", v1alpha1.RestoreTagPrefix+"1", member, "shop/carts/nb-1-big-Data.db")} {
		if got, err := os.ReadFile(path); string(got) != row {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	l.encrypted(second)
	if _, err := l.do(v1alpha1.OperationStageTables, nil); err == nil ||
		!strings.Contains(err.Error(), "identities in Secret backup-key") {
		t.Errorf("without the identity: %v", err)
	}
}
