package operation

import (
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/backup/format"
)

// addFile to the SSTable that it is a component of, such as nb-12-big-Data.db. Files are sorted.
func addFile(table *format.Table, f disk.SnapshotFile) error {
	dir, name := "", f.Name
	if i := strings.LastIndex(name, "/"); i >= 0 {
		dir, name = name[:i+1], name[i+1:]
	}
	parts := strings.SplitN(name, "-", 4)
	if len(parts) < 4 {
		return fmt.Errorf("file %s of %s.%s is no component of an SSTable", f.Name, table.Keyspace, table.Name)
	}
	name = dir + strings.Join(parts[:3], "-")
	if n := len(table.SSTables); n == 0 || table.SSTables[n-1].Name != name {
		table.SSTables = append(table.SSTables, format.SSTable{Name: name})
	}
	files := &table.SSTables[len(table.SSTables)-1].Files
	file := format.File{Name: parts[3], Size: f.Size}
	if !packed(file) {
		*files = append(*files, file)
		return nil
	}
	i := slices.IndexFunc(*files, func(f format.File) bool { return f.Name == format.Pack })
	if i < 0 {
		i, *files = len(*files), append(*files, format.File{Name: format.Pack})
	}
	pack := &(*files)[i]
	pack.Size, pack.Files = pack.Size+file.Size, append(pack.Files, file)
	return nil
}

// packed says that a file goes into the pack of its SSTable, so that the six or so small ones cost
// one request. What is large as a rule, or restored by itself, stays a blob of its own, and so does
// any whose hash may be kept: some of those in a pack change in place, and it is sent again then.
func packed(f format.File) bool {
	switch f.Name {
	case "Data.db", "Index.db", "Partitions.db", "Rows.db":
		return false
	}
	return f.Size < worthKeeping && !strings.HasPrefix(f.Name, "SAI")
}

// sources are the blobs of a manifest, in its order.
func (u *uploading) sources(m *format.Manifest, found []disk.Snapshot) []source {
	at := map[string]disk.SnapshotFile{}
	for _, s := range found {
		for _, f := range s.Files {
			at[s.Keyspace+"/"+s.Table+"/"+f.Name] = f
		}
	}
	var out []source
	for i := range m.Tables {
		t := &m.Tables[i]
		for _, s := range t.SSTables {
			for k := range s.Files {
				f := &s.Files[k]
				u.all += f.Size
				var of []disk.SnapshotFile
				for _, c := range f.Unpacked() {
					of = append(of, at[t.Keyspace+"/"+t.Directory()+"/"+s.Name+"-"+c.Name])
				}
				one := of[0]
				if len(f.Files) > 0 {
					one = disk.Join(s.Name+"-"+f.Name, of)
				}
				out = append(out, source{one, t, f, new(check)})
			}
		}
	}
	return out
}
