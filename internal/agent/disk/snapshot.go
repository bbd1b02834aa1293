package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Snapshot is what one table has under a tag.
type Snapshot struct {
	Keyspace string
	// Table is the name of its directory: name and id.
	Table string
	// TakenAt is when Cassandra took it.
	TakenAt time.Time
	// Schema is the text that Cassandra wrote of the table; empty for tables of its own.
	Schema string
	Files  []SnapshotFile
}

// SnapshotFile is a file of an SSTable. One of an index in a table of its own has the directory of
// that before its name.
type SnapshotFile struct {
	Name string
	Size int64
	// Open it, once for all that is read of it: at its end it leaves the page cache, if any was.
	Open func() (io.ReadSeekCloser, error)
}

// Snapshots are those of all tables under a tag, by keyspace and table. What Cassandra writes of
// the snapshot itself is not among their files.
func Snapshots(volume *os.Root, layout Layout, tag string) ([]Snapshot, error) {
	files := volume.FS()
	var out []Snapshot
	for _, data := range layout.Data {
		found, err := fs.Glob(files, path.Join(data, "*", "*", "snapshots", tag))
		if err != nil {
			return nil, fmt.Errorf("find snapshots %s: %w", tag, err)
		}
		for _, dir := range found {
			table := path.Dir(path.Dir(dir))
			s := Snapshot{Keyspace: path.Base(path.Dir(table)), Table: path.Base(table)}
			if s.TakenAt, err = takenAt(files, dir); err != nil {
				return nil, fmt.Errorf("read snapshot %s: %w", dir, err)
			}
			schema, err := fs.ReadFile(files, path.Join(dir, schemaFile))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("read snapshot %s: %w", dir, err)
			}
			s.Schema = string(schema)
			if s.Files, err = filesOf(volume, dir); err != nil {
				return nil, fmt.Errorf("list snapshot %s: %w", dir, err)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// What Cassandra writes beside the files.
const (
	snapshotManifest = "manifest.json"
	schemaFile       = "schema.cql"
)

// takenAt is the time in the manifest of a snapshot, which Cassandra writes last
// (SnapshotManifest, 4.1 and 5.0).
func takenAt(files fs.FS, dir string) (time.Time, error) {
	text, err := fs.ReadFile(files, path.Join(dir, snapshotManifest))
	if err != nil {
		return time.Time{}, err
	}
	var manifest struct {
		CreatedAt time.Time `json:"created_at"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return time.Time{}, fmt.Errorf("decode %s: %w", snapshotManifest, err)
	}
	if manifest.CreatedAt.IsZero() {
		return time.Time{}, errors.New(snapshotManifest + " has no created_at")
	}
	return manifest.CreatedAt, nil
}

// Join some files to one, which has their contents one after the other.
func Join(name string, files []SnapshotFile) SnapshotFile {
	out := SnapshotFile{Name: name, Open: func() (io.ReadSeekCloser, error) {
		j := &joined{}
		for _, f := range files {
			file, err := f.Open()
			if err != nil {
				return nil, errors.Join(err, j.Close())
			}
			j.files = append(j.files, &part{ReadSeekCloser: file, of: f})
		}
		_, err := j.Seek(0, io.SeekStart)
		return j, err
	}}
	for _, f := range files {
		out.Size += f.Size
	}
	return out
}

// joined are the files of a pack, all of them open.
type joined struct {
	io.Reader

	files []*part
}

// Seek goes back to the start, wherever it is asked to go.
func (j *joined) Seek(int64, int) (int64, error) {
	var all []io.Reader
	for _, p := range j.files {
		if _, err := p.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		p.left, all = p.of.Size, append(all, p)
	}
	j.Reader = io.MultiReader(all...)
	return 0, nil
}

// Close implements io.Closer.
func (j *joined) Close() (err error) {
	for _, p := range j.files {
		err = errors.Join(err, p.Close())
	}
	return err
}

// part is one of them. It has as many bytes as were listed: else the next one began elsewhere.
type part struct {
	io.ReadSeekCloser

	of   SnapshotFile
	left int64
}

// Read implements io.Reader.
func (p *part) Read(b []byte) (int, error) {
	n, err := p.ReadSeekCloser.Read(b)
	p.left -= int64(n)
	if p.left < 0 || errors.Is(err, io.EOF) && p.left > 0 {
		return 0, fmt.Errorf("the size of %s has changed", p.of.Name)
	}
	return n, err
}

func filesOf(volume *os.Root, dir string) ([]SnapshotFile, error) {
	var out []SnapshotFile
	err := fs.WalkDir(volume.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		relative := strings.TrimPrefix(name, dir+"/")
		if err != nil || entry.IsDir() || relative == snapshotManifest || relative == schemaFile {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		out = append(out, SnapshotFile{Name: relative, Size: info.Size(),
			Open: func() (io.ReadSeekCloser, error) { return openOnce(volume, name) }})
		return nil
	})
	slices.SortFunc(out, func(a, b SnapshotFile) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// onceRead is a file that leaves nothing in the page cache, which is the JVM's.
type onceRead struct {
	*os.File
	read bool
}

func openOnce(volume *os.Root, name string) (io.ReadSeekCloser, error) {
	file, err := volume.Open(name)
	if err != nil {
		return nil, err
	}
	return &onceRead{File: file}, nil
}

// Read implements io.Reader.
func (f *onceRead) Read(p []byte) (int, error) {
	f.read = true
	return f.File.Read(p)
}

// Close implements io.Closer.
func (f *onceRead) Close() error {
	if f.read {
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) //nolint:gosec // a descriptor is small; only advice
	}
	return f.File.Close()
}
