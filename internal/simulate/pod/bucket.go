package pod

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/simulate/timeline"
)

// Bucket is a store of backups, as a map. Each request takes its time.
type Bucket struct {
	Line    *timeline.Timeline
	Objects map[string][]byte
	// Written is told of each object that is written; nil for nobody.
	Written func(key string)
}

func (b *Bucket) pass() { b.Line.Sleep(b.Line.Between(5*time.Millisecond, 80*time.Millisecond)) }

// Put implements store.Store.
func (b *Bucket) Put(_ context.Context, key string, content io.Reader, size int64) error {
	text, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	if int64(len(text)) != size {
		return fmt.Errorf("write object %s: content has %d bytes, not %d", key, len(text), size)
	}
	b.pass()
	if _, there := b.Objects[key]; there {
		return store.ErrExists
	}
	b.Objects[key] = text
	if b.Written != nil {
		b.Written(key)
	}
	return nil
}

// Get implements store.Store.
func (b *Bucket) Get(_ context.Context, key string) (io.ReadCloser, error) {
	b.pass()
	text, there := b.Objects[key]
	if !there {
		return nil, fmt.Errorf("read object %s: %w", key, store.ErrNotFound)
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// Size implements store.Store.
func (b *Bucket) Size(_ context.Context, key string) (int64, error) {
	b.pass()
	text, there := b.Objects[key]
	if !there {
		return 0, fmt.Errorf("look for object %s: %w", key, store.ErrNotFound)
	}
	return int64(len(text)), nil
}

// List implements store.Store.
func (b *Bucket) List(_ context.Context, prefix string, each func(store.Object) error) error {
	b.pass()
	for _, key := range slices.Sorted(maps.Keys(b.Objects)) {
		if strings.HasPrefix(key, prefix) {
			if err := each(store.Object{Key: key, Size: int64(len(b.Objects[key]))}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Directories implements store.Store.
func (b *Bucket) Directories(context.Context) (out []string, err error) {
	b.pass()
	for _, key := range slices.Sorted(maps.Keys(b.Objects)) {
		if name, _, is := strings.Cut(key, "/"); is {
			out = append(out, name)
		}
	}
	return slices.Compact(out), nil
}

// Delete implements store.Store.
func (b *Bucket) Delete(_ context.Context, key string) error {
	b.pass()
	delete(b.Objects, key)
	return nil
}

// Change the objects of which the key has a word in it, as nobody may.
func (b *Bucket) Change(word string, change func(content []byte) []byte) {
	for key, content := range b.Objects {
		if strings.Contains(key, word) {
			b.Objects[key] = change(content)
		}
	}
}
