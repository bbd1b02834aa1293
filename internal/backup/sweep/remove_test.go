package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// failing is a store in which a deletion fails after some.
type failing struct {
	store.Directory
	after int
}

func (f *failing) Delete(ctx context.Context, key string) error {
	if f.after--; f.after < 0 {
		return errors.New("slow down")
	}
	return f.Directory.Delete(ctx, key)
}

func put(t *testing.T, s store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := s.Put(t.Context(), key, strings.NewReader(key), int64(len(key))); err != nil {
			t.Fatal(err)
		}
	}
}

func listed(t *testing.T, s store.Store) (keys []string) {
	t.Helper()
	if err := s.List(t.Context(), "", func(o store.Object) error {
		keys = append(keys, o.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

// A backup is never there without its manifests, wherever its removal ends; and what is of others
// stays.
func TestRemove(t *testing.T) {
	description := format.BackupKey("c", "b1")
	own := []string{description, format.ManifestKey("c", "b1", "h1"), format.ManifestKey("c", "b1", "h2")}
	others := []string{format.BackupKey("c", "b10"), format.BlobKey("c", "abcd"),
		format.ManifestKey("c", "b10", "h1"), format.BackupKey("d", "b1"), format.ManifestKey("d", "b1", "h1")}
	free := func(context.Context) error { return nil }
	for after := range len(own) + 1 {
		s := &failing{Directory: store.Directory(t.TempDir()), after: after}
		put(t, s, slices.Concat(own, others)...)
		if err := Remove(t.Context(), s, "c", "b1", free); (err == nil) != (after == len(own)) {
			t.Errorf("%d deletions: %v", after, err)
		}
		keys := listed(t, s)
		if slices.Contains(keys, description) && len(keys) != len(own)+len(others) {
			t.Errorf("%d deletions: it is described, and only %q are there", after, keys)
		}
		s.after = 9
		if err := Remove(t.Context(), s, "c", "b1", free); err != nil {
			t.Error(err)
		}
		if left := listed(t, s); !slices.Equal(left, others) {
			t.Errorf("left are %q, want %q", left, others)
		}
	}
}

// Who began to read before the description went finds the manifests.
func TestRemoveWaitsForReaders(t *testing.T) {
	s, read := store.Directory(t.TempDir()), errors.New("a ring is made from it")
	manifest := format.ManifestKey("c", "b1", "h1")
	put(t, s, format.BackupKey("c", "b1"), manifest)
	if err := Remove(t.Context(), s, "c", "b1", func(context.Context) error {
		if keys := listed(t, s); !slices.Equal(keys, []string{manifest}) {
			t.Errorf("asked while %q are there", keys)
		}
		return read
	}); !errors.Is(err, read) {
		t.Error(err)
	}
	if keys := listed(t, s); !slices.Equal(keys, []string{manifest}) {
		t.Errorf("left are %q", keys)
	}
}

// All that is of a cluster goes with its backup, wherever the removal ends before; but not while
// the cluster has another one, and nothing of other clusters does.
func TestRemoveAll(t *testing.T) {
	own := []string{format.BackupKey("c", "b1"), format.BlobKey("c", "abcd"), format.PinKey("c", "abcd", "n"),
		format.ManifestKey("c", "b1", "h1"), format.LeftOutKey("c", "r", "m", "h1", "t")}
	others := []string{format.BlobKey("c2", "abcd"), format.BackupKey("d", "b1")}
	free := func(context.Context) error { return nil }
	for after := range len(own) + 1 {
		s := &failing{Directory: store.Directory(t.TempDir()), after: after}
		put(t, s, slices.Concat(own, others)...)
		if err := RemoveAll(t.Context(), s, "c", "b1", free); (err == nil) != (after == len(own)) {
			t.Errorf("%d deletions: %v", after, err)
		}
		s.after = 9
		if err := RemoveAll(t.Context(), s, "c", "b1", free); err != nil {
			t.Error(err)
		}
		if left := listed(t, s); !slices.Equal(left, others) {
			t.Errorf("left are %q, want %q", left, others)
		}
	}
	s, another := store.Directory(t.TempDir()), []string{format.BackupKey("c", "b2"), format.BlobKey("c", "abcd")}
	put(t, s, append(another, format.BackupKey("c", "b1"))...)
	if err := RemoveAll(t.Context(), s, "c", "b1", free); err != nil || !slices.Equal(listed(t, s), another) {
		t.Errorf("left are %q; %v", listed(t, s), err)
	}
}
