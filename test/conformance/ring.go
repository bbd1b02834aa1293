package conformance

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/jolokia"
)

// ringChecks hold the node's view of itself and of the ring to be of one piece.
var ringChecks = []Check{
	{Name: "a NORMAL node has joined and gossips", Run: func(t *testing.T, s *Subject) {
		v := s.View
		if !v.Joined || !v.Initialized || v.Starting || v.Draining || v.Drained || !v.GossipRunning {
			t.Errorf("state is %+v", v.State)
		}
		if v.ClusterName == "" || v.SchemaVersion == "" || v.HostID == "" {
			t.Errorf("cluster name %q, schema version %q, host id %q; none may be empty", v.ClusterName,
				v.SchemaVersion, v.HostID)
		}
	}},
	{Name: "the bootstrap state is there since 5.0", Run: func(t *testing.T, s *Subject) {
		old := strings.HasPrefix(s.View.ReleaseVersion, "4.")
		if old != (s.View.Bootstrap == nil) {
			t.Fatalf("release %s, bootstrap state %+v", s.View.ReleaseVersion, s.View.Bootstrap)
		}
		if !old && *s.View.Bootstrap != (nodeview.Bootstrap{State: "COMPLETED"}) {
			t.Errorf("bootstrap state of a NORMAL node is %+v", *s.View.Bootstrap)
		}
	}},
	{Name: "the state alone is the state of the view", Run: func(t *testing.T, s *Subject) {
		state, err := s.Node.State(s.Context)
		if err != nil {
			t.Fatal(err)
		}
		if state.Mode != s.View.Mode || state.HostID != s.View.HostID || state.ReleaseVersion != s.View.ReleaseVersion {
			t.Errorf("state %+v, view %+v", state, s.View.State)
		}
	}},
	{Name: "the node is one member with its host id", Run: func(t *testing.T, s *Subject) {
		owners := map[string][]netip.AddrPort{}
		for endpoint, hostID := range s.View.HostIDs {
			owners[hostID] = append(owners[hostID], endpoint)
		}
		for hostID, endpoints := range owners {
			if len(endpoints) != 1 {
				t.Errorf("host id %s belongs to %v", hostID, endpoints)
			}
		}
		if len(owners[s.View.HostID]) != 1 {
			t.Errorf("own host id %s is not among the members %v", s.View.HostID, s.View.HostIDs)
		}
	}},
	{Name: "every token belongs to a member, and every member has tokens", Run: func(t *testing.T, s *Subject) {
		withTokens := map[netip.AddrPort]bool{}
		for i, owner := range s.View.Tokens {
			withTokens[owner.Endpoint] = true
			if i > 0 && s.View.Tokens[i-1].Token >= owner.Token {
				t.Errorf("tokens %d and %d are not in order", s.View.Tokens[i-1].Token, owner.Token)
			}
			if _, member := s.View.HostIDs[owner.Endpoint]; !member {
				t.Errorf("token %d belongs to %s, which is no member", owner.Token, owner.Endpoint)
			}
		}
		for endpoint := range s.View.HostIDs {
			if !withTokens[endpoint] {
				t.Errorf("member %s has no token", endpoint)
			}
		}
	}},
	{Name: "the node sees itself live, and nobody both live and unreachable", Run: func(t *testing.T, s *Subject) {
		if !slices.Contains(s.View.Live, s.self(t)) {
			t.Errorf("%s is not among the live nodes %v", s.self(t), s.View.Live)
		}
		for _, endpoint := range s.View.Live {
			if slices.Contains(s.View.Unreachable, endpoint) {
				t.Errorf("%s is live and unreachable", endpoint)
			}
		}
	}},
	{Name: "every member is live or unreachable", Run: func(t *testing.T, s *Subject) {
		for endpoint := range s.View.HostIDs {
			if !slices.Contains(s.View.Live, endpoint) && !slices.Contains(s.View.Unreachable, endpoint) {
				t.Errorf("member %s is neither", endpoint)
			}
		}
	}},
	{Name: "the snitch says of every member where gossip has it", Run: func(t *testing.T, s *Subject) {
		for endpoint := range s.View.HostIDs {
			i := slices.IndexFunc(s.View.Gossip, func(g nodeview.GossipState) bool { return g.Endpoint == endpoint })
			if i < 0 {
				t.Errorf("member %s is not in gossip", endpoint)
				continue
			}
			for operation, want := range map[string]string{"getDatacenter": s.View.Gossip[i].Datacenter,
				"getRack": s.View.Gossip[i].Rack} {
				var got string
				answer := s.do(t, jolokia.Exec("org.apache.cassandra.db:type=EndpointSnitchInfo",
					operation+"(java.lang.String)", endpoint.Addr().String()))[0]
				if err := answer.Decode(&got); err != nil || got != want || got == "" {
					t.Errorf("%s of %s is %q, error %v; want %q", operation, endpoint, got, err, want)
				}
			}
		}
	}},
	{Name: "nothing joins, leaves or moves", Run: func(t *testing.T, s *Subject) {
		if moving := slices.Concat(s.View.Joining, s.View.Leaving, s.View.Moving); len(moving) != 0 {
			t.Errorf("%v do", moving)
		}
	}},
	{Name: "gossip knows every member by the same host id", Run: func(t *testing.T, s *Subject) {
		known := map[netip.AddrPort]nodeview.GossipState{}
		for _, state := range s.View.Gossip {
			known[state.Endpoint] = state
		}
		for endpoint, hostID := range s.View.HostIDs {
			state, found := known[endpoint]
			if !found || state.HostID != hostID || state.Datacenter == "" || state.Rack == "" || !state.HasTokens {
				t.Errorf("gossip of member %s (%s) is %+v", endpoint, hostID, state)
			}
			if live := slices.Contains(s.View.Live, endpoint); found && state.Alive != live {
				t.Errorf("member %s: alive is %v in gossip and %v in the list of live nodes", endpoint, state.Alive,
					live)
			}
		}
	}},
	{Name: "the node gossips what it says of itself", Run: func(t *testing.T, s *Subject) {
		own := s.gossipOfSelf(t, s.View)
		if own.Status != nodeview.StatusNormal || !own.Alive || own.Generation <= 0 || own.Heartbeat <= 0 {
			t.Errorf("own gossip is %+v", own)
		}
		if own.ReleaseVersion != s.View.ReleaseVersion || own.SchemaVersion != s.View.SchemaVersion {
			t.Errorf("own gossip has release %s and schema %s; the node says %s and %s",
				own.ReleaseVersion, own.SchemaVersion, s.View.ReleaseVersion, s.View.SchemaVersion)
		}
		if s.View.NativeTransportRunning && !own.NativeTransportReady {
			t.Error("CQL is open, and gossip says that it is not ready")
		}
		if own.InternalAddress != own.Endpoint || !own.NativeAddress.IsValid() {
			t.Errorf("addresses are %s, %s and %s", own.Endpoint, own.InternalAddress, own.NativeAddress)
		}
	}},
	{Name: "the token in a member's gossiped status is one of its own", Run: func(t *testing.T, s *Subject) {
		for _, state := range s.View.Gossip {
			if state.Status != nodeview.StatusNormal {
				continue
			}
			if len(state.StatusArguments) != 1 || !slices.ContainsFunc(s.View.Tokens,
				func(o nodeview.TokenOwner) bool {
					return o.Endpoint == state.Endpoint && strconv.FormatInt(o.Token, 10) == state.StatusArguments[0]
				}) {
				t.Errorf("status of %s has the arguments %v", state.Endpoint, state.StatusArguments)
			}
		}
	}},
	{Name: "the heartbeat grows and the generation stays", Run: func(t *testing.T, s *Subject) {
		first := s.gossipOfSelf(t, s.View)
		s.await(t, "a higher heartbeat", func() (bool, error) {
			now := s.gossipOfSelf(t, s.view(t))
			if now.Generation != first.Generation || now.Heartbeat < first.Heartbeat {
				t.Fatalf("generation and heartbeat went from %d, %d to %d, %d", first.Generation, first.Heartbeat,
					now.Generation, now.Heartbeat)
			}
			return now.Heartbeat > first.Heartbeat, nil
		})
	}},
	{Name: "the node is not among its seeds, and to reload them changes nothing", Run: func(t *testing.T, s *Subject) {
		if slices.Contains(s.View.Seeds, s.self(t)) {
			t.Errorf("%s is among its own seeds %v", s.self(t), s.View.Seeds)
		}
		reloaded, err := s.Node.ReloadSeeds(s.Context)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Node.ReloadSeeds(s.Context)
		if err != nil || !slices.Equal(reloaded, again) {
			t.Errorf("seeds are %v after one reload and %v after another, error %v", reloaded, again, err)
		}
	}},
}

// self is the endpoint of the node itself.
func (s *Subject) self(t *testing.T) netip.AddrPort {
	t.Helper()
	for endpoint, hostID := range s.View.HostIDs {
		if hostID == s.View.HostID {
			return endpoint
		}
	}
	t.Fatalf("own host id %s is not among the members %v", s.View.HostID, s.View.HostIDs)
	return netip.AddrPort{}
}

// gossipOfSelf is what a view of the node says about the node by gossip.
func (s *Subject) gossipOfSelf(t *testing.T, view nodeview.View) nodeview.GossipState {
	t.Helper()
	self := s.self(t)
	for _, state := range view.Gossip {
		if state.Endpoint == self {
			return state
		}
	}
	t.Fatalf("gossip does not know the node itself, %s", self)
	return nodeview.GossipState{}
}
