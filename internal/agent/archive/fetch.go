package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/restore"
)

const (
	// skew is how much the clocks of the store, of the host and of Cassandra may differ.
	skew = 15 * time.Minute
	// replayFile lists the tables that are replayed, one a line.
	replayFile = ".helenus/replay"
)

// kept is a segment in a store.
type kept struct {
	format.Segment
	parts []store.Object
}

// Fetch puts onto the volume of a commit log, for a JVM that starts first on the disk, what the
// member of a manifest has logged since its snapshot, up to a time at least, and which tables are
// to be replayed of it: those of users that the manifest has, of some keyspaces or of all. All
// others would make the node think that it is the other one.
func Fetch(ctx context.Context, from store.Store, directory string, m *format.Manifest, keyspaces []string,
	until time.Time) error {
	volume, err := os.OpenRoot(directory)
	if err != nil {
		return fmt.Errorf("open volume of the commit log: %w", err)
	}
	defer volume.Close() //nolint:errcheck // what was written was closed
	var tables []string
	for _, t := range m.Tables {
		if t.Keyspace != "system" && !strings.HasPrefix(t.Keyspace, "system_") && restore.Wanted(t.Keyspace, keyspaces) {
			tables = append(tables, t.Keyspace+"."+t.Name)
		}
	}
	slices.Sort(tables)
	if err := place(volume, replayFile, strings.NewReader(strings.Join(slices.Compact(tables), "\n"))); err != nil {
		return err
	}
	if len(tables) == 0 {
		return nil
	}
	segments, err := list(ctx, from, m.Cluster, m.Node.HostID)
	if err != nil {
		return err
	}
	for _, s := range segments {
		if s.Appeared.After(until.Add(skew)) || s.parts[len(s.parts)-1].Written.Before(m.TakenAt.Add(-skew)) {
			continue
		}
		if err := s.fetch(ctx, from, volume); err != nil {
			return fmt.Errorf("fetch segment %s: %w", s.Name, err)
		}
	}
	return nil
}

// list the segments of a member, with their parts in order and without a gap.
func list(ctx context.Context, from store.Store, cluster, hostID string) (out []kept, err error) {
	err = from.List(ctx, format.LogPrefix(cluster, hostID), func(o store.Object) error {
		_, s, offset, err := format.ParsePart(cluster, o.Key)
		if err != nil {
			return err
		}
		if n := len(out); n == 0 || out[n-1].Segment != s {
			out = append(out, kept{Segment: s})
		}
		last, end := &out[len(out)-1], int64(0)
		for _, p := range last.parts {
			end += p.Size
		}
		if offset != end {
			return fmt.Errorf("segment %s has no part from %d to %d in the store", s.Name, end, offset)
		}
		last.parts = append(last.parts, o)
		return nil
	})
	return out, err //nolint:wrapcheck // it says what it is about
}

// fetch one segment, and see that its last part is whole.
func (s kept) fetch(ctx context.Context, from store.Store, volume *os.Root) error {
	var all int64
	var readers []io.Reader
	for _, p := range s.parts {
		all += p.Size
		readers = append(readers, &object{ctx: ctx, from: from, key: p.Key})
	}
	to := path.Join(logDir, s.Name)
	if err := place(volume, to, io.MultiReader(readers...)); err != nil {
		return err
	}
	switch end, err := syncedIn(volume, to, segmentID(s.Name), 0); {
	case err != nil:
		return err
	case end != all:
		return errors.Join(fmt.Errorf("it has %d bytes, and the log ends at %d: its content is not what was sent",
			all, end), volume.Remove(to))
	}
	return nil
}

// object is read when it is its turn.
type object struct {
	ctx  context.Context // that of the call that reads
	from store.Store
	key  string
	open io.ReadCloser
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (n int, err error) {
	if o.open == nil {
		if o.open, err = o.from.Get(o.ctx, o.key); err != nil {
			return 0, err //nolint:wrapcheck // it says what it is about
		}
	}
	if n, err = o.open.Read(p); err != nil {
		_ = o.open.Close() // it was only read
	}
	return n, err //nolint:wrapcheck // who reads says what
}

// place writes a file durably and whole, or not at all.
func place(volume *os.Root, to string, content io.Reader) error {
	const unfinished = ".helenus-tmp"
	if err := volume.MkdirAll(path.Dir(to), 0o750); err != nil {
		return fmt.Errorf("make directory of %s: %w", to, err)
	}
	file, err := volume.Create(to + unfinished)
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = volume.Rename(to+unfinished, to)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	dir, err := volume.Open(path.Dir(to))
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Replayed are the tables that Fetch has written down.
func Replayed(directory string) ([]string, error) {
	volume, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("open volume of the commit log: %w", err)
	}
	defer volume.Close() //nolint:errcheck // it was only read
	text, err := volume.ReadFile(replayFile)
	if err != nil {
		return nil, fmt.Errorf("read which tables are replayed: %w", err)
	}
	return strings.Fields(string(text)), nil
}
