package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"helenus.io/helenus/internal/simulate/cassandra"
)

// staging is disk.Staging on a simulated volume.
type staging struct {
	on  *cassandra.Disk
	dir string
}

// HasFile implements operation.Staging.
func (s staging) HasFile(name string, size int64, sum string) bool {
	has := sha256.Sum256(s.on.Staged(path.Join(s.dir, name)))
	return size > 0 && hex.EncodeToString(has[:]) == sum
}

// PlaceFile implements operation.Staging.
func (s staging) PlaceFile(name string, size int64, sum string, content io.Reader) error {
	all, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if has := sha256.Sum256(all); int64(len(all)) != size || hex.EncodeToString(has[:]) != sum {
		return fmt.Errorf("write file %s: its content is not what was backed up", name)
	}
	s.on.Stage(path.Join(s.dir, name), all)
	return nil
}

// Complete implements operation.Staging.
func (s staging) Complete() error {
	s.on.Stage(path.Join(s.dir, "complete"), []byte{})
	return nil
}

// Tables implements operation.Staging.
func (s staging) Tables() ([]string, error) {
	if s.on.Staged(path.Join(s.dir, "complete")) == nil {
		return nil, errors.New("what was downloaded is not there, or not all of it")
	}
	var out []string
	for _, name := range s.on.StagedIn(s.dir) {
		if dir := path.Dir(name); dir != s.dir {
			out = append(out, dir)
		}
	}
	return slices.Compact(out), nil
}

// Loaded implements operation.Staging.
func (s staging) Loaded(table string) error {
	s.on.Unstage(table)
	return nil
}

// Clear implements operation.Staging.
func (s staging) Clear() error { return s.Loaded(s.dir) }

// ClearOthers implements operation.Staging. There is one restore.
func (s staging) ClearOthers() error { return nil }

// Close implements operation.Staging.
func (s staging) Close() error { return nil }
