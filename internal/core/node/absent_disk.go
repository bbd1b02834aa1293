package node

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// inspectDisk looks at the volumes before anything is decided by them. It is looked at again after
// every JVM.
func inspectDisk(p *pass) outcome {
	if !p.Disk.Known {
		return act(InspectDisk{Why: "no JVM runs, and the disk was not looked at since"})
	}
	return done
}

// inspectNewDisk looks at a disk that has no journal before the Cassandra container is there: the
// operator waits for the word of every disk, and nothing runs that could change it.
func inspectNewDisk(p *pass) outcome {
	if p.Memory.ClusterUID == "" && !p.Disk.Known && !p.running() {
		return act(InspectDisk{Why: "the disk has no journal of this node"})
	}
	return done
}

// haveVolume waits until init holds the lock of the data volume: as long as another process does,
// that is the JVM of another pod of this node, or the init above it. Two JVMs on one volume delete
// each other's files; Cassandra does not notice (measured, 5.0.6).
func haveVolume(p *pass) outcome {
	if p.Init.Unlocked == "" {
		return done
	}
	return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedDataVolumeInUse,
		p.Init.Unlocked+": a JVM of this node may still run in a former pod. Nothing is started before it has ended")
}

// knowDisk refuses disks that are not this node's. They are never wiped.
func knowDisk(p *pass) outcome {
	f, member := p.finding, p.Record.Spec.Member
	switch f.State {
	case v1alpha1.DiskUnreadable:
		return p.unreadable()
	case v1alpha1.DiskLeft:
		return blocked(v1alpha1.PhaseLeft, v1alpha1.BlockedNodeHasLeft, f.Message)
	case v1alpha1.DiskEmpty:
		for _, hostID := range p.memberships() {
			if !p.replaces(hostID) {
				return blocked(v1alpha1.PhaseDataLost, v1alpha1.BlockedMemberDiskMissing,
					fmt.Sprintf("the record says that this node is the member with host id %s, but its data volume is "+
						"empty: it must be replaced", hostID))
			}
		}
	case v1alpha1.DiskForeign:
		if member != nil {
			return blocked(v1alpha1.PhaseDataLost, v1alpha1.BlockedMemberDiskMissing,
				fmt.Sprintf("the record says that this node is the member with host id %s, but %s", member.HostID,
					f.Message))
		}
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedDiskOfOtherNode,
			f.Message+"; nothing is started and nothing wiped")
	case v1alpha1.DiskMember:
		if member != nil && p.Disk.HostID != "" && member.HostID != p.Disk.HostID && !p.hasReplaced(member.HostID) {
			which := ""
			if slices.Contains(p.EveryReplaced(), p.Disk.HostID) {
				which = ", which was replaced"
			}
			return blocked(v1alpha1.PhaseDataLost, v1alpha1.BlockedMemberDiskMissing,
				fmt.Sprintf("the record says that this node is the member with host id %s, but its data volume is "+
					"that of host id %s%s: nothing is started. Waits for the volume of the member, or until it is "+
					"replaced",
					member.HostID, p.Disk.HostID, which))
		}
	case v1alpha1.DiskJoining:
	}
	return done
}

// knowRelease starts no other line of releases than the record has, and keeps an earlier one away
// from what a later one has written.
func knowRelease(p *pass) outcome {
	version := p.Record.Spec.Configuration.Version
	if line := settings.LineOf(p.Init.Release); line != "" && line != settings.LineOf(version) {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedImageOfOtherRelease,
			fmt.Sprintf("the image has Cassandra %s, and the version of the node is %s: nothing is started. Waits for "+
				"a pod with an image of that version; where spec.image is set it must be one of spec.version",
				p.Init.Release, version))
	}
	if !settings.Older(version, p.Memory.Release) {
		return done
	}
	return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedDiskOfLaterRelease,
		settings.CheckChange(p.Memory.Release, version).Error())
}

// unreadable holds a disk back that cannot be read, and has it looked at again from time to time,
// without a word of it: nothing has changed as far as is known.
func (p *pass) unreadable() outcome {
	held := blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedDiskUnreadable,
		p.finding.Message+"; nothing is started and nothing wiped")
	again := p.Disk.SeenAt.Add(diskAgain)
	switch {
	case p.Disk.Problem == "":
		return held
	case p.now.Before(again):
		return held.until(again)
	}
	held.action = InspectDisk{Why: "the disk could not be read a while ago"}
	return held
}

// memberships are the host ids that this node has, or had, as a member by its record: what it is by
// the operator's word, and what it was by the last word of an agent, which the operator may not
// know of yet.
func (p *pass) memberships() []string {
	var out []string
	if m := p.Record.Spec.Member; m != nil {
		out = append(out, m.HostID)
	}
	if id := p.lost(); id != "" {
		out = append(out, id)
	}
	return out
}

// lost is the host id of the member that this node was by the last word of an agent, if neither
// journal nor disk know of it. The operator pins members when the whole ring has formed; until then
// the status alone says that the ticket was used, and it outlives a disk. An empty disk has no host
// id of its own. One that was replaced is no loss any more.
func (p *pass) lost() string {
	if p.Record == nil || p.running() || p.Memory.Member != nil ||
		p.Disk.Known && p.finding.State != v1alpha1.DiskEmpty {
		return ""
	}
	switch s := p.Record.Status; s.Disk {
	case v1alpha1.DiskMember, v1alpha1.DiskEmpty:
		if slices.Contains(p.EveryReplaced(), s.HostID) {
			return ""
		}
		return s.HostID
	default:
		return ""
	}
}

// replaces says that the node has a ticket to take the place of a member.
func (f *Facts) replaces(hostID string) bool {
	t := f.Record.Spec.Join
	return t != nil && t.Replace != nil && t.Replace.HostID == hostID
}

// hasReplaced says that the disk is one on which the node has taken the place of a member by the
// ticket of the record, which does not say so yet.
func (p *pass) hasReplaced(hostID string) bool {
	m := p.Memory.Join
	return p.replaces(hostID) && m != nil && m.ID == p.Record.Spec.Join.ID
}

// markVolumes marks the volumes as this node's before the first start on them.
func markVolumes(p *pass) outcome {
	own := p.Memory.ClusterUID == p.Self.ClusterUID && p.Memory.Node == p.Self.Node
	if own && len(p.finding.Unmarked) == 0 && !p.finding.Adoptable {
		return done
	}
	var names []string
	for _, v := range p.Disk.Volumes {
		names = append(names, v.Name)
	}
	why := "the volumes are marked as this node's before its first start"
	if p.finding.Adoptable {
		why = "the disk of the adopted cluster becomes this cluster's"
	}
	return act(ClaimDisk{Volumes: names, Cluster: p.Self.ClusterUID, Why: Why(why)})
}
