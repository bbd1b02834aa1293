package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A node that bootstraps announces its tokens, waits for the ring delay, so that everybody sends it
// the writes of its ranges too, and then streams what was there before (StorageService#bootstrap,
// 4.1 and 5.0). What is written between the two would be missing on it if its peers did not know of
// it while it streams. A try that was cut off leads to that: the peers remove a silent joiner after
// some time, and then ignore its address for a whole minute (Gossiper#doStatusCheck, FatClient, and
// justRemovedEndpoints), in which the next try would go on unheard.
//
// They remove one that has not announced its tokens after 30 s; one that has, after 30 s, 60 s
// since 4.1.5, and 300 s in 5.0 (CASSANDRA-15439). A JVM takes up to a minute from its start to its
// first word, and 35 s at least to its first stream.
const (
	// joinerHeardFrom is after how long they listen again to the address of one that was removed
	// early, which is 122 s at the latest.
	joinerHeardFrom = addressQuarantine
	// joinerHeardUntil is until when a JVM of 5.0 can be started so that it speaks before they
	// remove it late, and joinerHeardAgain after how long they listen again if they did, which is
	// 362 s at the latest.
	joinerHeardUntil = 240 * time.Second
	joinerHeardAgain = 400 * time.Second
	// forgottenWithin is how long it takes at most until all members have forgotten a try that was
	// cut off, if none of them was started meanwhile. One that was forgets it so much later that
	// the others, which ignore it for 60 s, hear of it again: measured with 5.0.6, where it has no
	// end.
	forgottenWithin = 10 * time.Minute
	// joinStalled is for how long a join may go without a stream. It waits for the schema, the ring
	// delay, and a repair of Paxos at most; indexes are built while the stream still counts as one.
	joinStalled = 30 * time.Minute
)

// bootstraps says that the next start streams the data of the node's ranges.
func (p *pass) bootstraps() bool {
	return p.finding.State != v1alpha1.DiskMember && p.Record.Spec.Join != nil && streams(p.Record.Spec.Join.Mode)
}

// streams says that a node joins by a mode in which it streams from a ring that serves.
func streams(mode v1alpha1.JoinMode) bool {
	return mode == v1alpha1.JoinBootstrap || mode == v1alpha1.JoinReplace
}

// lastHeard is the last try by this ticket of which the ring may have heard, nil if there was none.
func lastHeard(m *Memory, d Disk) *HeardMemory {
	if m.Join == nil || m.Join.BegunAt == nil {
		return nil
	}
	// Cassandra writes the generation of its gossip down, and flushes it, before it says its first
	// word (SystemKeyspace#incrementAndGetGeneration).
	s := m.Start
	if s == nil || d.Generation == s.Generation || len(m.Addresses) == 0 {
		return m.Join.Heard
	}
	heard := HeardMemory{Address: m.Addresses[0].Address, From: s.At, Until: s.At}
	if s.EndedAt != nil {
		heard.Until = *s.EndedAt
		if !s.Lost {
			heard.From = heard.Until
		}
	}
	return &heard
}

// again is when the ring listens to the address of a try that was cut off, from a time on.
func (h *HeardMemory) again(now time.Time) time.Time {
	early, late := h.Until.Add(joinerHeardFrom), h.Until.Add(joinerHeardAgain)
	closes := h.From.Add(joinerHeardUntil)
	switch {
	case !now.Before(late):
		return now
	case now.Before(early) && early.Before(closes):
		return early
	case now.Before(closes) && !now.Before(early):
		return now
	default:
		return late
	}
}

// waitForQuarantine holds a join that was cut off back until its peers listen to the address again.
func waitForQuarantine(p *pass) outcome {
	if !p.bootstraps() {
		return done
	}
	heard := lastHeard(&p.Memory, p.Disk)
	if heard == nil || heard.Address != p.Self.Address {
		return done
	}
	again := heard.again(p.now)
	if !p.now.Before(again) {
		return done
	}
	message := "the join was cut off"
	if d := p.Memory.Deaths; d != nil && !d.LastAt.Before(heard.Until) {
		message = d.Message
	}
	return wait(v1alpha1.PhaseWaiting,
		fmt.Sprintf("%s; goes on by the same ticket at %s, when the ring surely listens to this address again",
			message, again.UTC().Format(time.RFC3339))).until(again)
}

// beginAnew has a join that streams begin on what it may begin on: in the ring that is there, and
// after an attempt that was cut off without the rows of that, which deletions may have passed
// since: what is streamed again would not take these away. Where they may not be removed they stay
// for as long as every deletion is kept.
func (p *pass) beginAnew() outcome {
	m, t := p.Memory.Join, p.Record.Spec.Join
	o := p.findTheRing()
	if o.verdict == Done {
		o = p.everyMemberIsUp()
	}
	if o.verdict != Done || p.finding.State != v1alpha1.DiskJoining || m == nil ||
		m.BegunAt == nil || m.ID != t.ID {
		return o
	}
	since, why := *m.BegunAt, "its ticket does not allow that yet"
	if w := m.Wipe; w != nil && w.Done {
		if s := p.Memory.Start; s == nil || s.At.Before(w.BegunAt) {
			return done // nothing is there
		}
		since = w.BegunAt
	}
	if t.Wipe != "" && (m.Wipe == nil || m.Wipe.ID != t.Wipe || !m.Wipe.Done) {
		if why = p.notWiped(); why == "" {
			return act(WipeJoin{ID: t.Wipe, Why: Why("the join restarts, without what was streamed before")})
		}
		p.joinMessage = "what was streamed before stays: " + why
	}
	again := p.Peers.AskedAt.Add(peersAgain)
	switch grace, known := p.smallestGCGrace(); {
	case !known:
		return wait(v1alpha1.PhaseWaiting, "the join was cut off; waits until a member knows for how long the tables "+
			"keep deletions").until(again)
	case grace > 0 && p.now.Sub(since) > grace:
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedJoinLongerThanGCGrace,
			fmt.Sprintf("the join by the ticket %s has rows since %s, for longer than the smallest gc_grace of a "+
				"table (%s): deleted rows could come back with them, and they are not removed: %s. "+
				"Lower the number of nodes, delete claim and pod, and raise it again",
				m.ID, since.UTC().Format(time.RFC3339), grace, why)).until(again)
	}
	return done
}

// notWiped says why what was streamed stays although the ticket allows its removal; empty if
// nothing speaks against it.
func (p *pass) notWiped() string {
	if p.Disk.Bootstrapped != WordInProgress || p.Disk.HostID == "" {
		return fmt.Sprintf("the disk does not say that the node joins, but %q", p.Disk.Bootstrapped)
	}
	for _, peer := range p.Peers.Answers {
		if e := peer.OfHostID; e != nil && e.Status != facts.StatusBootstrap && e.Status != facts.StatusReplacing {
			return fmt.Sprintf("node %s sees the host id %s as %s", peer.Node, p.Disk.HostID, e.Status)
		}
	}
	return ""
}

// smallestGCGrace is that of the tables by the word of the peers, 0 if no table needs any, and
// false if none of them knows.
func (p *pass) smallestGCGrace() (smallest time.Duration, known bool) {
	for _, peer := range p.Peers.Answers {
		if g := peer.GCGrace; g != nil {
			known = true
			if *g > 0 && (smallest == 0 || *g < smallest) {
				smallest = *g
			}
		}
	}
	return smallest, known
}

// elsewhere says that a peer still sees an earlier try of this node at another address. Cassandra
// lets nobody join as long as anybody does.
func (p *pass) elsewhere(peer facts.Peer) (string, bool) {
	e := peer.OfHostID
	if !p.bootstraps() || e == nil || e.Address == p.Self.Address || !e.InFlight() {
		return "", false
	}
	words := fmt.Sprintf("node %s still sees the try before, at %s (%s): Cassandra lets no join begin until it is "+
		"forgotten", peer.Node, e.Address, e.Status)
	if heard := lastHeard(&p.Memory, p.Disk); heard == nil || p.now.Sub(heard.Until) < forgottenWithin {
		return words + ", which takes up to five minutes", true
	}
	return words +
		", and members that started meanwhile tell the others of it again and again: the operator ends that once " +
		"some have forgotten it", true
}

// findTheRing makes sure that a node which bootstraps joins the ring that is there: at least one
// seed must answer as a member of it. The node's own address is never among the seeds then, since
// Cassandra takes a seed to have nothing to stream.
func (p *pass) findTheRing() outcome {
	if len(p.Seeds) == 0 {
		return wait(v1alpha1.PhaseWaiting, "waits for the addresses of the seeds")
	}
	if len(p.memberSeeds()) > 0 {
		return done
	}
	return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedNoSeedAnswers,
		fmt.Sprintf("none of the seeds %s answers as a member of this ring with a JVM that runs: the node would be "+
			"alone",
			strings.Join(p.Seeds, ", "))).
		until(p.Peers.AskedAt.Add(peersFresh))
}

// everyMemberIsUp keeps a join back that cannot succeed: each range comes from the replica that
// gives it up, without which Cassandra ends
// (RangeStreamer#calculateRangesToFetchWithPreferredEndpoints, 4.1 and 5.0), and a member that is
// down does not learn of the newcomer. One that replaces a member takes each range from any
// replica, and may do so while others of its rack are lost, too.
func (p *pass) everyMemberIsUp() outcome {
	if p.Record.Spec.Join.Mode == v1alpha1.JoinReplace {
		return done
	}
	for _, peer := range p.Peers.Answers {
		if len(peer.Down) == 0 {
			continue
		}
		down := "the member with host id " + peer.Down[0]
		for _, other := range p.Peers.Answers {
			if other.HostID == peer.Down[0] {
				down = "node " + other.Node
			}
		}
		return blocked(v1alpha1.PhaseWaiting, v1alpha1.BlockedMemberDown,
			fmt.Sprintf("node %s sees %s down, and a node that joins streams from every member. Bring it up, or lower "+
				"the number of nodes to abandon the join", peer.Node, down)).until(p.Peers.AskedAt.Add(peersAgain))
	}
	return done
}

// memberSeeds are the seeds that answer as members.
func (p *pass) memberSeeds() []string {
	var out []string
	for _, peer := range p.Peers.Answers {
		if peer.Asked != p.Self.Address && peer.Node != p.Self.Node && peer.HostID != "" && peer.Ring &&
			slices.Contains(p.Seeds, peer.Asked) {
			out = append(out, peer.Asked)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withdrawJoin acknowledges that a ticket which began is taken back, on the word of the disk.
func withdrawJoin(p *pass) outcome {
	if !p.beganAndTakenBack() {
		return done
	}
	switch {
	case p.finding.State == v1alpha1.DiskMember:
		p.joinMessage = "the ticket was taken back too late: the disk says that the node has joined"
		return done
	case p.Memory.Member != nil || p.Memory.NormalAt != nil:
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedDiskContradictsJournal,
			fmt.Sprintf("the journal says that this node was in the ring, its disk is %s: the ticket is not given back",
				p.finding.State))
	default:
		return act(WithdrawJoin{ID: p.Record.Spec.Join.ID,
			Why: Why("taken back: " + p.Record.Spec.Join.Withdraw.Reason)})
	}
}
