package pod

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/agent/journal/memdisk"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/kube"
)

// Content is what lies on a volume.
type Content struct {
	// Files are the marker and the journal.
	Files *memdisk.Disk
	// Data is Cassandra's own; empty on volumes other than data.
	Data *cassandra.Disk
}

// ContentOf is what lies on a volume; a new one is empty.
func ContentOf(v *kube.Volume) *Content {
	if c, ok := v.Content.(*Content); ok {
		return c
	}
	c := &Content{Files: memdisk.New(), Data: cassandra.NewDisk()}
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

// disks is execute.Disk over volumes in memory: the markers by the real package, Cassandra's tables by their report.
type disks struct {
	s     *Sandbox
	names []string
}

// Inspect looks at all volumes.
func (d disks) Inspect(context.Context) node.Disk {
	var out node.Disk
	for i, name := range d.names {
		content := d.s.content(name)
		m, status, err := journal.ReadMarker(content.Files)
		found := node.Volume{Name: name}
		switch status {
		case journal.Absent:
		case journal.Valid:
			found.Marker = &node.Marker{ClusterUID: types.UID(m.ClusterUID), Node: m.Node, Volume: m.Volume}
		default:
			out.Problem = fmt.Sprintf("volume %s: %v", name, err)
			return out
		}
		out.Volumes = append(out.Volumes, found)
		if i > 0 {
			continue
		}
		report := content.Data.Report()
		out.Volumes[i].HasData = !report.Empty()
		out.Problem, out.HasData = report.Problem, !report.Empty()
		if l := report.Local; l != nil {
			out.Bootstrapped, out.HostID, out.ClusterName = node.BootstrapWord(l.Bootstrapped), l.HostID, l.ClusterName
		}
	}
	return out
}

// Mark writes the markers, the data volume's last.
func (d disks) Mark(names []string, cluster types.UID, nodeName string, from types.UID) error {
	ordered := slices.Clone(names)
	slices.SortStableFunc(ordered, func(a, b string) int {
		rank := map[bool]int{true: 1}
		return rank[a == v1alpha1.VolumeData] - rank[b == v1alpha1.VolumeData]
	})
	for _, name := range ordered {
		if !slices.Contains(d.names, name) {
			return fmt.Errorf("mark volume %s: there is none of that name", name)
		}
		files := d.s.content(name).Files
		wanted := journal.Marker{ClusterUID: string(cluster), Node: nodeName, Volume: name, CreatedAt: d.s.rt.Line.Now().UTC()}
		present, status, err := journal.ReadMarker(files)
		if err != nil {
			return err
		}
		if status == journal.Valid && from != "" && present.ClusterUID == string(from) && present.Node == nodeName && present.Volume == name {
			err = journal.ReplaceMarker(files, present, wanted)
		} else {
			err = journal.CreateMarker(files, wanted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
