package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// requireTicket says whether this node may start at all: as a member by its disk, or by its ticket.
func requireTicket(p *pass) outcome {
	ticket, memory := p.Record.Spec.Join, p.Memory.Join
	if p.finding.State == v1alpha1.DiskMember {
		return p.holdMembership()
	}
	if ticket == nil {
		return wait(v1alpha1.PhaseWaiting, "ready; waits for its ticket to join")
	}
	if p.APISeenAt.IsZero() {
		return wait(v1alpha1.PhaseWaiting, "has a ticket to join; waits for the API server's word that it still stands")
	}
	if memory != nil && memory.ID == ticket.ID && memory.over() {
		return wait(v1alpha1.PhaseWaiting, "the ticket "+ticket.ID+" was given back; waits for another")
	}
	if ticket.Mode != v1alpha1.JoinNew && !streams(ticket.Mode) {
		return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedTicketModeUnsupported,
			fmt.Sprintf("this release of Helenus cannot join in the mode %s", ticket.Mode))
	}
	if member := p.Record.Spec.Member; member != nil && !p.replaces(member.HostID) {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedTicketForMember,
			fmt.Sprintf("the record says that this node is the member with host id %s, but its disk says that it has "+
				"not joined: a ticket of the mode %s is refused", member.HostID, ticket.Mode))
	}
	if p.Memory.TrafficOpenedAt != nil {
		return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedClientTrafficAlreadyOpened,
			fmt.Sprintf("a ticket of the mode %s is refused: this node has served clients before", ticket.Mode))
	}
	if p.finding.State == v1alpha1.DiskJoining && (memory == nil || memory.ID != ticket.ID) {
		return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedDiskOfOtherTicket,
			"the disk holds an unfinished join by another ticket; it must be wiped or the claim made anew")
	}
	return done
}

// holdMembership is requireTicket for a disk that Cassandra counts as a member's. A disk of an
// adopted cluster starts only when the operator has pinned its host id in the record, which it does
// when all disks of that cluster are there.
func (p *pass) holdMembership() outcome {
	if m := p.Memory.Join; p.Memory.Member == nil && p.Record.Spec.Member == nil && m != nil && m.BegunAt != nil &&
		m.WithdrawnAt != nil {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedDiskContradictsJournal,
			fmt.Sprintf("the journal says that the ticket %s was withdrawn before the node had joined, the disk says "+
				"that it has joined: it is not started", m.ID))
	}
	if !p.finding.Adoptable {
		return done
	}
	if name := p.Disk.ClusterName; name != "" && name != p.Record.Spec.Configuration.ClusterName {
		return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedClusterNameDiffers,
			fmt.Sprintf("the disk is of a cluster named %q, the record says %q: Cassandra would refuse it", name,
				p.Record.Spec.Configuration.ClusterName))
	}
	if p.Record.Spec.Member == nil {
		return wait(v1alpha1.PhaseWaiting, "the disk is of the cluster to be adopted; waits until all its disks are "+
			"there")
	}
	return done
}

// downTooLong says that a member was away for longer than deleted data is remembered.
func (f *Facts) downTooLong(now time.Time) bool {
	m := &f.Memory
	// The node may have been NORMAL for as long as it takes to write that down again.
	return m.GCGrace > 0 && m.NormalAt != nil && now.Sub(*m.NormalAt)-normalEvery > m.GCGrace
}

// checkGCGrace keeps back a member that was away for longer than deleted data is remembered:
// starting it could bring deleted rows back. What the others did meanwhile the operator knows,
// which hears all of them, and a person may decide: either is a word in the record.
func checkGCGrace(p *pass) outcome {
	if !p.downTooLong(p.now) {
		return done
	}
	if s := p.Record.Spec.StartAnyway; s != nil && s.HostID == p.hostID() && p.now.Before(s.Until.Time) {
		return done
	}
	return blocked(v1alpha1.PhaseDownTooLong, v1alpha1.BlockedDownLongerThanGCGrace,
		fmt.Sprintf("last NORMAL at %s, longer ago than the smallest gc_grace of a table (%s): rows that were deleted "+
			"meanwhile could come back. It starts by itself if the operator hears that no other member was NORMAL "+
			"after it that long ago, and all the same by: kubectl helenus start-anyway %s --reason '...'",
			p.Memory.NormalAt.UTC().Format(time.RFC3339), p.Memory.GCGrace, p.Self.Node))
}

// haveConfiguration refuses what cannot be rendered, before anything is touched.
func haveConfiguration(p *pass) outcome {
	if p.Configuration.Problem != "" {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedConfigurationRenderingFailed, p.Configuration.Problem)
	}
	if p.Configuration.Hash == "" {
		return wait(v1alpha1.PhaseWaiting, "the configuration is not known yet")
	}
	return done
}

// firstSeeds makes sure that the JVM will have seeds. While a ring forms, the agents of all other
// seeds must answer for a while before one is left out: two nodes that each knew only themselves
// would form two rings.
func (p *pass) firstSeeds(silent []string) outcome {
	if !p.joinsNew() {
		return done
	}
	if len(p.Seeds) == 0 {
		return wait(v1alpha1.PhaseWaiting, "waits for the addresses of the seeds")
	}
	var missing []string
	for _, seed := range p.Seeds {
		if slices.Contains(silent, seed) {
			missing = append(missing, seed)
		}
	}
	if len(missing) == 0 {
		return done
	}
	alone := len(p.seedsForStart()) == 0 || slices.Equal(p.seedsForStart(), []string{p.Self.Address})
	if alone || p.Peers.AskedAt.Sub(p.Self.StartedAt) < silentSeedsLimit {
		return wait(v1alpha1.PhaseWaiting,
			"waits for the agents of the seeds "+strings.Join(missing, ", ")).until(p.Peers.AskedAt.Add(peersFresh))
	}
	return done
}

// seedsForStart are the seeds without those at which no agent of this cluster answers: such an
// address would cost the JVM half a minute, or belong to somebody else by now. A member that knows
// nobody uses its own address and finds the others by its own system tables.
func (p *pass) seedsForStart() []string {
	if p.bootstraps() {
		return p.memberSeeds()
	}
	var out []string
	for _, seed := range p.Seeds {
		if seed == p.Self.Address || !slices.Contains(p.Peers.Silent, seed) {
			out = append(out, seed)
		}
	}
	if len(out) == 0 && p.finding.State == v1alpha1.DiskMember {
		out = []string{p.Self.Address}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// start is reached when nothing speaks against it.
func start(p *pass) outcome {
	arguments := &StartArguments{
		Incarnation:   p.Init.Incarnation,
		StartID:       p.Init.LastStartID + 1,
		Configuration: p.Record.Spec.Configuration,
		Hash:          p.Configuration.Hash,
		Seeds:         p.seedsForStart(),
	}
	why := "a member by its disk"
	if p.Memory.Member == nil || p.Memory.Join != nil && !p.Memory.Join.over() {
		arguments.Ticket = p.ticket()
	}
	if arguments.Ticket != nil {
		why = fmt.Sprintf("ticket %s of the mode %s", arguments.Ticket.ID, arguments.Ticket.Mode)
	}
	return act(StartJVM{Start: arguments, Why: Why(why)})
}

// ticket is what the JVM is given until it was seen NORMAL: that of the record, or the same one as
// it was written down when it was first used. An earlier one counts only if the disk has joined by
// it: its taking back may have been proven without this agent.
func (p *pass) ticket() *v1alpha1.JoinTicket {
	of := p.Record.Spec.Join
	if m := p.Memory.Join; m != nil && !m.over() &&
		(of == nil || of.ID == m.ID || p.finding.State == v1alpha1.DiskMember) {
		return &v1alpha1.JoinTicket{
			Intent: v1alpha1.Intent{ID: m.ID}, Mode: m.Mode, Tokens: m.Tokens, Replace: m.Replace,
			SystemAuthReplicationFactor: m.SystemAuthReplicationFactor, Restore: m.Restore,
		}
	}
	if p.finding.State == v1alpha1.DiskMember {
		return nil
	}
	return of.DeepCopy()
}

// restoreDisk fills the disk of a node that begins with what another one had in a backup. A disk
// on which nothing is any more is filled again.
func restoreDisk(p *pass) outcome {
	t := p.ticket()
	if t == nil || t.Restore == nil || p.finding.State == v1alpha1.DiskMember {
		return done
	}
	if m := p.Memory.Join; m != nil && m.ID == t.ID && m.Restored && p.Disk.HasData {
		return done
	}
	return act(RestoreDisk{Ticket: t, Why: Why(fmt.Sprintf("ticket %s is for what node %s of cluster %s has in "+
		"backup %s", t.ID, t.Restore.HostID, t.Restore.Cluster, t.Restore.Backup))})
}

// joinsNew says that the next start is by a ticket of the mode New.
func (p *pass) joinsNew() bool {
	return p.finding.State != v1alpha1.DiskMember && p.Record.Spec.Join != nil &&
		p.Record.Spec.Join.Mode == v1alpha1.JoinNew
}

// hostID of this node, by whatever knows it; empty for one that never joined.
func (p *pass) hostID() string {
	switch {
	case p.answers() && p.JVM.Ring.HostID != "":
		return p.JVM.Ring.HostID
	case p.Memory.Member != nil:
		return p.Memory.Member.HostID
	case p.Disk.HostID != "":
		return p.Disk.HostID
	default:
		return p.lost()
	}
}

// reachInit waits for the Cassandra container.
func reachInit(p *pass) outcome {
	switch {
	case p.Init.Answers:
		return done
	case p.Init.Problem != "":
		return wait(v1alpha1.PhaseFailed, p.Init.Problem)
	}
	return wait(v1alpha1.PhaseWaiting, "waits for helenus-init: the Cassandra container does not run yet")
}
