package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// stagingDir is where what is downloaded of a backup lies until the JVM loads it.
const stagingDir = "restore"

// complete is a file that is there when all of it is.
const complete = "complete"

// Staging is what was downloaded under a tag, for a JVM that runs to load: each table of each
// member of the backup in <member>/<keyspace>/<table>. The JVM knows the table by these names.
type Staging struct {
	volume *os.Root
	dir    string
}

// OpenStaging opens that on the volume at a directory.
func OpenStaging(directory, tag string) (*Staging, error) {
	volume, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("open staging %s: %w", tag, err)
	}
	return &Staging{volume, path.Join(stagingDir, tag)}, nil
}

// Close ends its use.
func (s *Staging) Close() error { return s.volume.Close() }

// HasFile says that a file is there as it is to be.
func (s *Staging) HasFile(name string, size int64, sum string) bool {
	return HasFile(s.volume, path.Join(s.dir, name), size, sum)
}

// PlaceFile writes one, durably and whole, or not at all.
func (s *Staging) PlaceFile(name string, size int64, sum string, content io.Reader) error {
	return PlaceFile(s.volume, path.Join(s.dir, name), size, sum, content)
}

// Complete says that all files are there: nothing is added.
func (s *Staging) Complete() error {
	if err := s.volume.MkdirAll(s.dir, 0o750); err != nil {
		return fmt.Errorf("make directory %s: %w", s.dir, err)
	}
	return errors.Join(writeFile(s.volume, path.Join(s.dir, complete), nil), s.sync())
}

// Tables are the directories that were not removed yet, relative to the volume. It is an error if
// not all was downloaded, or it is gone.
func (s *Staging) Tables() ([]string, error) {
	if _, err := s.volume.Stat(path.Join(s.dir, complete)); err != nil {
		return nil, fmt.Errorf("what was downloaded is not there, or not all of it: %w", err)
	}
	var out []string
	for _, member := range s.list(s.dir) {
		for _, keyspace := range s.list(member) {
			out = append(out, s.list(keyspace)...)
		}
	}
	return out, nil
}

// list the directories in one, by their paths.
func (s *Staging) list(dir string) []string {
	entries, _ := readDir(s.volume.FS(), dir) // one that is not there has none
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, path.Join(dir, e.Name()))
		}
	}
	return out
}

// Loaded removes a table of those of Tables.
func (s *Staging) Loaded(table string) error {
	return errors.Join(s.volume.RemoveAll(table), s.sync())
}

// Clear removes all of it, and ClearOthers what was downloaded under other tags.
func (s *Staging) Clear() error { return s.volume.RemoveAll(s.dir) }

// ClearOthers removes what was downloaded under other tags.
func (s *Staging) ClearOthers() error {
	var err error
	for _, dir := range s.list(stagingDir) {
		if dir != s.dir {
			err = errors.Join(err, s.volume.RemoveAll(dir))
		}
	}
	return err
}

func (s *Staging) sync() error {
	dir, err := s.volume.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
