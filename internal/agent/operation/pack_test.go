package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	verifying "helenus.io/helenus/internal/backup/verify"
)

// asked counts requests of blobs.
type asked struct {
	store.Store
	sizes map[string]int
}

func (a *asked) Size(ctx context.Context, key string) (int64, error) {
	if strings.Contains(key, "/blobs/") {
		a.sizes[key]++
	}
	return a.Store.Size(ctx, key)
}

// What Cassandra 5.0 writes of one SSTable with an index, in the order of names.
func sstable() map[string]string {
	return map[string]string{"nb-9-big-CompressionInfo.db": "chunks", "nb-9-big-Data.db": "rows",
		"nb-9-big-Digest.crc32": "1", "nb-9-big-Filter.db": "bits", "nb-9-big-Index.db": "keys",
		"nb-9-big-SAI+aa+TermsData.db": "terms", "nb-9-big-Statistics.db": "level 0", "nb-9-big-Summary.db": "some keys",
		"nb-9-big-TOC.txt": "all"}
}

const packOf = "chunks1bitslevel 0some keysall"

func components(t *testing.T, contents map[string]string) []format.File {
	t.Helper()
	table := format.Table{Keyspace: "shop", Name: "carts"}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		if err := addFile(&table, disk.SnapshotFile{Name: name, Size: int64(len(contents[name]))}); err != nil {
			t.Fatal(err)
		}
	}
	if len(table.SSTables) != 1 {
		t.Fatalf("SSTables %+v", table.SSTables)
	}
	return table.SSTables[0].Files
}

// Small files of an SSTable are a pack, in the order of their names.
func TestPacked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(map[string]string)
		blobs  string
		pack   string
	}{
		"format big": {func(map[string]string) {}, "pack Data.db Index.db SAI+aa+TermsData.db",
			"CompressionInfo.db Digest.crc32 Filter.db Statistics.db Summary.db TOC.txt"},
		"format bti": {func(of map[string]string) {
			delete(of, "nb-9-big-Index.db")
			delete(of, "nb-9-big-Summary.db")
			of["nb-9-big-Partitions.db"], of["nb-9-big-Rows.db"] = "trie", "trie"
		}, "pack Data.db Partitions.db Rows.db SAI+aa+TermsData.db",
			"CompressionInfo.db Digest.crc32 Filter.db Statistics.db TOC.txt"},
		"large ones": {func(of map[string]string) {
			of["nb-9-big-Filter.db"] = strings.Repeat("b", worthKeeping)
			of["nb-9-big-CompressionInfo.db"] = strings.Repeat("c", worthKeeping-1)
		}, "pack Data.db Filter.db Index.db SAI+aa+TermsData.db",
			"CompressionInfo.db Digest.crc32 Statistics.db Summary.db TOC.txt"},
		"data alone": {func(of map[string]string) {
			maps.DeleteFunc(of, func(name, _ string) bool { return name != "nb-9-big-Data.db" })
		}, "Data.db", ""},
	} {
		contents, size := sstable(), 0
		c.change(contents)
		var blobs, pack []string
		for _, f := range components(t, contents) {
			blobs = append(blobs, f.Name)
			if f.Name != format.Pack {
				continue
			}
			for _, one := range f.Files {
				pack, size = append(pack, one.Name), size+len(contents["nb-9-big-"+one.Name])
			}
			if f.Size != int64(size) {
				t.Errorf("%s: the pack has %d bytes, not %d", name, f.Size, size)
			}
		}
		if b, p := strings.Join(blobs, " "), strings.Join(pack, " "); b != c.blobs || p != c.pack {
			t.Errorf("%s: blobs %s, packed %s", name, b, p)
		}
	}
}

// Of nine files of an SSTable four are sent, and looked for by the next backup. One that changed in
// place has its pack sent again, and nothing else.
func TestUploadPacksSmallFiles(t *testing.T) {
	b := newBacked(t)
	if err := os.RemoveAll(filepath.Join(b.volume, "data")); err != nil {
		t.Fatal(err)
	}
	contents := sstable()
	counted := &asked{Store: b.to}
	b.host.Store = func(context.Context, *v1alpha1.BackupStoreSpec) (store.Store, error) { return counted, nil }
	all := []string{packOf, "rows", "keys", "terms"}
	for id, c := range map[string]struct {
		statistics string
		put        []string
		bytes      int64
	}{
		"b-1": {"level 0", all, 43},
		"b-2": {"level 0", nil, 0},
		"b-3": {"level 1", []string{strings.Replace(packOf, "level 0", "level 1", 1)}, 30},
	} {
		t.Run(id, func(t *testing.T) {
			_ = os.RemoveAll(string(b.to.Directory))
			if err := os.Mkdir(string(b.to.Directory), 0o750); err != nil {
				t.Fatal(err)
			}
			upload := func(id string) {
				t.Helper()
				b.snapshot(id, "2026-03-01T03:00:00Z", "shop/"+carts, contents)
				counted.sizes = map[string]int{}
				clear(b.opened)
				if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			contents["nb-9-big-Statistics.db"] = "level 0"
			if upload("b-1"); id != "b-1" {
				contents["nb-9-big-Statistics.db"] = c.statistics
				upload(id)
			}
			var want []string
			for _, content := range c.put {
				want = append(want, blobOf(content))
			}
			manifest := b.to.put[len(b.to.put)-1]
			if got := slices.Sorted(slices.Values(b.to.put[:len(b.to.put)-1])); !slices.Equal(got,
				slices.Sorted(slices.Values(want))) {
				t.Errorf("put %q, want %q", got, want)
			}
			if u := b.noted.Uploaded; u.Files != 9 || u.Bytes != 43 || u.NewBytes != c.bytes {
				t.Errorf("noted %+v", u)
			}
			for key, times := range counted.sizes {
				if times != 1 || len(counted.sizes) != 4 {
					t.Errorf("of %d blobs %s was looked for %d times", len(counted.sizes), key, times)
				}
			}
			for name, times := range b.opened {
				if times != 1 || len(b.opened) != 9 {
					t.Errorf("of %d files %s was opened %d times", len(b.opened), name, times)
				}
			}
			m, err := sweep.Read[format.Manifest](t.Context(), b.to, manifest)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range m.Tables[0].SSTables[0].Files {
				for _, one := range f.Unpacked() {
					sum := sha256.Sum256([]byte(contents["nb-9-big-"+one.Name]))
					if one.SHA256 != hex.EncodeToString(sum[:]) {
						t.Errorf("%s has SHA-256 %s", one.Name, one.SHA256)
					}
				}
			}
		})
	}
}

// A file of a pack that changes between its hash and its sending is not sent, nor is one whose size
// is another one: the next file would not be where it is said to be.
func TestUploadOfAPackThatChanges(t *testing.T) {
	for name, c := range map[string]struct{ changed, want string }{
		"another content": {"level 9", errContent.Error()},
		"longer":          {"level 10", "the size of nb-9-big-Statistics.db has changed"},
		"shorter":         {"level", "the size of nb-9-big-Statistics.db has changed"},
	} {
		b := newBacked(t)
		b.snapshot("b-1", "2026-03-01T03:00:01Z", "shop/"+carts, sstable())
		b.to.fails = func(key string) error {
			if key != blobOf(packOf) {
				return nil
			}
			return os.WriteFile(filepath.Join(b.volume, "data/shop", carts,
				"snapshots/helenus-backup-b-1/nb-9-big-Statistics.db"), []byte(c.changed), 0o600)
		}
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err == nil ||
			!strings.Contains(err.Error(), c.want) || slices.Contains(b.to.put, blobOf(packOf)) {
			t.Errorf("%s: %v, put %q", name, err, b.to.put)
		}
		b.to.fails = nil
		if _, err := b.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{}); err != nil ||
			!slices.Contains(b.to.put, blobOf(strings.Replace(packOf, "level 0", c.changed, 1))) {
			t.Errorf("%s: %v, then put %q", name, err, b.to.put)
		}
	}
}

// A bit of a pack in the store is found where it is verified and restored, noted by the name of the
// pack, and mended by the next backup.
func TestADamagedPack(t *testing.T) {
	l := newLoading(t)
	l.snapshot("b-2", "2026-03-02T03:00:00Z", "shop/"+carts, sstable())
	schema := filepath.Join(l.volume, "data/shop", carts, "snapshots", v1alpha1.BackupTagPrefix+"b-2", "schema.cql")
	if err := os.WriteFile(schema, []byte(schemaOfCarts), 0o600); err != nil {
		t.Fatal(err)
	}
	take := func(id string) {
		t.Helper()
		for _, o := range []v1alpha1.OperationType{v1alpha1.OperationUpload, v1alpha1.OperationCompleteBackup} {
			if _, err := l.run(o, v1alpha1.BackupArguments{ID: id, Members: []string{member}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	take("b-2")
	restore := func() error {
		_, err := l.do(v1alpha1.OperationStageTables, func(a *v1alpha1.RestoreArguments) { a.Backup = "b-2" })
		return err
	}
	noted := func(want int) {
		t.Helper()
		all, err := sweep.Damaged(t.Context(), l.to, uid)
		if err != nil || len(all) != want || want > 0 && !all[sha256.Sum256([]byte(packOf))] {
			t.Errorf("noted are %v, %v", all, err)
		}
	}
	damaged := func(want ...string) {
		t.Helper()
		found, err := verifying.Backup(t.Context(), l.to, uid, "b-2", 100, 0, 0, 1<<30)
		if err != nil || found.Files != 9 || found.FilesRead != 9 {
			t.Fatalf("%+v, %v", found, err)
		}
		var files []string
		for _, f := range found.Damaged {
			files = append(files, f.File+" "+f.Why)
		}
		if !slices.Equal(files, want[:min(len(want), len(files))]) || int(found.DamagedFiles) != len(want) {
			t.Errorf("%d are damaged: %q", found.DamagedFiles, files)
		}
	}
	damaged()
	key := filepath.Join(string(l.to.Directory), blobOf(packOf))
	is := []byte(packOf)
	is[strings.Index(packOf, "bits")] ^= 1
	if err := os.WriteFile(key, is, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(); !errors.Is(err, disk.ErrContent) || !strings.Contains(err.Error(), "nb-9-big-Filter.db") {
		t.Errorf("the restore says %v", err)
	}
	noted(1)
	var want []string
	for _, f := range components(t, sstable())[0].Files {
		want = append(want, "nb-9-big-"+f.Name+" is in a pack that has another content")
	}
	damaged(want...)
	noted(1)
	staged := func() (names []string) {
		for _, name := range l.staged() {
			names = append(names, strings.TrimPrefix(path.Base(name), "nb-9-big-"))
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	if got := staged(); !slices.Equal(got, []string{"CompressionInfo.db", "Digest.crc32"}) {
		t.Errorf("staged are %q", got)
	}

	l.snapshot("b-3", "2026-03-03T03:00:00Z", "shop/"+carts, sstable())
	take("b-3")
	noted(0)
	damaged()
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if got := staged(); !slices.Equal(got, []string{"CompressionInfo.db", "Data.db", "Digest.crc32", "Filter.db",
		"Index.db", "Statistics.db", "Summary.db", "TOC.txt", "complete"}) {
		t.Errorf("staged are %q", got)
	}
}
