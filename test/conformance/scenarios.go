package conformance

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/test/nodeview"
)

// MemberDies kills the JVM of a node, changes the schema, and starts it again at the same address.
// Its peers keep it as a NORMAL member all the while, see it down when the failure detector says
// so, and up again as a later generation of the same member.
func MemberDies(t *testing.T, r Ring, name string) {
	t.Helper()
	w, before := begin(t, r)
	peer := w.peers(name)[0]
	of, old := before[name], w.looks[peer].view.SchemaVersion

	w.dies(name, of, old)
	heartbeats := map[string]int64{}
	for _, p := range w.peers(name) {
		g, _ := w.looks[p].gossip(of.endpoint)
		heartbeats[p] = g.Heartbeat
	}
	w.begun(r.ChangeSchema(w.context, peer))
	w.until("its peers have the new schema", news, func() { w.staysDead(name, of, old) }, func() string {
		now := w.looks[peer].view.SchemaVersion
		return w.everyPeer(name, of.endpoint, func(l *look) bool { return now != old && l.view.SchemaVersion == now })
	})
	for _, p := range w.peers(name) {
		if g, _ := w.looks[p].gossip(of.endpoint); g.Heartbeat != heartbeats[p] {
			t.Errorf("node %s has the heartbeat %d of the dead member, and had %d", p, g.Heartbeat, heartbeats[p])
		}
	}
	versions, err := w.looks[peer].node.SchemaVersions(w.context)
	if err != nil || !versions.Agree() || !slices.Equal(versions.Unreachable, []netip.AddrPort{of.endpoint}) {
		t.Errorf("the versions of the schema are %+v, error %v; want one, and %s unreachable", versions, err,
			of.endpoint)
	}
	w.comesBack(name, before, old, w.looks[peer].view.SchemaVersion)
	w.sameMembers(before, w.agree())
}

// dies kills a member and waits until its peers see it down.
func (w *watch) dies(name string, of member, schema string) {
	w.t.Helper()
	killed := w.begun(w.ring.Kill(w.context, name))
	down := func(l *look) bool {
		g, _ := l.gossip(of.endpoint)
		return l.sees(of.endpoint) == unreachable && !g.Alive
	}
	var noticed time.Duration
	w.until("every peer sees it down", convictsBefore, func() {
		w.staysDead(name, of, schema)
		if noticed == 0 && slices.ContainsFunc(w.peers(name), func(p string) bool { return down(w.looks[p]) }) {
			noticed = w.ring.Now().Sub(killed)
		}
	}, func() string { return w.everyPeer(name, of.endpoint, down) })
	if noticed < convictsAfter {
		w.t.Errorf("a peer saw it down after %s, before the failure detector can say so", noticed)
	}
}

// staysDead claims what peers have of a member that died without a word: all that it was, and its
// last words.
func (w *watch) staysDead(name string, of member, schema string) {
	w.t.Helper()
	w.claim(name, w.looks[name].err != nil, "it answers after its death")
	for _, p := range w.peers(name) {
		l := w.looks[p]
		g, _ := l.gossip(of.endpoint)
		w.keepsMember(p, of)
		w.claim(p, g.Status == nodeview.StatusNormal && g.HostID == of.hostID && g.Generation == of.generation &&
			g.HasTokens && g.NativeTransportReady && g.SchemaVersion == schema,
			"of one that died without a word gossip has %+v", g)
		w.claim(p, l.sees(of.endpoint) == live || l.sees(of.endpoint) == unreachable, "the dead member is in %s",
			l.sees(of.endpoint))
	}
}

// comesBack starts a dead member at its address, and waits until it serves and every peer sees it
// up.
func (w *watch) comesBack(name string, before map[string]member, had, missed string) {
	w.t.Helper()
	of := before[name]
	w.begun(w.ring.Start(w.context, name))
	var isNormal time.Time
	w.until("it serves", startTime, func() {
		if w.startsAgain(name, before) >= normal && isNormal.IsZero() {
			isNormal = w.ring.Now()
		}
		if l := w.looks[name]; l.stage() != noAnswer {
			w.claim(name, l.view.SchemaVersion == had || l.view.SchemaVersion == missed,
				"its schema is %s in mode %s: neither %s, which it had, nor %s, which it missed",
				l.view.SchemaVersion, l.view.Mode, had, missed)
		}
		for _, p := range w.peers(name) {
			g, known := w.looks[p].gossip(of.endpoint)
			w.keepsMember(p, of)
			w.claim(p, known && g.HostID == of.hostID &&
				(g.Status == nodeview.StatusNormal || g.Generation > of.generation && g.Status == ""),
				"of a member that starts again gossip has %+v", g)
			w.claim(p, g.Generation >= of.generation, "its generation is %d, and was %d", g.Generation, of.generation)
		}
	}, func() string { return w.isServing(name) })
	up := w.until("every peer sees it up", news, nil, func() string {
		return w.everyPeer(name, of.endpoint, func(l *look) bool {
			g, _ := l.gossip(of.endpoint)
			return l.sees(of.endpoint) == live && g.Alive && g.Status == nodeview.StatusNormal &&
				g.Generation > of.generation
		})
	})
	w.t.Logf("peers saw it up at most %s after it was NORMAL", w.ring.Now().Sub(isNormal)-up)
}

// startsAgain claims what a member says of itself from its start to its service, and returns its
// stage: it never joins, and knows from its disk who is in the ring.
func (w *watch) startsAgain(name string, before map[string]member) stage {
	w.t.Helper()
	l, is := w.looks[name], w.rises(name)
	if is == noAnswer {
		return is
	}
	v := &l.view
	w.claim(name, is != joining, "a member that starts joins")
	w.claim(name, v.HostID == before[name].hostID || is == starting && v.HostID == "",
		"its host id is %q in mode %s, and was %s", v.HostID, v.Mode, before[name].hostID)
	w.claim(name, v.Bootstrap == nil || *v.Bootstrap == nodeview.Bootstrap{State: "COMPLETED"},
		"the bootstrap of a member is %+v in mode %s", v.Bootstrap, v.Mode)
	w.saysWhereItIs(name, is)
	w.claim(name, v.Joined, "a member that starts has not joined in mode %s", v.Mode)
	for other, m := range before {
		w.claim(name, v.HostIDs[m.endpoint] == m.hostID || other == name && is == starting,
			"in mode %s it has the members %v, without %s at %s", v.Mode, v.HostIDs, m.hostID, m.endpoint)
		w.claim(name, l.tokens(m.endpoint) == m.tokens, "in mode %s the tokens of %s are %s, and were %s", v.Mode,
			m.endpoint, l.tokens(m.endpoint), m.tokens)
		if other == name {
			continue
		}
		g, known := l.gossip(m.endpoint)
		w.claim(name, known && (g.Generation == m.generation ||
			g.Generation == 0 && !g.Alive && l.sees(m.endpoint) == unreachable),
			"in mode %s a member is in %s, gossip %+v: neither heard of nor known from disk alone", v.Mode,
			l.sees(m.endpoint), g)
		place := nodeview.Place{Datacenter: g.Datacenter, Rack: g.Rack}
		if place == (nodeview.Place{}) {
			place = v.Remembered[m.endpoint]
		}
		w.claim(name, place == m.place, "in mode %s a member is in %+v, and was in %+v", v.Mode, place, m.place)
	}
	return is
}

// saysWhereItIs claims that the flags of a node on its way up are those of its mode.
func (w *watch) saysWhereItIs(name string, is stage) {
	w.t.Helper()
	v := &w.looks[name].view
	w.claim(name, is != elsewhere, "on its way up it is in mode %s", v.Mode)
	w.claim(name, v.Initialized == (is >= normal), "initialized is %v in mode %s", v.Initialized, v.Mode)
	w.claim(name, v.Starting == (is == starting), "starting is %v in mode %s", v.Starting, v.Mode)
	w.claim(name, is >= normal || !v.NativeTransportRunning, "CQL is open in mode %s", v.Mode)
	w.claim(name, is == starting || v.GossipRunning, "gossip does not run in mode %s", v.Mode)
	w.claim(name, !v.Draining && !v.Drained, "on its way up it is drained: %+v", v.State)
}

// MemberMoves stops a node in order and has it come back at another address. Its peers hear of the
// stop at once, keep it as a member, and then have it at the new address and nowhere at the old
// one, but in the memory of gossip.
func MemberMoves(t *testing.T, r Ring, name string) {
	t.Helper()
	memberMoves(t, r, name)
}

// MemberMovesForGood is MemberMoves, and waits until gossip has forgotten the old address, too.
func MemberMovesForGood(t *testing.T, r Ring, name string) {
	t.Helper()
	w, of, moved := memberMoves(t, r, name)
	w.until("the old address is forgotten", forgottenBefore, func() {
		for _, p := range w.peers(name) {
			_, known := w.looks[p].gossip(of.endpoint)
			w.claim(p, known || r.Now().Sub(moved) > forgottenAfter,
				"it has forgotten the old address %s after the move", r.Now().Sub(moved))
		}
	}, func() string {
		return w.everyPeer(name, of.endpoint, func(l *look) bool {
			_, known := l.gossip(of.endpoint)
			return !known
		})
	})
	t.Logf("the old address was forgotten %s after the move", r.Now().Sub(moved))
	w.agree()
}

func memberMoves(t *testing.T, r Ring, name string) (w *watch, of member, moved time.Time) {
	t.Helper()
	w, before := begin(t, r)
	of = before[name]

	w.begun(r.Move(w.context, name))
	w.until("every peer has heard of its stop", stopTime, func() {
		for _, p := range w.peers(name) {
			w.keepsMember(p, of)
		}
	}, func() string {
		return w.everyPeer(name, of.endpoint, func(l *look) bool {
			g, _ := l.gossip(of.endpoint)
			return g.Status == nodeview.StatusShutdown
		})
	})
	w.until("it serves at another address, and every peer sees it there", startTime, func() {
		if w.looks[name].view.HostIDs[of.endpoint] == "" {
			w.rises(name) // before that it is the old JVM that answers
		}
		for _, p := range w.peers(name) {
			w.moves(p, of)
			if moved.IsZero() && w.looks[p].at(of.hostID) != of.endpoint {
				moved = r.Now()
			}
		}
	}, func() string {
		if not := w.isServing(name); not != "" {
			return not
		}
		return w.everyPeer(name, of.endpoint, func(l *look) bool {
			return l.at(of.hostID) != of.endpoint && l.sees(l.at(of.hostID)) == live
		})
	})
	after := w.agree()
	w.sameMembers(before, after)
	if now := after[name]; now.endpoint == of.endpoint || now.generation <= of.generation {
		t.Errorf("it was at %s in generation %d, and is at %s in %d", of.endpoint, of.generation, now.endpoint,
			now.generation)
	}
	for _, p := range w.peers(name) {
		l := w.looks[p]
		if g, known := l.gossip(of.endpoint); !known || g.Alive || l.sees(of.endpoint) != nowhere ||
			l.tokens(of.endpoint) != none {
			t.Errorf("node %s has the old address in %s, with the tokens %s and the gossip %+v", p, l.sees(of.endpoint),
				l.tokens(of.endpoint), g)
		}
	}
	return w, of, moved
}

// moves claims of a peer that it has a member that was stopped in order at its old address, without
// life, or at another one.
func (w *watch) moves(peer string, of member) {
	w.t.Helper()
	l := w.looks[peer]
	at := l.at(of.hostID)
	w.claim(peer, at.IsValid(), "the member that moves is nowhere in %v", l.view.HostIDs)
	w.claim(peer, l.tokens(at) == of.tokens, "the tokens of the member that moves, at %s, are %s, and were %s", at,
		l.tokens(at), of.tokens)
	if at != of.endpoint {
		w.claim(peer, l.sees(of.endpoint) == nowhere, "the old address is in %s", l.sees(of.endpoint))
		return
	}
	g, _ := l.gossip(of.endpoint)
	w.claim(peer, l.sees(of.endpoint) == unreachable && !g.Alive,
		"a member that was stopped in order is in %s, alive %v", l.sees(of.endpoint), g.Alive)
	w.claim(peer, g.Status == nodeview.StatusShutdown && g.Heartbeat == lastHeartbeat &&
		g.Generation == of.generation && !g.NativeTransportReady && g.HasTokens,
		"of a member that was stopped in order gossip has %+v", g)
}

// lastHeartbeat is the last word of a node that was stopped in order.
const lastHeartbeat = 1<<31 - 1

// joinStage is how far a node is on its way into the ring, in the eyes of a peer. It never falls.
type joinStage int

const (
	unknown joinStage = iota
	heardOf
	announced
	joined
)

// NodeJoins adds a node. It owns nothing and serves nobody until it is NORMAL; before that its
// peers know it as one that joins, for the ring delay or longer, and have ranges on their way to
// it; then all agree.
func NodeJoins(t *testing.T, r Ring) {
	t.Helper()
	w, before := begin(t, r)
	keyspaces := w.keyspaces()
	name, err := r.Join(w.context)
	w.begun(err)

	hostID := ""
	seen := map[string]joinStage{}
	pending := map[string]bool{}
	var since time.Time
	var waited time.Duration
	w.until("it serves, and every peer has it as a member", growTime, func() {
		if id := w.joins(name, hostID); hostID == "" {
			hostID = id
		}
		for _, p := range w.peers(name) {
			for _, m := range before {
				w.keepsMember(p, m)
			}
			is := w.seesJoin(p, hostID)
			w.claim(p, is >= seen[p], "of the join it has seen stage %d, and now %d", seen[p], is)
			seen[p] = max(is, seen[p])
			switch {
			case is == announced && since.IsZero():
				since = r.Now()
			case is == joined && waited == 0:
				waited = r.Now().Sub(since)
			}
			if is == announced && !pending[p] {
				pending[p] = w.hasPending(p, keyspaces, w.looks[p].at(hostID))
			}
		}
	}, func() string {
		if not := w.isServing(name); not != "" {
			return not
		}
		return w.everyPeer(name, w.looks[name].at(hostID),
			func(l *look) bool { return l.at(hostID).IsValid() && l.sees(l.at(hostID)) == live })
	})
	t.Logf("peers knew of the join for %s", waited)
	if waited < ringDelay-2*gossipRound {
		t.Errorf("it joined %s after its peers knew of it, want the ring delay, %s", waited, ringDelay)
	}
	for _, p := range w.peers(name) {
		if !pending[p] {
			t.Errorf("node %s never had a range on its way to the node that joined", p)
		}
	}
	after := w.agree()
	joiner := after[name]
	delete(after, name)
	if !maps.Equal(before, after) {
		t.Errorf("the members were %+v, and are %+v", before, after)
	}
	for _, m := range before {
		if len(strings.Fields(m.tokens)) != len(strings.Fields(joiner.tokens)) {
			t.Errorf("it has the tokens %s, and a member %s", joiner.tokens, m.tokens)
		}
	}
	w.until("nothing is on its way any more", news, nil, func() string { return w.busy(keyspaces) })
}

// joins claims what a node says of itself that joins, and returns its host id.
func (w *watch) joins(name, hostID string) string {
	w.t.Helper()
	is := w.rises(name)
	if is == noAnswer {
		return ""
	}
	v := &w.looks[name].view
	w.claim(name, hostID == "" || v.HostID == hostID, "its host id is %q in mode %s, and was %s", v.HostID, v.Mode,
		hostID)
	w.saysWhereItIs(name, is)
	w.claim(name, v.Joined == (is >= normal), "joined is %v in mode %s", v.Joined, v.Mode)
	if v.Bootstrap != nil {
		want := map[stage]string{starting: "NEEDS_BOOTSTRAP", joining: "IN_PROGRESS", normal: "COMPLETED",
			serving: "COMPLETED"}[is]
		w.claim(name, *v.Bootstrap == nodeview.Bootstrap{State: want}, "its bootstrap is %+v in mode %s, want %s",
			*v.Bootstrap, v.Mode, want)
	}
	return v.HostID
}

// seesJoin claims that what a peer has of a node that joins is of one piece, and says how far that
// is.
func (w *watch) seesJoin(peer, hostID string) joinStage {
	w.t.Helper()
	l := w.looks[peer]
	i := slices.IndexFunc(l.view.Gossip, func(g nodeview.GossipState) bool {
		return hostID != "" && g.HostID == hostID
	})
	if i < 0 {
		w.claim(peer, hostID == "" || !l.at(hostID).IsValid(), "it has a host id of which it has not heard: %v",
			l.view.HostIDs)
		return unknown
	}
	g := l.view.Gossip[i]
	sees, tokens := l.sees(g.Endpoint), l.tokens(g.Endpoint)
	at := l.at(hostID)
	switch g.Status {
	case "":
		w.claim(peer, sees == live && tokens == none && !at.IsValid() && !g.HasTokens,
			"a node that has said nothing of its place is in %s, at %v, with tokens %s, gossip %+v", sees, at, tokens,
			g)
		w.claim(peer, !g.NativeTransportReady, "a node that has said nothing of its place serves clients")
		return heardOf
	case nodeview.StatusBootstrapping:
		w.claim(peer, sees == "[live joining]" && tokens != none && at == g.Endpoint && g.HasTokens,
			"a node that joins is in %s, at %v, with tokens %s, gossip %+v", sees, at, tokens, g)
		w.claim(peer, len(g.StatusArguments) == 1 && strings.Contains(tokens, g.StatusArguments[0]),
			"a node that joins says %v and has the tokens %s", g.StatusArguments, tokens)
		w.claim(peer, !g.NativeTransportReady, "a node that joins serves clients")
		return announced
	case nodeview.StatusNormal:
		w.claim(peer, sees == live && tokens != none && at == g.Endpoint && g.HasTokens,
			"a node that has joined is in %s, at %v, with tokens %s, gossip %+v", sees, at, tokens, g)
		return joined
	default:
		w.claim(peer, false, "a node that joins says %s of itself", g.Status)
		return joined
	}
}

// hasPending says whether a peer has ranges on their way, which must be to one node alone.
func (w *watch) hasPending(peer string, keyspaces []string, to netip.AddrPort) bool {
	w.t.Helper()
	pending, err := w.looks[peer].node.PendingRanges(w.context, keyspaces)
	w.claim(peer, err == nil, "its pending ranges cannot be read: %v", err)
	for _, k := range pending {
		w.claim(peer, slices.Equal(k.Endpoints, []netip.AddrPort{to}),
			"ranges of keyspace %s are on their way to %v, and %s joins", k.Keyspace, k.Endpoints, to)
	}
	return len(pending) > 0
}

// NodeLeaves has a node of four or more leave. Its peers list it as leaving for the ring delay or
// longer and keep it as a member; then it owns nothing and is remembered as one that has left, in
// neither list. After another ring delay it neither gossips nor serves, and when its quarantine is
// over all count it as unreachable.
func NodeLeaves(t *testing.T, r Ring, name string) {
	t.Helper()
	w, before := begin(t, r)
	keyspaces := w.keyspaces()
	of, leaver := before[name], w.looks[name].node
	ended, err := r.Leave(w.context, name)
	began := w.begun(err)

	pending := false
	w.until("every peer has it as one that has left", ringDelay+startTime, func() {
		for _, p := range w.peers(name) {
			pending = w.seesLeave(p, of, began, keyspaces) || pending
		}
	}, func() string {
		return w.everyPeer(name, of.endpoint, func(l *look) bool {
			g, _ := l.gossip(of.endpoint)
			return g.Status == nodeview.StatusLeft
		})
	})
	left := r.Now()
	if took := left.Sub(began); !pending || took < ringDelay-2*gossipRound {
		t.Errorf("it had left after %s, want the ring delay, %s, and ranges were on their way: %v", took, ringDelay,
			pending)
	}
	heartbeats := map[string]int64{}
	for _, p := range w.peers(name) {
		g, _ := w.looks[p].gossip(of.endpoint)
		heartbeats[p] = g.Heartbeat
	}
	hasLeft := func() {
		for _, p := range w.peers(name) {
			w.hasLeft(p, of)
			g, _ := w.looks[p].gossip(of.endpoint)
			w.claim(p, g.Heartbeat == heartbeats[p] || r.Now().Sub(left) > forgottenAfter,
				"the heartbeat of one that has left goes from %d to %d in its quarantine", heartbeats[p], g.Heartbeat)
		}
	}
	w.until("the leave has ended", ringDelay+startTime, hasLeft, func() string {
		over, err := ended()
		if err != nil {
			t.Fatalf("leave: %v", err)
		}
		if !over {
			return "it continues"
		}
		return ""
	})
	if took := r.Now().Sub(left); took < ringDelay-2*gossipRound-news {
		t.Errorf("it ended %s after it had left, want the ring delay, %s", took, ringDelay)
	}
	w.isDecommissioned(leaver, of)
	unreachableAt := map[string]time.Duration{}
	w.until("every peer has it as unreachable", 2*ringDelay+convictsBefore, func() {
		hasLeft()
		for _, p := range w.peers(name) {
			if _, known := unreachableAt[p]; !known && w.looks[p].sees(of.endpoint) == unreachable {
				unreachableAt[p] = r.Now().Sub(left)
			}
		}
	}, func() string {
		return w.everyPeer(name, of.endpoint, func(l *look) bool {
			g, _ := l.gossip(of.endpoint)
			return l.sees(of.endpoint) == unreachable && !g.Alive
		})
	})
	t.Logf("after it had left it was unreachable to %v", unreachableAt)
	delete(before, name)
	if after := w.agree(); !maps.Equal(after, before) {
		t.Errorf("the members are %+v, and were %+v", after, before)
	}
}

// seesLeave claims what a peer has of a member that leaves, and says whether ranges are on their
// way because of it.
func (w *watch) seesLeave(peer string, of member, began time.Time, keyspaces []string) bool {
	w.t.Helper()
	l := w.looks[peer]
	g, _ := l.gossip(of.endpoint)
	if g.Status == nodeview.StatusLeft {
		w.hasLeft(peer, of)
		return false
	}
	w.keepsMember(peer, of)
	w.claim(peer, g.Status == nodeview.StatusLeaving && l.sees(of.endpoint) == "[live leaving]" ||
		w.ring.Now().Sub(began) < news, "a node that leaves is in %s, gossip %+v", l.sees(of.endpoint), g)
	if g.Status != nodeview.StatusLeaving {
		return false
	}
	pending, err := l.node.PendingRanges(w.context, keyspaces)
	w.claim(peer, err == nil, "its pending ranges cannot be read: %v", err)
	return len(pending) > 0
}

// hasLeft claims what a peer has of a member that has left: no member, and a word that expires.
func (w *watch) hasLeft(peer string, of member) {
	w.t.Helper()
	l := w.looks[peer]
	g, known := l.gossip(of.endpoint)
	w.claim(peer, l.view.HostIDs[of.endpoint] == "" && l.tokens(of.endpoint) == none,
		"one that has left is %v in its map, with the tokens %s", l.view.HostIDs, l.tokens(of.endpoint))
	// It counts as unreachable when nothing is heard of it any more.
	w.claim(peer, known && (l.sees(of.endpoint) == unreachable || l.sees(of.endpoint) == nowhere),
		"one that has left is in %s, gossip %+v", l.sees(of.endpoint), g)
	left := g.StatusExpires.Sub(w.ring.Now())
	w.claim(peer, left > leftFor-startTime && left <= leftFor+gossipRound,
		"what it has of one that has left expires in %s", left)
}

// isDecommissioned fails if a node that has left does not say so.
func (w *watch) isDecommissioned(node *nodeview.Node, of member) {
	w.t.Helper()
	state, err := node.State(w.context)
	if err != nil || state.Mode != nodeview.ModeDecommissioned || state.Joined || state.GossipRunning ||
		state.NativeTransportRunning || state.HostID != of.hostID {
		w.t.Errorf("state of one that has left is %+v, error %v", state, err)
	}
	if state.Bootstrap != nil && *state.Bootstrap != (nodeview.Bootstrap{State: "DECOMMISSIONED"}) {
		w.t.Errorf("the bootstrap of one that has left is %+v", *state.Bootstrap)
	}
}

// keyspaces are those that the ring replicates.
func (w *watch) keyspaces() []string {
	w.t.Helper()
	schema, err := w.looks[w.peers("")[0]].node.Schema(w.context)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, k := range schema.Keyspaces {
		names = append(names, k.Name)
	}
	return names
}

// busy says which node has ranges on their way, streams, or does not know one schema for all.
func (w *watch) busy(keyspaces []string) string {
	for _, name := range w.peers("") {
		node := w.looks[name].node
		if pending, err := node.PendingRanges(w.context, keyspaces); err != nil || len(pending) > 0 {
			return fmt.Sprintf("node %s has the pending ranges %+v, error %v", name, pending, err)
		}
		if streams, err := node.Streams(w.context); err != nil || streams != (facts.Transfer{}) {
			return fmt.Sprintf("node %s has the streams %+v, error %v", name, streams, err)
		}
		if versions, err := node.SchemaVersions(w.context); err != nil || !versions.Agree() ||
			len(versions.Unreachable) > 0 {
			return fmt.Sprintf("node %s finds the versions of the schema %+v, error %v", name, versions, err)
		}
	}
	return ""
}

// isServing says why a node does not serve.
func (w *watch) isServing(name string) string {
	if l := w.looks[name]; l.stage() != serving {
		return fmt.Sprintf("node %s: %s in mode %q: %v", name, l.stage(), l.view.Mode, l.err)
	}
	return ""
}

// sameMembers fails if the members are not those before.
func (w *watch) sameMembers(before, now map[string]member) {
	w.t.Helper()
	if len(now) != len(before) {
		w.t.Errorf("there are %d members, and were %d", len(now), len(before))
	}
	for name, was := range before {
		if is := now[name]; is.hostID != was.hostID || is.tokens != was.tokens {
			w.t.Errorf("node %s was %+v and is %+v", name, was, is)
		}
	}
}
