package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/jolokia"
)

// stage of a JVM on its way up. It never falls while one runs.
type stage int

const (
	noAnswer stage = iota
	starting
	joining
	normal
	serving
	elsewhere // such as on its way down
)

func (s stage) String() string {
	return []string{"no answer", "STARTING", "JOINING", "NORMAL", "serving", "another"}[s]
}

// look is what a node answered at one point.
type look struct {
	node *nodeview.Node
	view nodeview.View
	// err says why it did not tell how it sees the ring.
	err error
}

func (l *look) stage() stage {
	switch {
	case l.err != nil:
		return noAnswer
	case l.view.Mode == nodeview.ModeStarting:
		return starting
	case l.view.Mode == nodeview.ModeJoining:
		return joining
	case l.view.Mode == nodeview.ModeNormal && l.view.NativeTransportRunning:
		return serving
	case l.view.Mode == nodeview.ModeNormal:
		return normal
	default:
		return elsewhere
	}
}

// gossip is what the node knows of an endpoint.
func (l *look) gossip(endpoint netip.AddrPort) (nodeview.GossipState, bool) {
	i := slices.IndexFunc(l.view.Gossip, func(g nodeview.GossipState) bool { return g.Endpoint == endpoint })
	if i < 0 {
		return nodeview.GossipState{}, false
	}
	return l.view.Gossip[i], true
}

// at is where a host id is.
func (l *look) at(hostID string) netip.AddrPort {
	for endpoint, id := range l.view.HostIDs {
		if id == hostID {
			return endpoint
		}
	}
	return netip.AddrPort{}
}

// tokens are those of an endpoint, as text.
func (l *look) tokens(endpoint netip.AddrPort) string {
	tokens := []int64{}
	for _, owner := range l.view.Tokens {
		if owner.Endpoint == endpoint {
			tokens = append(tokens, owner.Token)
		}
	}
	return fmt.Sprint(tokens)
}

// sees says how an endpoint stands in the lists of the node.
func (l *look) sees(endpoint netip.AddrPort) string {
	var in []string
	for _, list := range []struct {
		name      string
		endpoints []netip.AddrPort
	}{{"live", l.view.Live}, {"unreachable", l.view.Unreachable}, {"joining", l.view.Joining},
		{"leaving", l.view.Leaving}, {"moving", l.view.Moving}} {
		if slices.Contains(list.endpoints, endpoint) {
			in = append(in, list.name)
		}
	}
	return fmt.Sprint(in)
}

// How an endpoint stands.
const (
	nowhere     = "[]"
	live        = "[live]"
	unreachable = "[unreachable]"
	// none are the tokens of one that has none.
	none = "[]"
)

// member is what all views agree on of one.
type member struct {
	hostID     string
	endpoint   netip.AddrPort
	tokens     string
	generation int64
	place      nodeview.Place
}

// watch asks all nodes of a ring again and again while a scenario continues.
//
// A view is put together of attributes that are read one after the other, each between two steps of
// Cassandra's own threads. So what is wrong in one look is a doubt, and what is still wrong in the
// next look at the same node is an error.
type watch struct {
	t       *testing.T
	context context.Context //nolint:containedctx // of the one scenario
	ring    Ring
	looks   map[string]*look
	// highest stage of a node since its JVM was started.
	highest map[string]stage

	doubts, doubted, said map[string]bool
}

// begin waits until all members are up and agree.
func begin(t *testing.T, r Ring) (*watch, map[string]member) {
	t.Helper()
	w := &watch{t: t, context: t.Context(), ring: r, highest: map[string]stage{}, said: map[string]bool{}}
	return w, w.agree()
}

// look asks every node once.
func (w *watch) look() {
	w.doubted, w.doubts = w.doubts, map[string]bool{}
	w.looks = map[string]*look{}
	for _, name := range w.ring.Nodes() {
		l := &look{}
		w.looks[name] = l
		var client *jolokia.Client
		if client, l.err = w.ring.Client(w.context, name); l.err != nil {
			continue
		}
		l.node = nodeview.New(client)
		if l.view, l.err = l.node.View(w.context); l.err == nil {
			continue
		}
		if !errors.Is(l.err, jolokia.ErrUnreachable) && !errors.Is(l.err, cassandra.ErrStarting) {
			w.claim(name, false, "answers neither a view nor that there is none: %v", l.err)
		}
	}
}

// claim is a doubt if something does not hold of what a node answers now, and an error if it did
// not at the look before.
func (w *watch) claim(node string, holds bool, format string, arguments ...any) {
	w.t.Helper()
	if holds {
		return
	}
	key := node + format
	w.doubts[key] = true
	if w.doubted[key] && !w.said[key] {
		w.said[key] = true
		w.t.Errorf("node %s: "+format, append([]any{node}, arguments...)...)
	}
}

// until looks until nothing is missing, with checks after each look, and returns how long that
// took.
func (w *watch) until(what string, bound time.Duration, checks func(), missing func() string) time.Duration {
	w.t.Helper()
	bound = time.Duration(float64(bound) * w.ring.Patience())
	began := w.ring.Now()
	for {
		w.look()
		if checks != nil {
			checks()
		}
		left, took := missing(), w.ring.Now().Sub(began)
		switch {
		case left == "":
			w.t.Logf("%6.1fs  %s", took.Seconds(), what)
			return took
		case w.context.Err() != nil:
			w.t.Fatalf("await %s: %v", what, w.context.Err())
		case took > bound:
			w.t.Fatalf("await %s: not within %s: %s", what, bound, left)
		}
		w.ring.Pause(w.context)
	}
}

// begun fails the scenario if what was to happen could not be begun, and returns the time.
func (w *watch) begun(err error) time.Time {
	w.t.Helper()
	clear(w.highest)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.ring.Now()
}

// peers are the other nodes that answer, in order of their names.
func (w *watch) peers(of string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.looks)),
		func(name string) bool { return name == of || w.looks[name].err != nil })
}

// everyPeer says of which peer something does not hold yet, and how it sees an endpoint.
func (w *watch) everyPeer(of string, endpoint netip.AddrPort, holds func(l *look) bool) string {
	peers := w.peers(of)
	for _, name := range peers {
		if l := w.looks[name]; !holds(l) {
			g, _ := l.gossip(endpoint)
			return fmt.Sprintf("node %s has %s in %s, gossip %+v", name, endpoint, l.sees(endpoint), g)
		}
	}
	if len(peers) < 2 {
		return fmt.Sprintf("of the peers only %v answer", peers)
	}
	return ""
}

// agree waits until all members serve, see each other live and nobody change, and have one picture
// of the ring and one schema. It returns the members by name.
func (w *watch) agree() map[string]member {
	w.t.Helper()
	members := map[string]member{}
	w.until("all nodes agree", startTime, nil, func() string {
		clear(members)
		var first *look
		for _, name := range slices.Sorted(maps.Keys(w.looks)) {
			l := w.looks[name]
			if l.stage() != serving {
				return fmt.Sprintf("node %s is %s in mode %q: %v", name, l.stage(), l.view.Mode, l.err)
			}
			if first == nil {
				first = l
			}
			if missing := l.disagrees(first, len(w.looks)); missing != "" {
				return fmt.Sprintf("node %s: %s", name, missing)
			}
			own := l.at(l.view.HostID)
			g, _ := l.gossip(own)
			members[name] = member{l.view.HostID, own, l.tokens(own), g.Generation,
				nodeview.Place{Datacenter: g.Datacenter, Rack: g.Rack}}
		}
		return ""
	})
	return members
}

// disagrees says what of a view is not as in another one, or not at rest.
func (l *look) disagrees(with *look, nodes int) string {
	switch {
	case len(l.view.HostIDs) != nodes:
		return fmt.Sprintf("it has %d members of %d: %v", len(l.view.HostIDs), nodes, l.view.HostIDs)
	case !maps.Equal(l.view.HostIDs, with.view.HostIDs):
		return fmt.Sprintf("its members are %v, those of another %v", l.view.HostIDs, with.view.HostIDs)
	case !slices.Equal(l.view.Tokens, with.view.Tokens):
		return "it has other owners of tokens than another"
	case l.view.SchemaVersion != with.view.SchemaVersion:
		return fmt.Sprintf("its schema is %s, that of another %s", l.view.SchemaVersion, with.view.SchemaVersion)
	}
	for endpoint, hostID := range l.view.HostIDs {
		g, _ := l.gossip(endpoint)
		if l.sees(endpoint) != live || !g.Alive || g.Status != nodeview.StatusNormal || g.HostID != hostID ||
			g.SchemaVersion != l.view.SchemaVersion || !g.NativeTransportReady {
			return fmt.Sprintf("member %s is in %s, gossip %+v; the schema is %s", endpoint, l.sees(endpoint), g,
				l.view.SchemaVersion)
		}
	}
	return ""
}

// keepsMember claims of a node that it has a member as it was, wherever it is now.
func (w *watch) keepsMember(name string, of member) {
	w.t.Helper()
	l := w.looks[name]
	w.claim(name, l.view.HostIDs[of.endpoint] == of.hostID, "the member %s at %s is %v in its map", of.hostID,
		of.endpoint, l.view.HostIDs)
	w.claim(name, l.tokens(of.endpoint) == of.tokens, "the tokens of %s are %s, and were %s", of.endpoint,
		l.tokens(of.endpoint), of.tokens)
}

// rises claims that the JVM of a node comes up in order, and returns its stage.
func (w *watch) rises(name string) stage {
	w.t.Helper()
	is := w.looks[name].stage()
	if is == noAnswer && w.highest[name] > noAnswer {
		return is // one question without an answer is nothing; that it starts over is seen by the next answer
	}
	w.claim(name, is >= w.highest[name], "it is %s after it was %s", is, w.highest[name])
	w.highest[name] = max(is, w.highest[name])
	return is
}
