package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// What is written while a node streams comes to it by its peers, which have to know of it all the
// while. They forget a joiner that they do not hear for some time and then ignore it for 60 s (see
// absent_bootstrap.go), and Cassandra goes on without a word when it is heard again: a JVM that
// stood still for 40 s, or a host that was cut off, would become a replica that lacks what was
// written meanwhile. So the agents of all members are asked while a node joins whether they see it.
const (
	// askWhoKnows is how often they are asked: often enough to end the join of a node of which they
	// do not know within the ring delay of 30 s, before it streams.
	askWhoKnows = 4 * time.Second
	// knownWithin is how long it may take until a peer knows of it: some rounds of gossip, and the
	// next look of its agent.
	knownWithin = 20 * time.Second
	// knownBetween is how long a peer's agent may say nothing while its JVM runs on and is not
	// heard: less than the 85 s in which that can have forgotten the joiner, ignored it, and seen
	// it again.
	knownBetween = time.Minute
	// aloneFor is how long nobody may answer nor be heard. Cassandra counts a peer as up for some
	// 20 s after its last word, and the first to forget do after 30 s.
	aloneFor = 15 * time.Second
)

// Knowledge is what one JVM of another node has known of a JVM that joins.
type Knowledge struct {
	// JVM that answered.
	JVM string
	// HostID of its node.
	HostID string
	// Since is when it was asked first, SeenAt when it last saw the joiner; zero if never.
	Since, SeenAt time.Time
	// HeardAt is when the joiner last had it for up while its agent was silent: who hears is heard,
	// by the same gossip.
	HeardAt time.Time
	// Forgot says that it did not know of the joiner for some time, or may not have.
	Forgot bool
}

// contactAt is when they last heard of each other, for all that is known.
func (k Knowledge) contactAt() time.Time { return later(k.SeenAt, k.HeardAt) }

// After adds to the answers of a round what is known by those before it, and by the JVM that joins.
func (p Peers) After(before Peers, jvm JVM) Peers {
	p.Knowledge = map[string]Knowledge{}
	if p.StartID == before.StartID {
		maps.Copy(p.Knowledge, before.Knowledge)
	}
	for _, peer := range p.Answers {
		if !peer.Ring {
			continue
		}
		k := p.Knowledge[peer.Node]
		if k.JVM != peer.JVM {
			k = Knowledge{JVM: peer.JVM, HostID: peer.HostID, Since: p.AskedAt}
		}
		e := peer.OfHostID
		sees := e != nil && e.Address == p.Address && (e.InFlight() || e.Status == facts.StatusNormal)
		if !k.SeenAt.IsZero() && (!sees || p.AskedAt.Sub(k.contactAt()) > knownBetween) {
			k.Forgot = true
		}
		if sees {
			k.SeenAt = p.AskedAt
		}
		p.Knowledge[peer.Node] = k
	}
	if jvm.Ring == nil || jvm.StartID != p.StartID || p.AskedAt.Sub(jvm.AnsweredAt) >= answerTolerance {
		return p
	}
	for name, k := range p.Knowledge {
		if e, found := jvm.Ring.ByHostID(k.HostID); found && e.Live && !p.heard(name) {
			k.HeardAt = p.AskedAt
			p.Knowledge[name] = k
		}
	}
	return p
}

// heard says that the agent of a node has answered.
func (p Peers) heard(name string) bool {
	return slices.ContainsFunc(p.Answers, func(peer facts.Peer) bool { return peer.Node == name })
}

// streamsIn says that the JVM which runs is on its way into a ring that serves, from which it
// streams.
func (p *pass) streamsIn() bool {
	m := p.Memory.Join
	return m != nil && streams(m.Mode) && !m.over() && p.onItsWay()
}

// asksWhoKnows has the peers be asked from the moment on at which the JVM has announced itself.
func (p *pass) asksWhoKnows(o outcome) outcome {
	if !p.streamsIn() || p.JVM.StartID != p.Init.Process.StartID {
		return o
	}
	self, found := p.JVM.self()
	if !found || p.JVM.Ring.Mode != facts.ModeJoining || !self.InFlight() {
		return o
	}
	due := p.Peers.AskedAt.Add(askWhoKnows)
	if p.Peers.StartID == p.JVM.StartID && p.Peers.HostID == self.HostID && p.now.Before(due) {
		return o.until(due)
	}
	ask := p.ask(self.HostID, "while it joins: do all members know of it?")
	ask.Ask = slices.Compact(slices.Sorted(slices.Values(slices.Concat(ask.Ask, otherMembers(p.JVM.Ring)))))
	o.action = ask
	return o
}

// restartUnseenJoin ends a join of which a member does not know, or did not: it may lack what was
// written meanwhile. The next try streams everything again.
func restartUnseenJoin(p *pass) outcome {
	if !p.streamsIn() || p.Peers.StartID != p.Init.Process.StartID {
		return done
	}
	end := func(format string, args ...any) outcome {
		return act(Kill{Reason: v1alpha1.RestartStartFailed, Why: Why(fmt.Sprintf(format, args...))})
	}
	var contact time.Time
	for _, name := range slices.Sorted(maps.Keys(p.Peers.Knowledge)) {
		k := p.Peers.Knowledge[name]
		switch {
		case k.Forgot:
			return end("node %s had forgotten this node while it joined: what was written meanwhile may be missing",
				name)
		case k.SeenAt.IsZero() && p.Peers.AskedAt.Sub(k.Since) >= knownWithin:
			return end("node %s does not see this node join: what is written would not come here", name)
		}
		contact = later(contact, k.contactAt())
	}
	if !contact.IsZero() && p.Peers.AskedAt.Sub(contact) >= aloneFor {
		return end("no member was heard since %s, so none may know any more that this node joins: what is written "+
			"meanwhile may be missing", contact.UTC().Format(time.RFC3339))
	}
	return done
}
