package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/node"
)

// Disk are the volumes of a node by name and mount path: data, commitlog where it has one, additional ones.
type Disk struct {
	volumes []Volume
	now     func() time.Time
}

// Volume is a mounted volume.
type Volume struct {
	Name      string
	Directory string
}

// NewDisk looks at volumes; the first is data.
func NewDisk(volumes []Volume, now func() time.Time) *Disk { return &Disk{volumes: volumes, now: now} }

// Inspect looks at all volumes. What cannot be read is the answer's Problem.
func (d *Disk) Inspect(context.Context) node.Disk {
	var out node.Disk
	for i, v := range d.volumes {
		marker, err := readMarker(v)
		if err != nil {
			out.Problem = fmt.Sprintf("volume %s: %v", v.Name, err)
			return out
		}
		out.Volumes = append(out.Volumes, node.Volume{Name: v.Name, Marker: marker})
		if v.Name == v1alpha1.VolumeCommitlog {
			log, err := disk.CountCommitLog(os.DirFS(v.Directory), disk.DefaultLayout().CommitLog)
			if err != nil {
				out.Problem = fmt.Sprintf("volume %s: %v", v.Name, err)
				return out
			}
			out.Volumes[i].HasData = log.Segments > 0
		}
		if i > 0 {
			continue
		}
		layout := disk.DefaultLayout()
		if d.hasCommitlog() {
			layout.CommitLog = ""
		}
		report := disk.Inspect(os.DirFS(v.Directory), layout)
		out.Volumes[i].HasData = !report.Empty()
		out.Problem, out.HasData = report.Problem, !report.Empty()
		if l := report.Local; l != nil {
			out.Bootstrapped, out.HostID, out.ClusterName = node.BootstrapWord(l.Bootstrapped), l.HostID, l.ClusterName
		}
	}
	return out
}

func (d *Disk) hasCommitlog() bool {
	return slices.ContainsFunc(d.volumes, func(v Volume) bool { return v.Name == v1alpha1.VolumeCommitlog })
}

func readMarker(v Volume) (*node.Marker, error) {
	volume, err := journal.OpenVolume(v.Directory)
	if err != nil {
		return nil, err
	}
	defer volume.Close() //nolint:errcheck // it was only read
	m, status, err := journal.ReadMarker(volume)
	switch status {
	case journal.Absent:
		return nil, nil
	case journal.Valid:
		return &node.Marker{ClusterUID: types.UID(m.ClusterUID), Node: m.Node, Volume: m.Volume}, nil
	default:
		return nil, err
	}
}

// Mark writes the markers, the data volume's last: as long as that one is missing or the old one, the disk counts as it did before.
func (d *Disk) Mark(names []string, cluster types.UID, nodeName string, from types.UID) error {
	ordered := slices.Clone(names)
	slices.SortStableFunc(ordered, func(a, b string) int {
		return boolOrder(a == v1alpha1.VolumeData) - boolOrder(b == v1alpha1.VolumeData)
	})
	for _, name := range ordered {
		i := slices.IndexFunc(d.volumes, func(v Volume) bool { return v.Name == name })
		if i < 0 {
			return fmt.Errorf("mark volume %s: there is none of that name", name)
		}
		if err := d.mark(d.volumes[i], cluster, nodeName, from); err != nil {
			return err
		}
	}
	return nil
}

func (d *Disk) mark(v Volume, cluster types.UID, nodeName string, from types.UID) (err error) {
	volume, err := journal.OpenVolume(v.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, volume.Close()) }()
	wanted := journal.Marker{ClusterUID: string(cluster), Node: nodeName, Volume: v.Name, CreatedAt: d.now().UTC()}
	present, status, err := journal.ReadMarker(volume)
	if err != nil {
		return err
	}
	if status == journal.Valid && from != "" && present.ClusterUID == string(from) && present.Node == nodeName && present.Volume == v.Name {
		return journal.ReplaceMarker(volume, present, wanted)
	}
	return journal.CreateMarker(volume, wanted)
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Journal is the node's memory on its data volume.
type Journal struct {
	volume journal.FS
	store  *journal.Store[node.Memory]
}

// NewJournal keeps it on a volume.
func NewJournal(volume journal.FS) *Journal { return &Journal{volume: volume} }

// Load reads it.
func (j *Journal) Load() (node.Memory, error) {
	store, memory, status, err := journal.OpenStore[node.Memory](j.volume)
	if status != journal.Valid && status != journal.Absent {
		return node.Memory{}, err
	}
	j.store = store
	return memory, nil
}

// Put writes it.
func (j *Journal) Put(memory node.Memory) error {
	if j.store == nil {
		return errors.New("the journal could not be read and is not overwritten")
	}
	return j.store.Put(memory)
}
