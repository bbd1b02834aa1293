package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Layout names the directories of Cassandra on a volume, relative to its root.
type Layout struct {
	Data      []string // data_file_directories; system tables are in the first
	CommitLog string   // commitlog_directory; "" if it is on a volume of its own
}

// DefaultLayout is that of the official image for a volume mounted at /var/lib/cassandra.
func DefaultLayout() Layout { return Layout{Data: []string{"data"}, CommitLog: "commitlog"} }

// File of a table that is in use, or to be.
func (l Layout) File(keyspace, table, name string) string {
	return path.Join(l.Data[0], keyspace, table, name)
}

// Report is what a data volume says of itself. If Problem is set the rest is what could be read up
// to there, and no conclusion may be drawn from what is missing in it.
type Report struct {
	// Local is the content of system.local; nil if the table has no SSTable, which is so until
	// Cassandra's first start.
	Local *Local
	// Keyspaces that have a directory, by name.
	Keyspaces []Keyspace
	// Segments of the commit log; 0 if it is on another volume. They are allocated in full size, so
	// that their number says little about unflushed writes.
	Segments int
	// Strangers are entries at the root of the volume that neither Cassandra, Helenus nor a file
	// system makes, at most 16.
	Strangers []string
	// SSTables of system.local that were read, and those left out as parts of an unfinished
	// transaction.
	SSTables, Unfinished []string
	// Problem says in words what could not be read or contradicts itself. A volume with a problem
	// must never start.
	Problem string
}

// Keyspace is one directory of a data directory.
type Keyspace struct {
	Name    string
	HasData bool // has at least one SSTable
}

// Empty says that nothing of Cassandra is there: no SSTable, no commit log, nothing strange. Empty
// directories do not count. It says nothing about a volume with a Problem.
func (r Report) Empty() bool {
	return r.Problem == "" && r.Local == nil && r.Segments == 0 && len(r.Strangers) == 0 &&
		!slices.ContainsFunc(r.Keyspaces, func(k Keyspace) bool { return k.HasData })
}

const maxStrangers = 16

// made at the root of a volume by Cassandra, by Helenus, and by file systems and storage drivers.
var familiar = []string{"data", "commitlog", "hints", "saved_caches", "cdc_raw", "metadata", ".helenus", "lost+found",
	".snapshot"}

// Inspect reads a data volume. It never returns an error: what it cannot read is the report's
// Problem.
func Inspect(volume fs.FS, layout Layout) Report {
	var r Report
	if err := r.inspect(volume, layout); err != nil {
		r.Problem = err.Error()
	}
	return r
}

func (r *Report) inspect(volume fs.FS, layout Layout) error {
	if len(layout.Data) == 0 {
		return errors.New("the layout names no data directory")
	}
	entries, err := fs.ReadDir(volume, ".")
	if err != nil {
		return fmt.Errorf("list the volume: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains(familiar, entry.Name()) && !layout.names(entry.Name()) && len(r.Strangers) < maxStrangers {
			r.Strangers = append(r.Strangers, entry.Name())
		}
	}
	if layout.CommitLog != "" {
		if r.Segments, err = CountCommitLog(volume, layout.CommitLog); err != nil {
			return err
		}
	}
	for _, dir := range layout.Data {
		if err := r.keyspaces(volume, dir); err != nil {
			return err
		}
	}
	return r.local(volume, path.Join(layout.Data[0], "system"))
}

// names says whether an entry of the root leads to a directory of the layout.
func (l Layout) names(entry string) bool {
	for _, dir := range append([]string{l.CommitLog}, l.Data...) {
		if first, _, _ := strings.Cut(path.Clean(dir), "/"); first == entry {
			return true
		}
	}
	return false
}

// CountCommitLog counts the segments in a directory. One that does not exist has none.
func CountCommitLog(volume fs.FS, dir string) (segments int, err error) {
	entries, err := readDir(volume, dir)
	if err != nil {
		return 0, fmt.Errorf("list commit log: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "CommitLog-") && strings.HasSuffix(entry.Name(), ".log") {
			segments++
		}
	}
	return segments, nil
}

// keyspaces lists the keyspaces of one data directory, merging with those of others.
func (r *Report) keyspaces(volume fs.FS, dir string) error {
	entries, err := readDir(volume, dir)
	if err != nil {
		return fmt.Errorf("list data directory: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		has, err := hasSSTable(volume, path.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		at := slices.IndexFunc(r.Keyspaces, func(k Keyspace) bool { return k.Name == entry.Name() })
		if at < 0 {
			at = len(r.Keyspaces)
			r.Keyspaces = append(r.Keyspaces, Keyspace{Name: entry.Name()})
		}
		r.Keyspaces[at].HasData = r.Keyspaces[at].HasData || has
	}
	return nil
}

// hasSSTable looks for one data file in the tables of a keyspace and stops at the first.
func hasSSTable(volume fs.FS, keyspace string) (bool, error) {
	tables, err := readDir(volume, keyspace)
	if err != nil {
		return false, fmt.Errorf("list keyspace: %w", err)
	}
	for _, table := range tables {
		if !table.IsDir() {
			continue
		}
		files, err := readDir(volume, path.Join(keyspace, table.Name()))
		if err != nil {
			return false, fmt.Errorf("list table: %w", err)
		}
		if slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasSuffix(f.Name(), dataSuffix) }) {
			return true, nil
		}
	}
	return false, nil
}

// local reads system.local.
func (r *Report) local(volume fs.FS, system string) error {
	entries, err := readDir(volume, system)
	if err != nil {
		return fmt.Errorf("list keyspace system: %w", err)
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), "local-") {
			dirs = append(dirs, entry.Name())
		}
	}
	switch len(dirs) {
	case 0:
		return nil
	case 1:
	default:
		return fmt.Errorf("system.local has %d directories: %s", len(dirs), strings.Join(dirs, ", "))
	}
	dir := path.Join(system, dirs[0])
	tables, unfinished, err := listSSTables(volume, dir)
	r.Unfinished = unfinished
	if err != nil {
		return err
	}
	var rows partition
	for _, name := range tables {
		if err := readSSTable(volume, dir, name, &rows); err != nil {
			return fmt.Errorf("read SSTable %s: %w", path.Join(dir, name), err)
		}
		r.SSTables = append(r.SSTables, name)
	}
	if len(tables) == 0 {
		return nil
	}
	r.Local, err = decodeLocal(rows.live())
	return err
}

// readDir lists a directory, empty if it does not exist.
func readDir(volume fs.FS, dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(volume, path.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}
