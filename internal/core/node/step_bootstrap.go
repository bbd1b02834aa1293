package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A node that bootstraps announces its tokens, waits for the ring delay, so that everybody sends it the writes of its ranges too, and then streams what was
// there before (StorageService#bootstrap, 4.1 and 5.0). What is written between the two would be missing on it if its peers did not know of it while it streams.
// A try that was cut off leads to that: the peers forget a silent joiner after half a minute, and then ignore its address for a whole one
// (Gossiper#doStatusCheck, FatClient, and justRemovedEndpoints), in which the next try would go on unheard.
const (
	// joinerForgotten is after how long without a word every peer has forgotten a node that was joining: 30 s, which are looked at once a second, and some
	// for the last word to get around.
	joinerForgotten = 35 * time.Second
	// joinerHeardAgain is after how long they listen to its address again: 60 s later. A JVM takes the ring delay, 30 s, from its start to the first
	// stream at least, so that this is enough for a peer that forgets late.
	joinerHeardAgain = joinerForgotten + 60*time.Second
	// joinStalled is for how long a join may go without a stream. It waits for the schema, the ring delay, and a repair of Paxos at most; indexes are built
	// while the stream still counts as one.
	joinStalled = 30 * time.Minute
)

// bootstraps says that the next start streams the data of the node's ranges.
func (p *pass) bootstraps() bool {
	return p.finding.State != v1alpha1.DiskMember && p.Record.Spec.Join != nil && p.Record.Spec.Join.Mode == v1alpha1.JoinBootstrap
}

// lastHeard is until when, and at which address, the ring may have heard of a join by this ticket that was cut off; the zero time if it never did.
func lastHeard(m *Memory, d Disk) (time.Time, string) {
	if m.Join == nil || m.Join.BegunAt == nil {
		return time.Time{}, ""
	}
	// Cassandra writes the generation of its gossip down, and flushes it, before it says its first word (SystemKeyspace#incrementAndGetGeneration).
	if s := m.Start; s != nil && d.Generation != s.Generation && len(m.Addresses) > 0 {
		until := s.At
		if s.EndedAt != nil {
			until = *s.EndedAt
		}
		return until, m.Addresses[0].Address
	}
	if m.Join.HeardUntil == nil {
		return time.Time{}, ""
	}
	return *m.Join.HeardUntil, m.Join.HeardAt
}

// beForgotten holds a join that was cut off back until the ring does not confuse it with the try before.
func beForgotten(p *pass) outcome {
	if !p.bootstraps() {
		return done
	}
	heard, at := lastHeard(&p.Memory, p.Disk)
	if heard.IsZero() {
		return done
	}
	again := heard.Add(joinerForgotten)
	if at == p.Self.Address {
		again = heard.Add(joinerHeardAgain)
	}
	if !p.now.Before(again) {
		return done
	}
	message := "the join was cut off"
	if d, s := p.Memory.Deaths, p.Memory.Start; d != nil && s != nil && s.EndedAt != nil && d.LastAt.Equal(*s.EndedAt) {
		message = d.Message
	}
	return wait(v1alpha1.PhaseWaiting, fmt.Sprintf("%s; goes on by the same ticket at %s, when the ring has forgotten the try before and listens again",
		message, again.UTC().Format(time.RFC3339))).until(again)
}

// findTheRing makes sure that a node which bootstraps joins the ring that is there: at least one seed must answer as a member of it. The node's own address
// is never among the seeds then, since Cassandra takes a seed to have nothing to stream.
func (p *pass) findTheRing() outcome {
	if len(p.Seeds) == 0 {
		return wait(v1alpha1.PhaseWaiting, "waits for the addresses of the seeds")
	}
	if len(p.memberSeeds()) > 0 {
		return done
	}
	return blocked(v1alpha1.PhaseWaiting, "a_seed_answers_as_a_member",
		fmt.Sprintf("none of the seeds %s answers as a member of this ring with a JVM that runs: the node would be alone", strings.Join(p.Seeds, ", "))).
		until(p.Peers.AskedAt.Add(peersFresh))
}

// memberSeeds are the seeds that answer as members.
func (p *pass) memberSeeds() []string {
	var out []string
	for _, peer := range p.Peers.Answers {
		if peer.Asked != p.Self.Address && peer.Node != p.Self.Node && peer.HostID != "" && peer.Ring && slices.Contains(p.Seeds, peer.Asked) {
			out = append(out, peer.Asked)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stopFailedJoin ends a JVM that has given its join up and stays there, as 5.0 does when a stream failed: the next start tries again from the beginning. What
// it could go on with (nodetool bootstrap resume) may lack what was written meanwhile (CASSANDRA-17679). 4.1 says nothing and stays in the mode JOINING.
func stopFailedJoin(p *pass) outcome {
	if !p.answers() || !p.onItsWay() || p.Configuration.Problem != "" {
		return done
	}
	failed := func(why string) outcome {
		return act(Action{Kind: BeginStop, Reason: v1alpha1.RestartStartFailed, Why: why})
	}
	switch p.JVM.Ring.Mode {
	case facts.ModeJoiningFailed:
		return failed("streaming failed, and Cassandra has given its join up (mode " + string(facts.ModeJoiningFailed) + ")")
	case facts.ModeJoining:
		since := later(later(p.Init.Process.StartedAt, p.Self.StartedAt), p.JVM.StreamedAt)
		if !p.JVM.Ring.Streaming && p.now.Sub(since) >= joinStalled {
			return failed(fmt.Sprintf("Cassandra is in the mode %s and has streamed nothing for %s: the join has failed", facts.ModeJoining, joinStalled))
		}
	default:
	}
	return done
}
