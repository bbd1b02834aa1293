package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/threads"
)

// atOnce is how many files are read from the store at a time.
const atOnce = 8

// Host is what a restore works with.
type Host struct {
	Threads threads.Threads
	Store   store.Store
	Disk    Disk
	// Say tells how far it is: so many bytes of all are there.
	Say func(done, all int64)
}

// Disk takes the files of tables, by the names of the keyspace, of the directory of the table, and
// of the file.
type Disk interface {
	// HasFile says that a file of this size and SHA-256, in hexadecimal, is there.
	HasFile(keyspace, table, name string, size int64, sum string) bool
	// PlaceFile writes one, durably and whole, or not at all.
	PlaceFile(keyspace, table, name string, size int64, sum string, content io.Reader) error
}

// Run puts onto the disk all that a node had in a backup, but keyspace system, which says who a
// node is, and the roles where the ring gets its own; the schema alone where the ring has another
// shape, with the replication that it gets. Files that are there and right are kept. It
// ends with the first error. It returns what the node had.
func Run(ctx context.Context, h Host, from *v1alpha1.DiskRestore) (*format.Manifest, error) {
	manifest, err := readManifest(ctx, h.Store, from)
	if err != nil {
		return nil, err
	}
	var files []func()
	var done, all int64
	var failed error
	var mutex sync.Mutex
	for _, t := range manifest.Tables {
		if !takes(from, t.Keyspace) {
			continue
		}
		for _, sstable := range t.SSTables {
			for _, f := range sstable.Files {
				all += f.Size
				files = append(files, func() {
					mutex.Lock()
					over := failed != nil
					mutex.Unlock()
					if over {
						return
					}
					err := fetch(ctx, h, from, t.Keyspace, t.Directory(), sstable.Name, f)
					mutex.Lock()
					defer mutex.Unlock()
					if err != nil && failed == nil {
						failed = fmt.Errorf("restore %s-%s of %s.%s: %w", sstable.Name, f.Name, t.Keyspace, t.Name, err)
						if IsDamage(err) && len(from.Datacenters) == 0 {
							failed = fmt.Errorf("%w; each node needs its own. A ring of another shape, or a "+
								"CassandraRestore of tables, can do without it where the backup has a quorum of each "+
								"range", failed)
						}
					}
					done += f.Size
					h.Say(done, all)
				})
			}
		}
	}
	h.Threads.Together(atOnce, files...)
	if failed == nil {
		failed = editSchema(h.Disk, manifest, from)
	}
	return manifest, failed
}

// IsDamage says that a file, whose manifest could be read, is not in the store, or not as it was
// put there.
func IsDamage(err error) bool {
	return errors.Is(err, disk.ErrContent) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) ||
		errors.Is(err, store.ErrNoIdentity)
}

func readManifest(ctx context.Context, s store.Store, from *v1alpha1.DiskRestore) (*format.Manifest, error) {
	key := format.ManifestKey(string(from.Cluster), from.Backup, from.HostID)
	content, err := read(ctx, s, key)
	if err != nil {
		return nil, err
	}
	m, err := format.Decode[format.Manifest](content)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", key, err)
	}
	if m.Cluster != string(from.Cluster) || m.Backup != from.Backup || m.Node.HostID != from.HostID {
		return nil, fmt.Errorf("manifest %s is of node %s in backup %s of cluster %s", key, m.Node.HostID, m.Backup,
			m.Cluster)
	}
	return m, nil
}

func read(ctx context.Context, s store.Store, key string) (content []byte, err error) {
	object, err := s.Get(ctx, key)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	defer func() {
		if closed := object.Close(); err == nil {
			err = closed
		}
	}()
	return io.ReadAll(object)
}

// fetch a file or a pack of an SSTable.
func fetch(ctx context.Context, h Host, from *v1alpha1.DiskRestore, keyspace, table, sstable string,
	f format.File) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // who asks says of what
	}
	return Fetch(ctx, h.Store, string(from.Cluster), f, func(f format.File) bool {
		return h.Disk.HasFile(keyspace, table, sstable+"-"+f.Name, f.Size, f.SHA256)
	}, func(f format.File, content io.Reader) error {
		return h.Disk.PlaceFile(keyspace, table, sstable+"-"+f.Name, f.Size, f.SHA256, content)
	})
}

// Fetch a file, or all of a pack, unless they are there. Place is asked for those that are not, and
// refuses another content.
func Fetch(ctx context.Context, s store.Store, cluster string, f format.File, has func(format.File) bool,
	place func(format.File, io.Reader) error) error {
	if !slices.ContainsFunc(f.Unpacked(), func(f format.File) bool { return !has(f) }) {
		return nil
	}
	content, err := s.Get(ctx, format.BlobKey(cluster, f.BlobName()))
	if err != nil {
		return err //nolint:wrapcheck // who asks says of what
	}
	if len(f.Files) == 0 {
		err = place(f, content)
	}
	for i := 0; err == nil && i < len(f.Files); i++ {
		one := io.LimitReader(content, f.Files[i].Size)
		if has(f.Files[i]) {
			_, err = io.Copy(io.Discard, one)
		} else {
			err = place(f.Files[i], one)
		}
	}
	if closed := content.Close(); err == nil {
		err = closed
	}
	return err //nolint:wrapcheck // who asks says of what
}
