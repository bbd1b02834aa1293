package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
)

const (
	// every is how long after a look the next one is due.
	every = 24 * time.Hour
	// pinned is longer than a pin is needed: a manifest is written within 20 hours of it, or never.
	pinned = 48 * time.Hour
	// undescribed is how old a manifest is whose backup is never described any more: a backup has a
	// week at most.
	undescribed = 14 * 24 * time.Hour
	// leftOut is longer than a restore takes that leaves anything out: each of the two parts of one
	// has a week at most.
	leftOut = 30 * 24 * time.Hour
	// skew is how much the clocks of the store and of the operator may differ.
	skew = 15 * time.Minute
	// mostMarks bounds what is marked at a time, for the memory of the agents that read it.
	mostMarks = 100_000
	// mostRead is more than any manifest or marks have, in bytes.
	mostRead = 1 << 30
)

// LastMarks are the marks that count now; nil if there are none.
func LastMarks(ctx context.Context, s store.Store, cluster string) (*format.Marks, error) {
	keys, err := list(ctx, s, format.MarksPrefix(cluster))
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return Read[format.Marks](ctx, s, keys[len(keys)-1])
}

// Damaged are the blobs of a cluster that were found damaged, and not put again since.
func Damaged(ctx context.Context, s store.Store, cluster string) (map[garbage.Sum]bool, error) {
	out := map[garbage.Sum]bool{}
	err := s.List(ctx, format.DamagedPrefix(cluster), func(o store.Object) error {
		sum, err := format.SumOf(cluster, o.Key)
		out[sum] = err == nil
		return err //nolint:wrapcheck // it says what it is about
	})
	return out, err //nolint:wrapcheck // it says what it is about
}

// Due says that the blobs of a cluster are to be looked at, by the last marks.
func Due(last *format.Marks, now time.Time) bool {
	return last == nil || last.At.After(now) || now.Sub(last.At) >= every
}

// several backups name a blob.
const several = -1

// look is one at the blobs of a cluster.
type look struct {
	store.Store
	cluster string
	rules   garbage.Rules
	now     func() time.Time
	// named are the blobs that manifests name, of those that were read, by the number of the one
	// backup that does, or several; pins those that are pinned.
	named   map[garbage.Sum]int32
	pins    map[garbage.Sum]struct{}
	backups []string
	seen    map[string]bool
}

// Sweep deletes the blobs of a cluster that nobody has named since the last marks, and marks those
// that nobody names now. It deletes nothing unless it can read every manifest. It returns the marks
// that it has written; nil if there are no blobs.
func Sweep(ctx context.Context, s store.Store, cluster string, rules garbage.Rules, now func() time.Time) (
	*format.Marks, error) {
	w := &look{Store: s, cluster: cluster, rules: rules, now: now, named: map[garbage.Sum]int32{},
		seen: map[string]bool{}}
	before, err := list(ctx, s, format.MarksPrefix(cluster))
	if err != nil {
		return nil, err
	}
	marks, next := garbage.Marks{}, &format.Marks{Version: format.Version}
	if len(before) > 0 {
		last, err := Read[format.Marks](ctx, s, before[len(before)-1])
		if err != nil {
			return nil, err
		}
		marks = last.All()
	}
	if err := w.refresh(ctx); err != nil {
		return nil, err
	}
	if err := w.delete(ctx, marks, next); err != nil {
		return nil, err
	}
	if err := w.mark(ctx, marks, next); err != nil {
		return nil, err
	}
	if next.Blobs == 0 && len(before) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("encode marks: %w", err)
	}
	key := format.MarksKey(cluster, next.At)
	if err := s.Put(ctx, key, bytes.NewReader(text), int64(len(text))); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	for _, old := range before {
		if old < key {
			if err := s.Delete(ctx, old); err != nil {
				return nil, err //nolint:wrapcheck // it says what it is about
			}
		}
	}
	return next, nil
}

func (w *look) needed(sum garbage.Sum) bool {
	_, pinned := w.pins[sum]
	_, named := w.named[sum]
	return pinned || named
}

// refresh reads the pins, and then the manifests that were not read before: these never change.
// Pins, manifests and what restores have left out are deleted once nothing comes of them any more.
func (w *look) refresh(ctx context.Context) error {
	w.pins = map[garbage.Sum]struct{}{}
	var over, fresh []string
	if err := w.List(ctx, format.PinPrefix(w.cluster), func(o store.Object) error {
		sum, err := format.SumOf(w.cluster, o.Key)
		if w.now().Sub(o.Written) > pinned {
			over = append(over, o.Key)
		} else {
			w.pins[sum] = struct{}{}
		}
		return err //nolint:wrapcheck // it says what it is about
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	if err := w.List(ctx, format.LeftOut(w.cluster), func(o store.Object) error {
		if w.now().Sub(o.Written) > leftOut {
			over = append(over, o.Key)
		}
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	described := map[string]bool{}
	if err := w.List(ctx, format.BackupPrefix(w.cluster), func(o store.Object) error {
		described[format.BackupOf(o.Key)] = true
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	if err := w.List(ctx, format.ManifestPrefix(w.cluster), func(o store.Object) error {
		switch {
		case !described[format.BackupOf(o.Key)] && w.now().Sub(o.Written) > undescribed:
			over = append(over, o.Key)
		case !w.seen[o.Key]:
			fresh = append(fresh, o.Key)
		}
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	for _, key := range fresh {
		if err := w.read(ctx, key); err != nil {
			return err
		}
	}
	for _, key := range over {
		if _, err := store.Unlocked(ctx, w.Store, key); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
	}
	return nil
}

// read what a manifest names.
func (w *look) read(ctx context.Context, key string) error {
	m, err := Read[format.Manifest](ctx, w.Store, key)
	switch {
	case err != nil:
		return err
	case m.Cluster != w.cluster:
		return fmt.Errorf("object %s is of cluster %s", key, m.Cluster)
	}
	backup := format.BackupOf(key)
	by := slices.Index(w.backups, backup)
	if by < 0 {
		by, w.backups = len(w.backups), append(w.backups, backup)
	}
	for _, t := range m.Tables {
		for _, s := range t.SSTables {
			for _, f := range s.Files {
				sum, err := format.ParseSum(f.BlobName())
				if err != nil {
					return fmt.Errorf("object %s: %w", key, err)
				}
				number := int32(by) //nolint:gosec // a store has fewer backups
				if other, is := w.named[sum]; is && other != number {
					number = several
				}
				w.named[sum] = number
			}
		}
	}
	w.seen[key] = true
	return nil
}

// delete what is due, in batches: before each it is looked again who needs what. What is locked
// stays marked.
func (w *look) delete(ctx context.Context, marks garbage.Marks, next *format.Marks) error {
	left := maps.Clone(marks)
	for {
		began, before := w.now(), len(left)
		if err := w.refresh(ctx); err != nil {
			return err
		}
		due := w.rules.Due(left, w.needed, w.now())
		for _, sum := range due {
			if w.now().Sub(began) >= w.rules.Batch {
				break
			}
			gone, err := store.Unlocked(ctx, w.Store, format.BlobKey(w.cluster, fmt.Sprintf("%x", sum)))
			if err != nil {
				return err //nolint:wrapcheck // it says what it is about
			}
			if delete(left, sum); gone {
				next.Deleted++
			} else {
				next.Locked++
			}
		}
		if len(due) == before-len(left) || before == len(left) {
			return nil
		}
	}
}

// mark what nobody needs of all blobs.
func (w *look) mark(ctx context.Context, marks garbage.Marks, next *format.Marks) error {
	if err := w.refresh(ctx); err != nil {
		return err
	}
	var candidates []garbage.Blob
	began, size := w.now(), map[garbage.Sum]int64{}
	alone := make([]int64, len(w.backups))
	if err := w.List(ctx, format.BlobPrefix(w.cluster), func(o store.Object) error {
		sum, err := format.SumOf(w.cluster, o.Key)
		switch {
		case err != nil:
			return fmt.Errorf("object %s: %w", o.Key, err)
		case o.Written.Sub(w.now()) > skew:
			return fmt.Errorf("object %s was written at %s, and it is %s: the clock of the store or of the operator "+
				"is wrong", o.Key, o.Written.UTC().Format(time.RFC3339), w.now().UTC().Format(time.RFC3339))
		}
		next.Blobs, next.Bytes = next.Blobs+1, next.Bytes+o.Size
		if by, is := w.named[sum]; is && by != several {
			alone[by] += o.Size
		}
		if !w.needed(sum) && began.Sub(o.Written) >= w.rules.Young && len(candidates) < mostMarks {
			candidates, size[sum] = append(candidates, garbage.Blob{Sum: sum, Written: o.Written}), o.Size
		}
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	if err := w.List(ctx, format.LogPrefix(w.cluster, ""), func(o store.Object) error {
		next.LogBytes += o.Size
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	for i, backup := range w.backups {
		next.Alone = append(next.Alone, format.Alone{Backup: backup, Bytes: alone[i]})
	}
	next.At = w.now()
	all := w.rules.Mark(marks, slices.Values(candidates), w.needed, next.At)
	for sum := range all {
		next.MarkedBytes += size[sum]
	}
	for sum := range marks {
		if _, is := all[sum]; !is {
			next.Gone = append(next.Gone, sum[:]...)
		}
	}
	next.Put(all)
	return nil
}

func list(ctx context.Context, s store.Store, prefix string) (keys []string, err error) {
	err = s.List(ctx, prefix, func(o store.Object) error {
		keys = append(keys, o.Key)
		return nil
	})
	return keys, err //nolint:wrapcheck // it says what it is about
}

// Read an object of the format.
func Read[T format.Manifest | format.Marks | format.Backup](ctx context.Context, s store.Store, key string) (out *T,
	err error) {
	object, err := s.Get(ctx, key)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	text, err := io.ReadAll(io.LimitReader(object, mostRead))
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", key, err)
	}
	if out, err = format.Decode[T](text); err != nil {
		return nil, fmt.Errorf("object %s: %w", key, err)
	}
	return out, nil
}
