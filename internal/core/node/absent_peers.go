package node

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

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
	if hostID != "" && slices.Contains(p.EveryReplaced(), hostID) {
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
func (p *pass) addressTaken(peer facts.Peer, hostID string) (string, bool) {
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
