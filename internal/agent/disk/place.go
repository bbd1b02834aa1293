package disk

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// unplaced is Data.db until all other files are there. Cassandra takes no such name for a part of
// an SSTable, and removes it at its start (ColumnFamilyStore#scrubDataDirectories, 4.1 and 5.0).
const unplaced = "helenus.tmp"

// PlaceSSTable puts an SSTable into the directory of a table, for a JVM that is asked to load it.
// It is durable when it returns. It is one only when its Data.db is there, which comes last and
// goes first: at any other moment Cassandra takes its files for orphans, and removes them when it
// starts. What an earlier placement has left under the name is removed, so that it must not be in
// use.
func PlaceSSTable(volume *os.Root, layout Layout, keyspace, table, name string, files map[string][]byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("place SSTable %s of %s.%s: %w", name, keyspace, table, err)
		}
	}()
	dir, err := volume.OpenRoot(path.Join(layout.Data[0], keyspace, table))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	const data = "Data.db"
	if err := removeSSTable(dir, name, name+"-"+data); err != nil {
		return err
	}
	for _, component := range slices.Sorted(maps.Keys(files)) {
		to := name + "-" + component
		if component == data {
			to = unplaced
		}
		if err := writeFile(dir, to, files[component]); err != nil {
			return err
		}
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := dir.Rename(unplaced, name+"-"+data); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeSSTable removes what there is of an SSTable, its data first.
func removeSSTable(dir *os.Root, name, data string) error {
	if err := dir.Remove(data); err == nil {
		if err := syncDir(dir); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	entries, err := readDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+"-") {
			if err := dir.Remove(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeFile(dir *os.Root, name string, content []byte) error {
	file, err := dir.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(dir *os.Root) error {
	opened, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
