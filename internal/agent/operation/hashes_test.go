package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/facts"
)

const firstFile, secondFile, filterFile = "nb-7-big-Data.db", "nb-8-big-Data.db", "nb-8-big-Filter.db"

// large is the content of a file whose hash is kept.
func large(of string) string { return strings.Repeat(of, worthKeeping) }

// hashed is a node whose snapshot has two files whose hashes are kept, and one that changes in
// place.
type hashed struct {
	*backed
	changed time.Time
	// blob is the key of the first file's object.
	blob string
}

func newHashed(t *testing.T) *hashed {
	h := &hashed{newBacked(t), time.Date(2026, 2, 1, 0, 0, 0, 7, time.UTC), blobOf(large("a"))}
	h.host.DataVolume = h.volume
	if err := os.Mkdir(filepath.Join(h.volume, ".helenus"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{firstFile: large("a"), secondFile: large("b"),
		filterFile: large("f")} {
		h.write(name, content, h.changed)
	}
	return h
}

func (h *hashed) file(id, name string) string {
	return filepath.Join(h.volume, "data/shop", carts, "snapshots", v1alpha1.BackupTagPrefix+id, name)
}

// write a file, which was changed at some time.
func (h *hashed) write(name, content string, at time.Time) {
	h.t.Helper()
	h.snapshot("b-1", "2026-03-01T03:00:00Z", "shop/"+carts, map[string]string{name: content})
	if err := os.Chtimes(h.file("b-1", name), at, at); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hashed) object() string { return filepath.Join(string(h.to.Directory), h.blob) }

func (h *hashed) cache() string { return filepath.Join(h.volume, ".helenus/hashes") }

func (h *hashed) upload(id string) error {
	clear(h.read)
	_, err := h.run(v1alpha1.OperationUpload, v1alpha1.BackupArguments{ID: id})
	return err
}

// What was hashed once is not read again, whichever agent and backup it is for; into another store
// it is read once.
func TestUploadKeepsHashes(t *testing.T) {
	h, ended := newHashed(t), errors.New("the agent has ended")
	h.to.fails = func(key string) error {
		if key == blobOf(large("b")) {
			return ended
		}
		return nil
	}
	if err := h.upload("b-1"); !errors.Is(err, ended) {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id     string
		before func()
		// How often each file is read, and how many objects are put.
		first, second, filter, put int
	}{
		{"b-1", func() { h.to.fails = nil }, 0, 1, 2, 7},
		{"b-2", func() {}, 0, 0, 1, 1},
		{"b-3", func() { h.to.Directory = store.Directory(t.TempDir()) }, 1, 1, 2, 4},
		{"b-4", func() { h.now = h.now.Add(46 * 24 * time.Hour) }, 1, 1, 1, 1},
	} {
		if c.before(); c.id != "b-1" { // hard links, as Cassandra makes them
			h.snapshot(c.id, "2026-03-02T03:00:00Z", "shop/"+carts, nil)
			for _, name := range []string{firstFile, secondFile, filterFile} {
				if err := os.Link(h.file("b-1", name), h.file(c.id, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := h.upload(c.id)
		for name, times := range map[string]int{firstFile: c.first, secondFile: c.second, filterFile: c.filter} {
			if got := h.read[carts+"/"+name]; got != times*worthKeeping {
				t.Errorf("%s has read %s %g times, want %d", c.id, name, float64(got)/worthKeeping, times)
			}
		}
		info, statErr := os.Stat(h.cache())
		if err := errors.Join(err, statErr); err != nil || len(h.to.put) != c.put || info.Mode() != 0o600 {
			t.Errorf("%s: %v, put %q, %v", c.id, err, h.to.put, info)
		}
	}
}

// Whatever becomes of a file or of its hash, no object has another content than its name says, and
// the store gets what the node has.
func TestUploadReadsAgain(t *testing.T) {
	is, other := large("a"), large("A")
	changed := func(h *hashed) error { // and nothing tells that
		h.write(firstFile, other, h.changed)
		return os.Remove(h.object())
	}
	for name, c := range map[string]struct {
		before, meanwhile func(*hashed) error
		// reads of the next upload, and whether the first one after it fails.
		reads int
		wrong bool
		want  string
	}{
		"it is another one": {meanwhile: func(h *hashed) error {
			h.write(firstFile, other, h.changed.Add(time.Nanosecond))
			return nil
		}, reads: 2 * len(is), want: other},
		"it has another size": {meanwhile: func(h *hashed) error {
			h.write(firstFile, other+"A", h.changed)
			return nil
		}, reads: 2 * (len(is) + 1), want: other + "A"},
		"nothing tells that it is another one": {meanwhile: changed, reads: len(is), wrong: true, want: other},
		"nor in an encrypted store": {before: func(h *hashed) error {
			identity, err := age.GenerateX25519Identity()
			sum := store.BlobName(h.encrypted(identity), sha256.Sum256([]byte(is)))
			h.blob = format.BlobKey(uid, hex.EncodeToString(sum[:]))
			return err
		}, meanwhile: changed, reads: len(is), wrong: true},
		"it had changed a moment ago": {before: func(h *hashed) error {
			h.write(firstFile, is, h.now)
			return nil
		}, reads: len(is), want: is},
		"its object is damaged": {meanwhile: func(h *hashed) error {
			note := format.DamagedKey(uid, filepath.Base(h.blob))
			return errors.Join(os.Remove(h.object()), os.WriteFile(h.object(), []byte(other), 0o600),
				h.to.Put(h.t.Context(), note, strings.NewReader(""), 0))
		}, reads: 2 * len(is), want: is},
		"its hash is damaged": {meanwhile: func(h *hashed) error {
			text, err := os.ReadFile(h.cache())
			text[len(text)-20] ^= 1
			return errors.Join(err, os.WriteFile(h.cache(), text, 0o600))
		}, reads: len(is), want: is},
		"its hash is cut off": {meanwhile: func(h *hashed) error { return os.Truncate(h.cache(), 20) },
			reads: len(is), want: is},
		"the disk is another one": {meanwhile: func(h *hashed) error {
			ring := h.host.Ring
			h.host.Ring = func(ctx context.Context) (*facts.Ring, error) {
				r, err := ring(ctx)
				r.HostID, r.Endpoints[0].HostID = "another", "another"
				return r, err
			}
			return nil
		}, reads: len(is), want: is},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHashed(t)
			for _, do := range []func(*hashed) error{c.before, func(h *hashed) error { return h.upload("b-1") },
				func(h *hashed) error { return h.to.Delete(t.Context(), format.ManifestKey(uid, "b-1", member)) },
				c.meanwhile} {
				if do != nil {
					if err := do(h); err != nil {
						t.Fatal(err)
					}
				}
			}
			err := h.upload("b-1")
			if got := h.read[carts+"/"+firstFile]; got != c.reads || errors.Is(err, errContent) != c.wrong {
				t.Errorf("read %d bytes, want %d: %v", got, c.reads, err)
			}
			if c.wrong {
				if _, err := os.Stat(h.object()); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the object of the former content is there: %v", err)
				}
				err = h.upload("b-1")
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				return
			}
			objects := h.objects()
			for key, content := range objects {
				if strings.Contains(key, "/blobs/") && key != blobOf(string(content)) {
					t.Errorf("object %s has another content", key)
				}
			}
			if _, there := objects[blobOf(c.want)]; !there {
				t.Error("what the node has is not there")
			}
		})
	}
}
