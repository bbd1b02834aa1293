package node

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// Disk is what lies on the volumes, looked at while no JVM ran.
type Disk struct {
	// Known is false before the first look, which was at SeenAt, or again then.
	Known  bool
	SeenAt time.Time
	// Volumes by name: data, commitlog where the node has one, additional ones.
	Volumes []Volume
	// HasData says that Cassandra has written anything on the data volume.
	HasData bool
	// Bootstrapped is the word in the system.local table; empty if there is none.
	Bootstrapped BootstrapWord
	// HostID and ClusterName from the system tables; empty where they cannot be read there.
	HostID      string
	ClusterName string
	// Generation of the last gossip that began on this disk; 0 if none did. It rises before each
	// first word.
	Generation int32
	// Problem says why the disk cannot be read or trusted; empty if it can.
	Problem string
}

// Volume is one of them.
type Volume struct {
	Name string
	// Marker is nil where there is none.
	Marker *Marker
	// HasData says that Cassandra has written on it, for data and commitlog; of additional volumes
	// it is not known.
	HasData bool
}

// Marker says whose a volume is.
type Marker struct {
	ClusterUID types.UID
	Node       string
	Volume     string
}

// BootstrapWord is the state that Cassandra keeps of its membership
// (SystemKeyspace.BootstrapState).
type BootstrapWord string

// The words. A member that gave its data away and was killed before the end says NEEDS_BOOTSTRAP
// (measured).
const (
	WordNone           BootstrapWord = ""
	WordNeedsBootstrap BootstrapWord = "NEEDS_BOOTSTRAP"
	WordInProgress     BootstrapWord = "IN_PROGRESS"
	WordCompleted      BootstrapWord = "COMPLETED"
	WordDecommissioned BootstrapWord = "DECOMMISSIONED"
)

// volume by its name.
func (d Disk) volume(name string) *Volume {
	for i := range d.Volumes {
		if d.Volumes[i].Name == name {
			return &d.Volumes[i]
		}
	}
	return nil
}

// dataMarker is the marker of the data volume; nil if it has none.
func (d Disk) dataMarker() *Marker {
	if v := d.volume(v1alpha1.VolumeData); v != nil {
		return v.Marker
	}
	return nil
}

// Finding is what a disk is to a node.
type Finding struct {
	State v1alpha1.DiskState
	// Owner is whose data it holds; nil if there is none or it is not known.
	Owner *v1alpha1.DiskOwner
	// Message explains every state other than Empty and Member.
	Message string
	// Adoptable says that it is a member's disk of the cluster whose disks this one takes over, and
	// its markers must be rewritten before a start.
	Adoptable bool
	// Unmarked are volumes of this node without a marker, beside a data volume that has its own, or
	// on an empty disk.
	Unmarked []string
}

// examine says what the disk is to this node. It trusts markers first: Cassandra's own files cannot
// tell one cluster from another of the same name.
func examine(f *Facts) Finding {
	d, memory := f.Disk, f.Memory
	finding := Finding{Owner: ownerOf(d)}
	state := func(s v1alpha1.DiskState, format string, args ...any) Finding {
		finding.State, finding.Message = s, fmt.Sprintf(format, args...)
		return finding
	}
	if d.Problem != "" {
		return state(v1alpha1.DiskUnreadable, "the data volume cannot be read: %s", d.Problem)
	}
	if f.MemoryProblem != "" {
		return state(v1alpha1.DiskUnreadable, "the journal on the data volume cannot be read: %s", f.MemoryProblem)
	}
	for _, v := range d.Volumes {
		if v.Marker != nil && v.Marker.Volume != v.Name {
			return state(v1alpha1.DiskForeign, "the volume mounted as %s is marked as %s of node %s", v.Name,
				v.Marker.Volume, v.Marker.Node)
		}
	}
	for _, v := range d.Volumes {
		if v.Marker == nil && v.HasData && v.Name != v1alpha1.VolumeData {
			return state(v1alpha1.DiskForeign, "the %s volume holds data of Cassandra, but no marker says whose",
				v.Name)
		}
	}
	marker := d.dataMarker()
	if marker == nil {
		return examineUnmarked(f, finding)
	}
	for _, v := range d.Volumes {
		switch {
		case v.Marker == nil:
			finding.Unmarked = append(finding.Unmarked, v.Name)
		case v.Marker.ClusterUID != marker.ClusterUID || v.Marker.Node != marker.Node:
			return state(v1alpha1.DiskForeign,
				"the %s volume belongs to node %s of cluster %s, the data volume to node %s of cluster %s",
				v.Name, v.Marker.Node, v.Marker.ClusterUID, marker.Node, marker.ClusterUID)
		}
	}
	adopted := f.Record != nil && f.Record.Spec.Cluster.AdoptedUID != "" &&
		marker.ClusterUID == f.Record.Spec.Cluster.AdoptedUID
	if marker.ClusterUID != f.Self.ClusterUID && !adopted {
		return state(v1alpha1.DiskForeign, "the data volume belongs to node %s of the cluster with uid %s", marker.Node,
			marker.ClusterUID)
	}
	if marker.Node != f.Self.Node {
		return state(v1alpha1.DiskForeign, "the data volume belongs to node %s", marker.Node)
	}
	if m := memory.Member; m != nil && d.HostID != "" && m.HostID != d.HostID {
		return state(v1alpha1.DiskUnreadable,
			"the journal says that this disk is of host id %s, the system tables say %s", m.HostID, d.HostID)
	}
	member := memory.Member != nil ||
		f.Record != nil && f.Record.Spec.Member != nil && !f.replaces(f.Record.Spec.Member.HostID)
	switch {
	case d.Bootstrapped == WordDecommissioned || memory.LeftAt != nil:
		return state(v1alpha1.DiskLeft, "this node was decommissioned; its disk never starts again")
	case d.Bootstrapped == WordNeedsBootstrap && member:
		return state(v1alpha1.DiskLeft,
			"this node had given its data away and was ended before it had left the ring: started again, it would "+
				"join with other tokens")
	case !d.HasData && member:
		return state(v1alpha1.DiskUnreadable, "the markers are those of this member, but Cassandra's files are gone")
	case !d.HasData:
		return state(v1alpha1.DiskEmpty, "")
	case d.Bootstrapped == WordCompleted || memory.Member != nil:
		finding.Adoptable = adopted
		return state(v1alpha1.DiskMember, "")
	default:
		return state(v1alpha1.DiskJoining, "this node began to join on this disk and was never NORMAL")
	}
}

// examineUnmarked is examine for a data volume without a marker: it is empty, or of unknown origin.
func examineUnmarked(f *Facts, finding Finding) Finding {
	for _, v := range f.Disk.Volumes {
		if v.Marker != nil && (v.Marker.ClusterUID != f.Self.ClusterUID || v.Marker.Node != f.Self.Node) {
			finding.State = v1alpha1.DiskForeign
			finding.Message = fmt.Sprintf("the %s volume belongs to node %s of the cluster with uid %s", v.Name,
				v.Marker.Node, v.Marker.ClusterUID)
			return finding
		}
		if v.Marker != nil && v.HasData {
			finding.State = v1alpha1.DiskForeign
			finding.Message = fmt.Sprintf("the %s volume holds data of this node, but the data volume has no marker: "+
				"it is not the one that the node had", v.Name)
			return finding
		}
		if v.Marker == nil {
			finding.Unmarked = append(finding.Unmarked, v.Name)
		}
	}
	if f.Disk.HasData {
		finding.State = v1alpha1.DiskForeign
		finding.Message = "the data volume holds data of Cassandra, but no marker says whose"
		return finding
	}
	finding.State = v1alpha1.DiskEmpty
	return finding
}

func ownerOf(d Disk) *v1alpha1.DiskOwner {
	owner := v1alpha1.DiskOwner{ClusterName: d.ClusterName}
	if m := d.dataMarker(); m != nil {
		owner.ClusterUID, owner.Node = m.ClusterUID, m.Node
	}
	if owner == (v1alpha1.DiskOwner{}) {
		return nil
	}
	return &owner
}
