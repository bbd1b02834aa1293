package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/node"
)

// Disk are the volumes of a node by name: data, commitlog where it has one, additional ones.
type Disk struct {
	volumes []named
	now     func() time.Time
}

type named struct {
	name string
	Store
}

// Store is what lies on a volume.
type Store interface {
	// Use opens it for as long as a function works on the agent's own files.
	Use(work func(journal.FS) error) error
	// Report is what Cassandra left there. Its commit log counts unless that has a volume of its
	// own.
	Report(ownCommitlog bool) disk.Report
	// Segments counts those of the commit log on a volume for it alone.
	Segments() (int, error)
	// WipeRows removes the rows of all that the ring replicates, and the commit log, and leaves who
	// the node is.
	WipeRows() error
	// SSTables are the sizes of those of a keyspace by table, in bytes.
	SSTables(keyspace string) (map[string][]int64, error)
	// PlaceSSTable puts an SSTable of a table, by its directory, where Cassandra can be asked to
	// load it, and replaces an earlier one of the name that is not in use.
	PlaceSSTable(keyspace, table, name string, files map[string][]byte) error
	// Snapshots are those of all tables under a tag.
	Snapshots(tag string) ([]disk.Snapshot, error)
	// HasFile says that a file of a table is there as it is to be. PlaceFile writes one, whole or
	// not at all, while no JVM runs.
	HasFile(keyspace, table, name string, size int64, sum string) bool
	PlaceFile(keyspace, table, name string, size int64, sum string, content io.Reader) error
	// Hints counts the files of hints by the host id that they are for.
	Hints() (map[string]int, error)
	// Space is what the file system has room for, in bytes.
	Space() (free, capacity int64, err error)
	// Probe writes a few bytes, durably, if the volume is marked, and says how it fails. It may
	// hang.
	Probe() node.DiskProblem
}

// Volume is a mounted volume.
type Volume struct {
	Name      string
	Directory string
}

// Use implements Store.
func (v Volume) Use(work func(journal.FS) error) (err error) {
	volume, err := journal.OpenVolume(v.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, volume.Close()) }()
	return work(volume)
}

// Report implements Store.
func (v Volume) Report(ownCommitlog bool) disk.Report {
	layout := disk.DefaultLayout()
	if ownCommitlog {
		layout.CommitLog = ""
	}
	return disk.Inspect(os.DirFS(v.Directory), layout)
}

// Segments implements Store.
func (v Volume) Segments() (int, error) {
	return disk.CountCommitLog(os.DirFS(v.Directory), disk.DefaultLayout().CommitLog)
}

// WipeRows implements Store.
func (v Volume) WipeRows() error {
	root, err := os.OpenRoot(v.Directory)
	if err != nil {
		return fmt.Errorf("open volume %s: %w", v.Name, err)
	}
	return errors.Join(disk.WipeRows(root, disk.DefaultLayout()), root.Close())
}

// SSTables implements Store.
func (v Volume) SSTables(keyspace string) (map[string][]int64, error) {
	return disk.SSTables(os.DirFS(v.Directory), disk.DefaultLayout(), keyspace)
}

// PlaceSSTable implements Store.
func (v Volume) PlaceSSTable(keyspace, table, name string, files map[string][]byte) error {
	root, err := os.OpenRoot(v.Directory)
	if err != nil {
		return fmt.Errorf("open volume %s: %w", v.Name, err)
	}
	return errors.Join(disk.PlaceSSTable(root, disk.DefaultLayout(), keyspace, table, name, files), root.Close())
}

// Snapshots implements Store. Their files are read later: the volume stays open.
func (v Volume) Snapshots(tag string) ([]disk.Snapshot, error) {
	root, err := os.OpenRoot(v.Directory)
	if err != nil {
		return nil, fmt.Errorf("open volume %s: %w", v.Name, err)
	}
	return disk.Snapshots(root, disk.DefaultLayout(), tag)
}

// HasFile implements Store.
func (v Volume) HasFile(keyspace, table, name string, size int64, sum string) bool {
	root, err := os.OpenRoot(v.Directory)
	if err != nil {
		return false
	}
	defer root.Close() //nolint:errcheck // it was only read
	return disk.HasFile(root, disk.DefaultLayout().File(keyspace, table, name), size, sum)
}

// PlaceFile implements Store.
func (v Volume) PlaceFile(keyspace, table, name string, size int64, sum string, content io.Reader) error {
	root, err := os.OpenRoot(v.Directory)
	if err != nil {
		return fmt.Errorf("open volume %s: %w", v.Name, err)
	}
	return errors.Join(disk.PlaceFile(root, disk.DefaultLayout().File(keyspace, table, name), size, sum, content),
		root.Close())
}

// Hints implements Store.
func (v Volume) Hints() (map[string]int, error) { return disk.Hints(os.DirFS(v.Directory)) }

// Space implements Store: what a process without privileges may still write.
func (v Volume) Space() (free, capacity int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(v.Directory, &s); err != nil {
		return 0, 0, fmt.Errorf("look at the space of volume %s: %w", v.Name, err)
	}
	// What only root may use is no room for a JVM, as df counts.
	usable := s.Blocks - s.Bfree + s.Bavail
	return int64(s.Bavail) * s.Bsize, int64(usable) * s.Bsize, nil //nolint:gosec // no file system is that large
}

// NewDisk looks at mounted volumes; the first is data.
func NewDisk(volumes []Volume, now func() time.Time) *Disk {
	d := &Disk{now: now}
	for _, v := range volumes {
		device, _ := deviceAt(v.Directory)
		d.volumes = append(d.volumes, named{v.Name, mounted{v, device}})
	}
	return d
}

// NewDiskOf looks at volumes wherever they lie; the first is data.
func NewDiskOf(names []string, of func(name string) Store, now func() time.Time) *Disk {
	d := &Disk{now: now}
	for _, name := range names {
		d.volumes = append(d.volumes, named{name, of(name)})
	}
	return d
}

// Inspect looks at all volumes. What cannot be read is the answer's Problem.
func (d *Disk) Inspect(context.Context) node.Disk {
	var out node.Disk
	for i, v := range d.volumes {
		found := node.Volume{Name: v.name}
		err := v.Use(func(files journal.FS) (err error) {
			found.Marker, err = readMarker(files)
			return err
		})
		if err == nil && v.name == v1alpha1.VolumeCommitlog {
			var segments int
			segments, err = v.Segments()
			found.HasData = segments > 0
		}
		if err != nil {
			out.Problem = fmt.Sprintf("volume %s: %v", v.name, err)
			return out
		}
		if i == 0 {
			report := v.Report(d.has(v1alpha1.VolumeCommitlog))
			found.HasData = !report.Empty()
			out.Problem, out.HasData = report.Problem, !report.Empty()
			if l := report.Local; l != nil {
				out.Bootstrapped, out.HostID = node.BootstrapWord(l.Bootstrapped), l.HostID
				out.ClusterName, out.Generation = l.ClusterName, l.GossipGeneration
			}
		}
		out.Volumes = append(out.Volumes, found)
	}
	return out
}

// WipeRows wipes data and commit log, wherever they lie.
func (d *Disk) WipeRows() error {
	var errs []error
	for _, v := range d.volumes {
		if v.name == v1alpha1.VolumeData || v.name == v1alpha1.VolumeCommitlog {
			errs = append(errs, v.WipeRows())
		}
	}
	return errors.Join(errs...)
}

// SSTables are those of the data volume.
func (d *Disk) SSTables(keyspace string) (map[string][]int64, error) {
	return d.volumes[0].SSTables(keyspace)
}

// PlaceSSTable puts one onto the data volume.
func (d *Disk) PlaceSSTable(keyspace, table, name string, files map[string][]byte) error {
	return d.volumes[0].PlaceSSTable(keyspace, table, name, files)
}

// Snapshots are those of the data volume.
func (d *Disk) Snapshots(tag string) ([]disk.Snapshot, error) { return d.volumes[0].Snapshots(tag) }

// HasFile looks on the data volume.
func (d *Disk) HasFile(keyspace, table, name string, size int64, sum string) bool {
	return d.volumes[0].HasFile(keyspace, table, name, size, sum)
}

// PlaceFile writes onto the data volume.
func (d *Disk) PlaceFile(keyspace, table, name string, size int64, sum string, content io.Reader) error {
	return d.volumes[0].PlaceFile(keyspace, table, name, size, sum, content)
}

// Hints are those on the data volume.
func (d *Disk) Hints() (map[string]int, error) { return d.volumes[0].Hints() }

// Space is that of the data volume.
func (d *Disk) Space() (free, capacity int64, err error) { return d.volumes[0].Space() }

func (d *Disk) has(name string) bool {
	return slices.ContainsFunc(d.volumes, func(v named) bool { return v.name == name })
}

func readMarker(files journal.FS) (*node.Marker, error) {
	m, status, err := journal.ReadMarker(files)
	switch status {
	case journal.Absent:
		return nil, nil
	case journal.Valid:
		return &node.Marker{ClusterUID: types.UID(m.ClusterUID), Node: m.Node, Volume: m.Volume}, nil
	default:
		return nil, err
	}
}

// Mark writes the markers, the data volume's last: as long as that one is missing or the old one,
// the disk counts as it did before.
func (d *Disk) Mark(names []string, cluster types.UID, nodeName string, from types.UID) error {
	ordered := slices.Clone(names)
	slices.SortStableFunc(ordered, func(a, b string) int {
		return boolOrder(a == v1alpha1.VolumeData) - boolOrder(b == v1alpha1.VolumeData)
	})
	for _, name := range ordered {
		i := slices.IndexFunc(d.volumes, func(v named) bool { return v.name == name })
		if i < 0 {
			return fmt.Errorf("mark volume %s: there is none of that name", name)
		}
		wanted := journal.Marker{ClusterUID: string(cluster), Node: nodeName, Volume: name, CreatedAt: d.now().UTC()}
		if err := d.volumes[i].Use(func(files journal.FS) error { return mark(files, wanted, from) }); err != nil {
			return err
		}
	}
	return nil
}

func mark(files journal.FS, wanted journal.Marker, from types.UID) error {
	present, status, err := journal.ReadMarker(files)
	if err != nil {
		return err
	}
	if status == journal.Valid && from != "" && present.ClusterUID == string(from) && present.Node == wanted.Node &&
		present.Volume == wanted.Volume {
		return journal.ReplaceMarker(files, present, wanted)
	}
	return journal.CreateMarker(files, wanted)
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
