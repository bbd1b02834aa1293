package pod

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/test/memdisk"
)

// Content is what lies on a volume.
type Content struct {
	// Files are the marker and the journal.
	Files *memdisk.Disk
	// Data is Cassandra's own; empty on volumes other than data.
	Data *cassandra.Disk
	// Failing says that the file system is mounted read-only, after errors.
	Failing bool
	// holder of the lock on it; nil if none does.
	holder *initContainer
}

// ContentOf is what lies on a volume; a new one is empty.
func ContentOf(v *kube.Volume) *Content {
	if c, ok := v.Content.(*Content); ok {
		return c
	}
	c := &Content{Files: memdisk.New(), Data: cassandra.NewDisk()}
	c.Data.Resize(v.Size)
	v.Content = c
	return c
}

// Destroy takes away for good what is on a volume.
func (r *Runtime) Destroy(v *kube.Volume) {
	if c, ok := v.Content.(*Content); ok {
		c.Data.Wipe()
	}
	v.Content = nil
}

// volume is a volume of a sandbox as the agent looks at it: its own files by the real packages,
// Cassandra's by their report.
type volume struct {
	s    *Sandbox
	name string
}

// Use implements agentpod.Store.
func (v volume) Use(work func(journal.FS) error) error { return work(v.s.content(v.name).Files) }

// Report implements agentpod.Store.
func (v volume) Report(bool) disk.Report { return v.s.content(v.name).Data.Report() }

// Segments implements agentpod.Store. The model of Cassandra keeps it with the data.
func (v volume) Segments() (int, error) { return 0, nil }

// WipeRows implements agentpod.Store.
func (v volume) WipeRows() error {
	v.s.content(v.name).Data.WipeRows()
	return nil
}

// SSTables implements agentpod.Store: four that are alike, of one table.
func (v volume) SSTables(keyspace string) (map[string][]int64, error) {
	return map[string][]int64{"rows": slices.Repeat([]int64{v.s.content(v.name).Data.BytesOf(keyspace) / 4}, 4)}, nil
}

// PlaceSSTable implements agentpod.Store. There is no other SSTable here than that of the
// superuser.
func (v volume) PlaceSSTable(_, _, _ string, files map[string][]byte) error {
	v.s.content(v.name).Data.Place(files["Data.db"])
	return nil
}

// Snapshots implements agentpod.Store: a table of each keyspace, with one file of its rows.
func (v volume) Snapshots(tag string) ([]disk.Snapshot, error) {
	kept, err := v.s.content(v.name).Data.Kept(tag)
	if err != nil {
		return nil, err
	}
	var out []disk.Snapshot
	for _, keyspace := range slices.Sorted(maps.Keys(kept)) {
		rows, err := json.Marshal(kept[keyspace].Rows)
		if err != nil {
			return nil, err
		}
		out = append(out, disk.Snapshot{Keyspace: keyspace, Table: "rows-1", TakenAt: kept[keyspace].TakenAt,
			Files: []disk.SnapshotFile{{Name: "nb-1-big-Data.db", Size: int64(len(rows)),
				Open: func() (io.ReadSeekCloser, error) { return inMemory{bytes.NewReader(rows)}, nil }}}})
	}
	return out, nil
}

// inMemory is a file that needs not be closed.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// Hints implements agentpod.Store.
func (v volume) Hints() (map[string]int, error) { return v.s.content(v.name).Data.Hints(), nil }

// Probe implements agentpod.Store.
func (v volume) Probe() node.DiskProblem {
	if !v.s.content(v.name).Failing {
		return node.DiskProblem{}
	}
	return node.DiskProblem{Reason: v1alpha1.ReasonDiskReadOnly,
		Message: "the " + v.name + " volume is mounted read-only"}
}

// hostSize is what there is room for where a pod has no volume of its own.
const hostSize = 2 << 30

// Space implements agentpod.Store.
func (v volume) Space() (free, capacity int64, err error) {
	data := v.s.content(v.name).Data
	if capacity = data.Size(); capacity == 0 {
		capacity = hostSize
	}
	if !data.Full() {
		free = capacity - data.Bytes()
	}
	return free, capacity, nil
}
