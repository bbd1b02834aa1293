package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/time/rate"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/facts"
)

// bucket is a store with a backup of two nodes, in which some requests go wrong.
type bucket struct {
	store.Directory
	t *testing.T
	// unlisted keys are there, and not in lists; once are read wrongly one time; fails all reads.
	unlisted string
	once     map[string]bool
	fails    error

	mu   sync.Mutex
	read int
}

func (b *bucket) List(ctx context.Context, prefix string, each func(store.Object) error) error {
	return b.Directory.List(ctx, prefix, func(o store.Object) error {
		if o.Key == b.unlisted {
			return nil
		}
		return each(o)
	})
}

func (b *bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if strings.Contains(key, "/blobs/") {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.read++
		if b.fails != nil {
			return nil, b.fails
		}
		if b.once[key] {
			b.once[key] = false
			return io.NopCloser(strings.NewReader("noise")), nil
		}
	}
	return b.Directory.Get(ctx, key)
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func blobOf(content string) string { return format.BlobKey("c", sumOf(content)) }

func (b *bucket) put(key string, of any) {
	b.t.Helper()
	content, is := of.(string)
	if !is {
		text, err := json.Marshal(of)
		if err != nil {
			b.t.Fatal(err)
		}
		content = string(text)
	}
	err := b.Put(b.t.Context(), key, strings.NewReader(content), int64(len(content)))
	if err != nil && !errors.Is(err, store.ErrExists) {
		b.t.Fatal(err)
	}
}

// change what is at a key; remove it if there is nothing to be.
func (b *bucket) change(key, content string) {
	b.t.Helper()
	path := filepath.Join(string(b.Directory), key)
	err := os.Remove(path)
	if content != "" {
		err = os.WriteFile(path, []byte(content), 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func newBucket(t *testing.T) *bucket {
	b := &bucket{Directory: store.Directory(t.TempDir()), t: t, once: map[string]bool{}}
	d := &format.Backup{Version: format.Version, ID: "b-1"}
	for _, node := range []string{"h-1", "h-2"} {
		n := format.Node{Name: "n-" + node, HostID: node, Datacenter: "dc1", Rack: "r1", Tokens: []string{"1"}}
		d.Nodes = append(d.Nodes, n)
		m := &format.Manifest{Version: format.Version, Backup: "b-1", Cluster: "c", Node: n,
			Tables: []format.Table{{Keyspace: "shop", Name: "orders", SSTables: []format.SSTable{{Name: "nb-1-big"}}}}}
		files := []format.File{{Name: "Data.db"}, {Name: format.Pack, Files: []format.File{
			{Name: "Digest.crc32", Size: 4, SHA256: sumOf("all ")}, {Name: "TOC.txt", Size: 7, SHA256: sumOf("have it")}}}}
		for i, content := range []string{"data of " + node, "all have it"} {
			files[i].Size, files[i].SHA256 = int64(len(content)), sumOf(content)
			b.put(blobOf(content), content)
		}
		m.Tables[0].SSTables[0].Files = files
		b.put(format.ManifestKey("c", "b-1", node), m)
	}
	b.put(format.BlobKey("c", strings.Repeat("ab", 32)), "of another backup")
	b.put(format.BackupKey("c", "b-1"), d)
	return b
}

// verify a backup of which so many files are in memory at a time, at most.
func (b *bucket) verify(sample, most int) (*facts.VerifiedBackup, []string, error) {
	found, err := b.verifying(sample, most).run(b.t.Context())
	if err != nil {
		return nil, nil, err
	}
	var bad []string
	for _, f := range found.Damaged {
		bad = append(bad, fmt.Sprintf("%s %s.%s %s %s", f.Node, f.Keyspace, f.Table, f.File, f.Why))
	}
	return found, bad, nil
}

func (b *bucket) verifying(sample, most int) *verifying {
	return &verifying{Store: b, cluster: "c", backup: "b-1", percent: sample, most: most,
		limit: rate.NewLimiter(rate.Inf, 0), lost: map[int]bool{}, named: map[table]int{}}
}

// noted are the blobs that the store says are damaged.
func (b *bucket) noted() (out []string) {
	b.t.Helper()
	if err := b.List(b.t.Context(), format.DamagedPrefix("c"), func(o store.Object) error {
		out = append(out, strings.TrimPrefix(o.Key, format.DamagedPrefix("c")))
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestBackup(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*bucket)
		sample int
		want   []string
		noted  []string
	}{
		"all is there": {func(*bucket) {}, 100, nil, nil},
		"a file is gone": {func(b *bucket) { b.change(blobOf("data of h-1"), "") }, 0,
			[]string{"n-h-1 shop.orders nb-1-big-Data.db is missing"}, nil},
		"one that both nodes have is gone": {func(b *bucket) { b.change(blobOf("all have it"), "") }, 0,
			[]string{"n-h-1 shop.orders nb-1-big-Digest.crc32 is in a pack that is missing",
				"n-h-1 shop.orders nb-1-big-TOC.txt is in a pack that is missing",
				"n-h-2 shop.orders nb-1-big-Digest.crc32 is in a pack that is missing",
				"n-h-2 shop.orders nb-1-big-TOC.txt is in a pack that is missing"}, nil},
		"a file is shorter": {func(b *bucket) { b.change(blobOf("data of h-2"), "data") }, 0,
			[]string{"n-h-2 shop.orders nb-1-big-Data.db has 4 bytes, not 11"}, []string{sumOf("data of h-2")}},
		"a bit is flipped": {func(b *bucket) { b.change(blobOf("data of h-2"), "dats of h-2") }, 100,
			[]string{"n-h-2 shop.orders nb-1-big-Data.db has another content"}, []string{sumOf("data of h-2")}},
		"and is not in the sample": {func(b *bucket) { b.change(blobOf("data of h-2"), "dats of h-2") }, 0, nil, nil},
		"it was found before, and is in no sample": {func(b *bucket) {
			b.change(blobOf("data of h-2"), "dats of h-2")
			b.put(format.DamagedKey("c", sumOf("data of h-2")), "")
		}, 0, []string{"n-h-2 shop.orders nb-1-big-Data.db has another content"}, []string{sumOf("data of h-2")}},
		"it was found before, and is right": {func(b *bucket) {
			b.put(format.DamagedKey("c", sumOf("data of h-2")), "")
		}, 0, nil, nil},
		"one of another backup was found before": {func(b *bucket) {
			b.put(format.DamagedKey("c", strings.Repeat("ab", 32)), "")
		}, 100, nil, []string{strings.Repeat("ab", 32)}},
		"one that is swept was found before": {func(b *bucket) {
			b.put(format.DamagedKey("c", strings.Repeat("cd", 32)), "")
		}, 100, nil, nil},
		"the list lacks one":      {func(b *bucket) { b.unlisted = blobOf("data of h-1") }, 100, nil, nil},
		"the network flips a bit": {func(b *bucket) { b.once[blobOf("data of h-1")] = true }, 100, nil, nil},
		"its description is gone": {func(b *bucket) { b.change(format.BackupKey("c", "b-1"), "") }, 100, []string{" . its description is missing"}, nil},
		"a manifest is gone":      {func(b *bucket) { b.change(format.ManifestKey("c", "b-1", "h-1"), "") }, 100, []string{"n-h-1 . its manifest is missing"}, nil},
		"a manifest is no JSON":   {func(b *bucket) { b.change(format.ManifestKey("c", "b-1", "h-1"), "{") }, 100, []string{"n-h-1 . its manifest has another content"}, nil},
		"a manifest is another's": {func(b *bucket) { b.change(format.ManifestKey("c", "b-1", "h-1"), `{"version":1}`) }, 100, []string{"n-h-1 . its manifest has another content"}, nil},
		"a manifest and what both": {func(b *bucket) {
			b.change(format.ManifestKey("c", "b-1", "h-1"), "")
			b.change(blobOf("all have it"), "")
		}, 0, []string{"n-h-1 . its manifest is missing",
			"n-h-2 shop.orders nb-1-big-Digest.crc32 is in a pack that is missing",
			"n-h-2 shop.orders nb-1-big-TOC.txt is in a pack that is missing"}, nil},
	} {
		for _, most := range []int{atMost, 2, 1} {
			b := newBucket(t)
			c.change(b)
			found, bad, err := b.verify(c.sample, most)
			if err != nil || !slices.Equal(bad, c.want) || found.DamagedFiles != int64(len(bad)) {
				t.Errorf("%s, by %d: %q, %v", name, most, bad, err)
			}
			if noted := b.noted(); !slices.Equal(noted, c.noted) {
				t.Errorf("%s, by %d: noted %q", name, most, noted)
			}
		}
	}
}

// What is counted is what was looked for and read: a content that several files have is read once,
// and so is a pack.
func TestBackupCounts(t *testing.T) {
	b := newBucket(t)
	found, _, err := b.verify(100, 2)
	if err != nil || found.Files != 6 || found.Bytes != 44 || found.FilesRead != 4 || found.BytesRead != 33 ||
		b.read != 3 {
		t.Errorf("%+v, %d read, %v", found, b.read, err)
	}
	if found, _, err = b.verify(0, atMost); err != nil || found.Files != 6 || found.FilesRead != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Beside the sample a part of all contents is read, and all parts are all contents.
func TestAllIsReadInParts(t *testing.T) {
	b := newBucket(t)
	all := int64(0)
	for from := range 100 {
		v := b.verifying(0, atMost)
		v.from, v.to = from, from+1
		found, err := v.run(t.Context())
		if err != nil || found.ReadTo != from+1 {
			t.Fatalf("%+v, %v", found, err)
		}
		all += found.FilesRead
	}
	if all != 4 {
		t.Errorf("%d of 4 files are read", all)
	}
	if found, _, err := b.verify(100, atMost); err != nil || found.ReadTo != 100 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A store that does not answer, and a format that is not known, are no damage.
func TestBackupThatCannotBeVerified(t *testing.T) {
	b := newBucket(t)
	b.fails = errors.New("slow down")
	if _, _, err := b.verify(100, atMost); !errors.Is(err, b.fails) || len(b.noted()) > 0 {
		t.Errorf("%v, noted %q", err, b.noted())
	}
	b = newBucket(t)
	b.change(format.ManifestKey("c", "b-1", "h-1"), `{"version":99}`)
	if _, _, err := b.verify(100, atMost); err == nil {
		t.Error("a later version of the format is damage")
	}
}

// The sample has about so many files as it says, and those of the next backup are others.
func TestChosen(t *testing.T) {
	n, both := 0, 0
	for i := range 10_000 {
		sum := sha256.Sum256([]byte(fmt.Sprint(i)))
		one, other := chosen("b-1", sum, 5), chosen("b-2", sum, 5)
		if one {
			n++
		}
		if one && other {
			both++
		}
		if chosen("b-1", sum, 0) || !chosen("b-1", sum, 100) {
			t.Fatal("none and all")
		}
	}
	if n < 400 || n > 600 || both > 60 {
		t.Errorf("%d of 10000 are in the sample, %d in the next one, too", n, both)
	}
}
