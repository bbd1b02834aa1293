package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// judgeFrozen ends a JVM that makes no progress: no answer over JMX, no processor time, for
// minutes, and no peer that sees it up. A JVM that is merely slow (a long pause of the collector
// uses the processor) is left alone, and so is one whose processor time is not known.
func judgeFrozen(p *pass) outcome {
	if !p.running() || p.answers() || p.JVM.ProgressAt.IsZero() || p.JVM.StartID != p.Init.Process.StartID {
		return done
	}
	silentSince := later(p.JVM.AnsweredAt, p.Init.Process.StartedAt)
	limit := frozenAfter
	if p.JVM.AnsweredAt.IsZero() {
		limit = startGrace
	}
	frozenAt := later(silentSince.Add(limit), p.JVM.ProgressAt.Add(frozenAfter))
	if p.now.Before(frozenAt) {
		return done
	}
	hostID := p.hostID()
	if len(p.peerAddresses()) > 0 && hostID != "" {
		if !p.peersAsked(hostID) {
			return act(p.ask(hostID, "the JVM seems frozen: do its peers see it up?"))
		}
		for _, peer := range p.Peers.Answers {
			if peer.Ring && peer.OfHostID != nil && peer.OfHostID.Live && peer.OfHostID.Address == p.Self.Address {
				p.report(v1alpha1.BlockedPeerSeesNodeUp,
					fmt.Sprintf("the JVM has not answered since %s, but node %s sees it up",
						silentSince.UTC().Format(time.RFC3339), peer.Node),
					p.now.Add(peersAgain))
				return done
			}
		}
	}
	return act(Kill{Dump: true, Reason: v1alpha1.RestartFrozen,
		Why: Why(fmt.Sprintf("the JVM was frozen: no answer since %s, no processor time since %s, and no peer saw it "+
			"up; it was killed after a thread dump",
			silentSince.UTC().Format(time.RFC3339), p.JVM.ProgressAt.UTC().Format(time.RFC3339))),
	})
}

// followJoin notes that the node is a member: once it is NORMAL with exactly the tokens of its
// ticket.
func followJoin(p *pass) outcome {
	if !p.answers() {
		return done
	}
	view := p.JVM.Ring
	if view.Mode == facts.ModeDecommissioned && p.Memory.LeftAt == nil {
		return act(NoteLeft{Why: "Cassandra has left the ring"})
	}
	if view.Mode != facts.ModeNormal {
		return done
	}
	m := p.Memory.Join
	if p.Memory.Member != nil && (m == nil || m.over()) {
		return done
	}
	self, found := p.JVM.self()
	if !found || len(self.Tokens) == 0 {
		return done // its own gossip state is not complete yet
	}
	tokens := tokenTexts(self.Tokens)
	if m != nil && !m.over() && len(m.Tokens) > 0 && !sameTokens(m.Tokens, tokens) {
		p.joinMessage = fmt.Sprintf("NORMAL with other tokens than those of the ticket: %s instead of %s",
			strings.Join(tokens, ","), strings.Join(m.Tokens, ","))
		p.report(v1alpha1.BlockedTokensDifferFromTicket, p.joinMessage, time.Time{})
		return done
	}
	return act(FinishJoin{HostID: view.HostID, Tokens: tokens, Neighbours: neighbours(view), Why: "NORMAL in the ring"})
}

// noteNormal writes down that the JVM is NORMAL: at first, and then every few minutes, so that
// later it is known how long the node was away.
func noteNormal(p *pass) outcome {
	if !p.answers() || p.JVM.Ring.Mode != facts.ModeNormal {
		return done
	}
	s := p.Memory.Start
	if !s.Is(p.Init.Incarnation, p.Init.Process.StartID) {
		return done
	}
	note := NoteNormal{Neighbours: neighbours(p.JVM.Ring)}
	if g := p.JVM.GCGrace; g != nil && *g != p.Memory.GCGrace {
		note.Why = "deletions are kept for another time now"
		return act(note)
	}
	if was := p.Memory.Proven; was != nil && was.PodTemplate != p.podTemplate(&p.Memory) {
		note.Why = "the pod was resized"
		return act(note)
	}
	known := p.Memory.NormalAt
	if s.NormalAt == nil || known == nil || p.now.Sub(*known) >= normalEvery || p.now.Before(*known) ||
		!slices.Equal(p.Memory.Neighbours, note.Neighbours) {
		note.Why = "the node is NORMAL"
		return act(note)
	}
	return done
}

// neighbours are the addresses of the other members in a view, sorted, at most 32: enough to find
// somebody to ask.
func neighbours(view *facts.Ring) []string {
	all := otherMembers(view)
	return all[:min(len(all), 32)]
}

// otherMembers are the addresses of all of them in a view, sorted.
func otherMembers(view *facts.Ring) []string {
	var out []string
	for _, e := range view.Endpoints {
		if e.Member() && e.HostID != view.HostID {
			out = append(out, e.Address)
		}
	}
	slices.Sort(out)
	return out
}

// setSeeds has the running JVM take other seeds over.
func setSeeds(p *pass) outcome {
	s := p.Memory.Start
	if !p.answers() || len(p.Seeds) == 0 || !s.Is(p.Init.Incarnation, p.Init.Process.StartID) {
		return done
	}
	wanted := slices.Sorted(slices.Values(p.Seeds))
	if p.JVM.Ring.Mode != facts.ModeNormal {
		wanted = p.seedsToAsk()
	}
	if len(wanted) == 0 || slices.Equal(wanted, slices.Sorted(slices.Values(s.Seeds))) {
		return done
	}
	return act(SetSeeds{Seeds: wanted, Why: "the seeds of the cluster are others now"})
}

// seedsToAsk are the seeds for a member's JVM that comes up and asks in vain: beside its own
// address it was started with none that is a seed now. Cassandra asks its seeds every five seconds
// whether it may come up, by the list of that moment; without an answer a seed goes on after half a
// minute, and any other node ends after a minute (Gossiper#doShadowRound, 4.1 and 5.0). Those of
// which this agent knows that they did not answer before the start stay out: a node waits until one
// that is up has answered, or all of its seeds have.
func (p *pass) seedsToAsk() []string {
	vain := !slices.ContainsFunc(p.Memory.Start.Seeds,
		func(seed string) bool { return seed != p.Self.Address && slices.Contains(p.Seeds, seed) })
	wanted := p.seedsForStart()
	if p.JVM.Ring.Mode != facts.ModeStarting || p.Memory.Member == nil || !vain ||
		slices.Equal(wanted, []string{p.Self.Address}) {
		return nil
	}
	return wanted
}

// applySettings changes in the running JVM what needs no restart. The rest is reported; only the
// operator decides on a restart.
func applySettings(p *pass) outcome {
	if !p.answers() || p.JVM.Ring.Mode != facts.ModeNormal || p.Configuration.Problem != "" ||
		p.Configuration.RestartNeeded || len(p.Configuration.Hot) == 0 {
		return done
	}
	return act(ApplySettings{Settings: p.Configuration.Hot,
		Why: Why("settings that need no restart changed: " + strings.Join(p.Configuration.Hot, ", "))})
}

// watchJVM ends the list for a node whose JVM runs: there is nothing to do but to look at it.
func watchJVM(p *pass) outcome {
	if !p.running() {
		return done
	}
	phase, message := p.phaseOfJVM()
	return p.asksWhoKnows(wait(phase, message))
}

// phaseOfJVM is the phase of a JVM that runs and is not being stopped.
func (p *pass) phaseOfJVM() (v1alpha1.NodePhase, string) {
	joining := p.Memory.Member == nil
	if !p.answers() {
		s := p.Memory.Start
		switch {
		case s != nil && s.NormalAt != nil && !p.JVM.AnsweredAt.IsZero():
			return v1alpha1.PhaseNormal, "the JVM has not answered since " + p.JVM.AnsweredAt.UTC().Format(time.RFC3339)
		case joining && p.Memory.Join != nil:
			return v1alpha1.PhaseJoining, "the JVM starts"
		default:
			return v1alpha1.PhaseStarting, "the JVM starts"
		}
	}
	switch p.JVM.Ring.Mode {
	case facts.ModeNormal:
		if joining {
			return v1alpha1.PhaseJoining, p.joinMessage
		}
		return v1alpha1.PhaseNormal, p.openedBlind()
	case facts.ModeLeaving, facts.ModeDecommissionFailed:
		return v1alpha1.PhaseLeaving, "Cassandra is in the mode " + string(p.JVM.Ring.Mode)
	case facts.ModeDecommissioned:
		return v1alpha1.PhaseLeft, "decommissioned"
	case facts.ModeDraining, facts.ModeDrained:
		return v1alpha1.PhaseFailed, "Cassandra was drained by somebody else; only a restart brings it back"
	case facts.ModeJoining, facts.ModeJoiningFailed:
		return v1alpha1.PhaseJoining, join("Cassandra is in the mode "+string(p.JVM.Ring.Mode), p.transfer())
	default:
		if joining {
			return v1alpha1.PhaseJoining, "Cassandra is in the mode " + string(p.JVM.Ring.Mode)
		}
		return v1alpha1.PhaseStarting, "Cassandra is in the mode " + string(p.JVM.Ring.Mode)
	}
}

// poll is how often the JVM is asked: often while something is expected of it, or of the ring as it
// sees it, rarely while it only has to be there. One that is closed to clients waits for the ring
// to form or grow: how it sees the others is what everybody waits for then.
func (p *pass) poll(last outcome) time.Duration {
	switch {
	case !p.running():
		return 0
	case last.verdict != Wait || last.phase != v1alpha1.PhaseNormal || !p.answers() || p.held != nil ||
		!p.JVM.Ring.NativeRunning:
		return pollStarting
	case p.JVM.Ring.Pending > 0 || p.now.Sub(p.JVM.ChangedAt) < changing:
		return min(pollChanging+time.Duration(len(p.JVM.Ring.Endpoints))*pollNode, pollSteady)
	default:
		return pollSteady
	}
}

func tokenTexts(tokens []int64) []string {
	out := make([]string, 0, len(tokens))
	for _, t := range tokens {
		out = append(out, strconv.FormatInt(t, 10))
	}
	return out
}

// sameTokens compares two lists whatever their order.
func sameTokens(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
