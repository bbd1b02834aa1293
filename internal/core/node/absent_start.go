package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// inspectDisk looks at the volumes before anything is decided by them. It is looked at anew after
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

// knowDisk refuses disks that are not this node's. They are never wiped.
func knowDisk(p *pass) outcome {
	f, member := p.finding, p.Record.Spec.Member
	switch f.State {
	case v1alpha1.DiskUnreadable:
		return p.unreadable()
	case v1alpha1.DiskLeft:
		return blocked(v1alpha1.PhaseLeft, v1alpha1.BlockedNodeHasLeft, f.Message)
	case v1alpha1.DiskEmpty:
		hostID := p.lost()
		if member != nil {
			hostID = member.HostID
		}
		if hostID != "" {
			return blocked(v1alpha1.PhaseDataLost, v1alpha1.BlockedMemberDiskMissing,
				fmt.Sprintf("the record says that this node is the member with host id %s, but its data volume is "+
					"empty: it must be replaced", hostID))
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
		if member != nil && p.Disk.HostID != "" && member.HostID != p.Disk.HostID {
			return blocked(v1alpha1.PhaseDataLost, v1alpha1.BlockedMemberDiskMissing,
				fmt.Sprintf("the record says host id %s, the disk is of host id %s", member.HostID, p.Disk.HostID))
		}
	case v1alpha1.DiskJoining:
	}
	return done
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

// lost is the host id of the member that this node was by the last word of an agent, if neither
// journal nor disk know of it. The operator pins members when the whole ring has formed; until then
// the status alone says that the ticket was used, and it outlives a disk. An empty disk has no host
// id of its own.
func (p *pass) lost() string {
	if p.Record == nil || p.running() || p.Memory.Member != nil ||
		p.Disk.Known && p.finding.State != v1alpha1.DiskEmpty {
		return ""
	}
	switch s := p.Record.Status; s.Disk {
	case v1alpha1.DiskMember, v1alpha1.DiskEmpty:
		return s.HostID
	default:
		return ""
	}
}

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
	if ticket.Mode != v1alpha1.JoinNew && ticket.Mode != v1alpha1.JoinBootstrap {
		return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedTicketModeUnsupported,
			fmt.Sprintf("this release of Helenus cannot join in the mode %s", ticket.Mode))
	}
	if member := p.Record.Spec.Member; member != nil {
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

// beInContact keeps back a member that nobody has spoken to for so long that it may have been
// replaced.
func beInContact(p *pass) outcome {
	if len(p.peerAddresses()) == 0 {
		return done // there is nobody who could have taken its place
	}
	contact := later(p.APISeenAt, p.Peers.HeardAt)
	if p.Memory.ContactAt != nil {
		contact = later(contact, *p.Memory.ContactAt)
	}
	if p.now.Sub(contact) <= cutOffLimit {
		return done
	}
	return p.asking(p.hostID(), "nobody was heard for long: does a peer answer?",
		blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedNoContactWithCluster,
			fmt.Sprintf("neither the API server nor an agent of this cluster has answered since %s: this node may "+
				"have been replaced, and waits for a word of either",
				contact.UTC().Format(time.RFC3339))).until(p.Peers.AskedAt.Add(peersAgain)))
}

// ownAddress asks the agents of the other nodes before each start: is this address free, and was
// this host id replaced?
func ownAddress(p *pass) outcome {
	hostID := p.hostID()
	if hostID != "" && slices.Contains(everyReplaced(p.Memory, p.Record), hostID) {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedHostIDReplaced,
			"the member with host id "+hostID+" was replaced; started again, it would take its tokens back")
	}
	if len(p.askedAddresses()) == 0 {
		if p.bootstraps() {
			return p.findTheRing()
		}
		return p.firstSeeds(nil)
	}
	return p.asking(hostID, "before a start: is the address free, was the host id replaced, which seeds answer?",
		p.judgePeers(hostID))
}

// asking asks the peers unless they were asked just now. What they said before holds until they
// have answered: a node that waits says so once, not with every question.
func (p *pass) asking(hostID, why string, judged outcome) outcome {
	switch {
	case p.peersAsked(hostID):
		return judged
	case judged.verdict == Done || p.Peers.AskedAt.IsZero() || p.Peers.Address != p.Self.Address ||
		p.Peers.HostID != hostID:
		return act(p.ask(hostID, why))
	}
	ask := p.ask(hostID, why)
	judged.action, judged.again = ask, time.Time{}
	return judged
}

// judgePeers says what the answers of the peers, whenever they came, mean for a start.
func (p *pass) judgePeers(hostID string) outcome {
	again := p.Peers.AskedAt.Add(peersAgain)
	for _, peer := range p.Peers.Answers {
		if hostID != "" && slices.Contains(peer.Replaced, hostID) {
			return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedHostIDReplaced,
				fmt.Sprintf("node %s says that the member with host id %s was replaced; started again, it would take "+
					"its tokens back", peer.Node, hostID)).until(again)
		}
		if peer.Node == p.Self.Node && peer.PodUID != p.Self.PodUID {
			return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedFormerPodAnswers,
				fmt.Sprintf("the agent of another pod of this node, with the uid %s, answers at %s: its JVM may run. "+
					"Waits until that pod has ended", peer.PodUID, peer.Asked)).until(p.Peers.AskedAt.Add(peersFresh))
		}
		if words, taken := p.addressTaken(peer, hostID); taken {
			return blocked(v1alpha1.PhaseAddressTaken, v1alpha1.BlockedAddressTaken, words).until(again)
		}
		if words, still := p.elsewhere(peer); still {
			return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedStaleEndpointInGossip, words).until(again)
		}
		if e := peer.OfHostID; e != nil && e.Live && e.Address != p.Self.Address {
			return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedHostIDAlive,
				fmt.Sprintf("node %s sees host id %s alive at %s: its JVM may still run there. Waits until no node "+
					"does, which is half a minute after its end at the latest", peer.Node, hostID, e.Address)).
				until(p.Peers.AskedAt.Add(peersFresh))
		}
		// Those of another datacenter have data, of which none belongs here before a keyspace is
		// extended to this one.
		if peer.TrafficOpened && p.joinsNew() &&
			(peer.Datacenter == "" || peer.Datacenter == p.Record.Spec.Datacenter) {
			return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedClientTrafficAlreadyOpened,
				fmt.Sprintf("a ticket of the mode New is refused: node %s of the same datacenter has served clients",
					peer.Node)).until(again)
		}
	}
	if p.bootstraps() {
		return p.beginAnew()
	}
	return p.firstSeeds(p.Peers.Silent)
}

// addressTaken says that a peer knows this pod's address as another member's, now or too short a
// time ago.
func (p *pass) addressTaken(peer Peer, hostID string) (string, bool) {
	if e := peer.AtAddress; e != nil && e.HostID != hostID && e.Status != "LEFT" && e.Status != "REMOVED" &&
		(e.Member() || e.HostID != "") {
		return fmt.Sprintf("node %s knows the address %s as that of the member with host id %s", peer.Node,
			p.Self.Address, e.HostID), true
	}
	if peer.Node == p.Self.Node {
		return "", false
	}
	for _, use := range peer.Addresses {
		switch ago := p.now.Sub(use.LastUsed); {
		case use.Address != p.Self.Address || ago >= addressQuarantine:
		case ago < peersAgain:
			return fmt.Sprintf("node %s has the address %s, or had it just now", peer.Node, use.Address), true
		default:
			return fmt.Sprintf("node %s had the address %s until %s; its peers remember it for %s", peer.Node,
				use.Address,
				use.LastUsed.UTC().Format(time.RFC3339), addressQuarantine), true
		}
	}
	return "", false
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
			Intent: v1alpha1.Intent{ID: m.ID}, Mode: m.Mode, Tokens: m.Tokens,
			SystemAuthReplicationFactor: m.SystemAuthReplicationFactor,
		}
	}
	if p.finding.State == v1alpha1.DiskMember {
		return nil
	}
	return of.DeepCopy()
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

// peerAddresses are those at which agents of other nodes may be, sorted.
func (p *pass) peerAddresses() []string {
	all := slices.Concat(p.Seeds, p.Memory.Neighbours)
	all = slices.DeleteFunc(all, func(a string) bool { return a == p.Self.Address })
	slices.Sort(all)
	return slices.Compact(all)
}

// askedAddresses are those of the peers and, before a start, the one that this node had last: its
// former pod may be there still.
func (p *pass) askedAddresses() []string {
	all := p.peerAddresses()
	for _, use := range p.Memory.Addresses {
		if use.Address != p.Self.Address && !p.running() {
			all = append(all, use.Address)
			break
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (p *pass) ask(hostID, why string) AskPeers {
	a := AskPeers{Address: p.Self.Address, HostID: hostID, Ask: p.askedAddresses(), Why: Why(why)}
	if p.streamsIn() {
		a.StartID = p.Init.Process.StartID
	}
	return a
}

// peersAsked says that the last round of questions was about this and is fresh.
func (p *pass) peersAsked(hostID string) bool {
	fresh := !p.Peers.AskedAt.IsZero() && p.now.Sub(p.Peers.AskedAt) < peersFresh && !p.now.Before(p.Peers.AskedAt)
	return fresh && p.Peers.Address == p.Self.Address && p.Peers.HostID == hostID
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
