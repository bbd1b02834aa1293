package disk

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// SSTables are the sizes of the data files of a keyspace by table, without snapshots and indexes.
func SSTables(volume fs.FS, layout Layout, keyspace string) (map[string][]int64, error) {
	out := map[string][]int64{}
	for _, dir := range layout.Data {
		names, err := fs.Glob(volume, path.Join(dir, keyspace, "*", "*-Data.db"))
		if err != nil {
			return nil, fmt.Errorf("list the SSTables of keyspace %s: %w", keyspace, err)
		}
		for _, name := range names {
			if info, err := fs.Stat(volume, name); err == nil { // a compaction may have removed it
				table, _, _ := strings.Cut(path.Base(path.Dir(name)), "-")
				out[table] = append(out[table], info.Size())
			}
		}
	}
	return out, nil
}
