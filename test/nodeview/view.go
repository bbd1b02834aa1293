package nodeview

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"helenus.io/helenus/internal/jolokia"
)

// Mode is what a node says of itself: its place between start and stop. Unknown modes are kept as
// they are.
type Mode string

// Modes of Cassandra 4.1 and 5.0; the FAILED ones came with 5.0.
const (
	ModeStarting           Mode = "STARTING"
	ModeJoining            Mode = "JOINING"
	ModeJoiningFailed      Mode = "JOINING_FAILED"
	ModeNormal             Mode = "NORMAL"
	ModeLeaving            Mode = "LEAVING"
	ModeDecommissioned     Mode = "DECOMMISSIONED"
	ModeDecommissionFailed Mode = "DECOMMISSION_FAILED"
	ModeMoving             Mode = "MOVING"
	ModeDraining           Mode = "DRAINING"
	ModeDrained            Mode = "DRAINED"
)

// State is what a node says of itself alone.
type State struct {
	Mode           Mode
	ClusterName    string
	HostID         string
	ReleaseVersion string
	SchemaVersion  string
	// Joined: it owns tokens, as a member does that only starts yet: its disk says so. Starting: it
	// has not begun to join yet. Initialized: gossip ran at least once.
	Joined, Initialized, Starting bool
	// Drained: it was flushed and takes no more requests; only a restart of the JVM brings it back.
	Draining, Drained      bool
	GossipRunning          bool
	NativeTransportRunning bool
	// Bootstrap is nil before Cassandra 5.0.
	Bootstrap *Bootstrap
}

// Bootstrap is what a node of Cassandra 5.0 says of its way into the ring and out of it.
type Bootstrap struct {
	// State is NEEDS_BOOTSTRAP, IN_PROGRESS, COMPLETED or DECOMMISSIONED, as it stands in the
	// node's system.local table. NEEDS_BOOTSTRAP is also the state of a leaving node that has given
	// its data away.
	State              string
	Failed             bool
	Decommissioning    bool
	DecommissionFailed bool
}

// View is how the ring looks from one node.
type View struct {
	State
	// HostIDs are the nodes that have a host id in the ring: the members, those that bootstrap, and
	// the node itself from early in its start. A leaving node is gone from it when its data is
	// streamed; a node that replaces another at a new address comes into it only at the end.
	HostIDs map[netip.AddrPort]string
	// Live and Unreachable also hold nodes that are no members: a node that left is in neither for
	// a minute or so, and unreachable for three days then. Intersect with HostIDs before calling a
	// member down.
	Live, Unreachable        []netip.AddrPort
	Joining, Leaving, Moving []netip.AddrPort
	// Tokens are in ring order. Who owns one is a member, or is in Joining and will own it.
	Tokens []TokenOwner
	// Gossip is in the order of the endpoints.
	Gossip []GossipState
	// Remembered is where the other nodes are of which gossip does not say it: a node that has
	// started knows the members that were down all the while from its disk alone, with their tokens
	// and host ids. Where a member is decides who has its rows.
	Remembered map[netip.AddrPort]Place
	// Seeds are those in use, without the node itself even if it is one.
	Seeds []netip.AddrPort
	// HintsInProgress is the number of hints that this node is writing just now.
	HintsInProgress int
}

// Place of a node in its cluster.
type Place struct{ Datacenter, Rack string }

// TokenOwner says which member owns a token of the Murmur3 partitioner.
type TokenOwner struct {
	Token    int64
	Endpoint netip.AddrPort
}

// stateRequests ask for State. What 4.1 lacks has a request of its own, since one unknown attribute
// fails a whole request.
var stateRequests = []jolokia.Request{
	jolokia.Read(beanStorageService, "OperationMode", "ClusterName", "LocalHostId", "ReleaseVersion", "SchemaVersion",
		"Joined", "Initialized",
		"Starting", "Draining", "Drained", "GossipRunning", "NativeTransportRunning"),
	jolokia.Read(beanStorageService, "BootstrapState", "BootstrapFailed", "Decommissioning", "DecommissionFailed"),
}

// ringRequests ask for the rest of View.
var ringRequests = []jolokia.Request{
	jolokia.Read(beanStorageService, "PartitionerName", "EndpointWithPortToHostId", "TokenToEndpointWithPortMap",
		"LiveNodesWithPort",
		"UnreachableNodesWithPort", "JoiningNodesWithPort", "LeavingNodesWithPort", "MovingNodesWithPort"),
	jolokia.Read(beanFailureDetector, "AllEndpointStatesWithPort", "SimpleStatesWithPort"),
	jolokia.Read(beanGossiper, "Seeds"),
	jolokia.Read(beanStorageProxy, "HintsInProgress"),
}

// State asks the node about itself only: nothing that peers gossip can make it fail.
func (n *Node) State(ctx context.Context) (State, error) {
	answers, err := n.jmx.Do(ctx, stateRequests...)
	if err != nil {
		return State{}, err
	}
	return decodeState(answers)
}

// View asks the node how it sees itself and the ring, in one exchange, and in a second one about
// those that it knows from its disk alone. The schema versions of the peers, keyspaces and pending
// ranges cost more and have methods of their own. If only the part about the ring is unreadable,
// State is set beside the error: 4.1 registers the bean of the node seconds before that of the
// requests that it coordinates.
func (n *Node) View(ctx context.Context) (View, error) {
	answers, err := n.jmx.Do(ctx, slices.Concat(stateRequests, ringRequests)...)
	if err != nil {
		return View{}, err
	}
	state, err := decodeState(answers[:len(stateRequests)])
	if err != nil {
		return View{}, err
	}
	view, err := decodeRing(answers[len(stateRequests):])
	if err != nil {
		return View{State: state}, fmt.Errorf("read ring: %w", whileStarting(err))
	}
	view.State = state
	if view.Remembered, err = n.remembered(ctx, &view); err != nil {
		return View{State: state}, fmt.Errorf("read where members are: %w", whileStarting(err))
	}
	return view, nil
}

// unknownDatacenter is the word of a snitch that neither gossip nor the disk has told where a node
// is (GossipingPropertyFileSnitch, 4.1 and 5.0).
const unknownDatacenter = "UNKNOWN_DC"

// remembered asks the snitch, which knows of a node what gossip says, or else what the disk does.
func (n *Node) remembered(ctx context.Context, v *View) (map[netip.AddrPort]Place, error) {
	gossiped := make(map[netip.AddrPort]bool, len(v.Gossip))
	for i := range v.Gossip {
		gossiped[v.Gossip[i].Endpoint] = v.Gossip[i].Datacenter != ""
	}
	var endpoints []netip.AddrPort
	var requests []jolokia.Request
	for endpoint, hostID := range v.HostIDs {
		if !gossiped[endpoint] && hostID != v.HostID {
			endpoints = append(endpoints, endpoint)
		}
	}
	if len(endpoints) == 0 {
		return nil, nil
	}
	slices.SortFunc(endpoints, netip.AddrPort.Compare)
	for _, endpoint := range endpoints {
		for _, operation := range []string{"getDatacenter(java.lang.String)", "getRack(java.lang.String)"} {
			requests = append(requests, jolokia.Exec(beanSnitch, operation, endpoint.Addr().String()))
		}
	}
	answers, err := n.jmx.Do(ctx, requests...)
	if err != nil {
		return nil, err
	}
	places := make(map[netip.AddrPort]Place, len(endpoints))
	for i, endpoint := range endpoints {
		var p Place
		if err := errors.Join(answers[2*i].Decode(&p.Datacenter), answers[2*i+1].Decode(&p.Rack)); err != nil {
			return nil, err
		}
		if p.Datacenter != unknownDatacenter {
			places[endpoint] = p
		}
	}
	return places, nil
}

func decodeState(answers []jolokia.Answer) (State, error) {
	var wire struct {
		OperationMode, ClusterName, ReleaseVersion, SchemaVersion                               string
		LocalHostID                                                                             string `json:"LocalHostId"`
		Joined, Initialized, Starting, Draining, Drained, GossipRunning, NativeTransportRunning bool
	}
	if err := answers[0].Decode(&wire); err != nil {
		return State{}, fmt.Errorf("read state of node: %w", whileStarting(err))
	}
	if wire.OperationMode == "" {
		return State{}, fmt.Errorf("read state of node: %w: no operation mode", jolokia.ErrProtocol)
	}
	state := State{
		Mode: Mode(wire.OperationMode), ClusterName: wire.ClusterName, HostID: wire.LocalHostID,
		ReleaseVersion: wire.ReleaseVersion, SchemaVersion: wire.SchemaVersion,
		Joined: wire.Joined, Initialized: wire.Initialized, Starting: wire.Starting, Draining: wire.Draining,
		Drained:       wire.Drained,
		GossipRunning: wire.GossipRunning, NativeTransportRunning: wire.NativeTransportRunning,
	}
	var bootstrap struct {
		BootstrapState                                       string
		BootstrapFailed, Decommissioning, DecommissionFailed bool
	}
	switch err := answers[1].Decode(&bootstrap); {
	case err == nil:
		state.Bootstrap = &Bootstrap{
			State: bootstrap.BootstrapState, Failed: bootstrap.BootstrapFailed,
			Decommissioning: bootstrap.Decommissioning, DecommissionFailed: bootstrap.DecommissionFailed,
		}
	case !errors.Is(err, jolokia.ErrAttributeNotFound):
		return State{}, fmt.Errorf("read bootstrap state: %w", whileStarting(err))
	}
	return state, nil
}

func decodeRing(answers []jolokia.Answer) (View, error) {
	var members struct {
		PartitionerName                                                 string
		EndpointWithPortToHostID                                        map[string]string `json:"EndpointWithPortToHostId"`
		TokenToEndpointWithPortMap                                      map[string]string
		LiveNodesWithPort, UnreachableNodesWithPort                     []string
		JoiningNodesWithPort, LeavingNodesWithPort, MovingNodesWithPort []string
	}
	var gossip struct {
		AllEndpointStatesWithPort string
		SimpleStatesWithPort      map[string]string
	}
	var gossiper struct{ Seeds []string }
	var proxy struct{ HintsInProgress int }
	if err := errors.Join(answers[0].Decode(&members), answers[1].Decode(&gossip), answers[2].Decode(&gossiper),
		answers[3].Decode(&proxy)); err != nil {
		return View{}, err
	}
	view := View{HintsInProgress: proxy.HintsInProgress}
	var problems [9]error
	view.HostIDs, problems[0] = parseHostIDs(members.EndpointWithPortToHostID)
	view.Tokens, problems[1] = parseTokens(members.PartitionerName, members.TokenToEndpointWithPortMap)
	view.Live, problems[2] = parseEndpoints(members.LiveNodesWithPort)
	view.Unreachable, problems[3] = parseEndpoints(members.UnreachableNodesWithPort)
	view.Joining, problems[4] = parseEndpoints(members.JoiningNodesWithPort)
	view.Leaving, problems[5] = parseEndpoints(members.LeavingNodesWithPort)
	view.Moving, problems[6] = parseEndpoints(members.MovingNodesWithPort)
	view.Seeds, problems[7] = parseEndpoints(gossiper.Seeds)
	view.Gossip, problems[8] = parseGossipWithLiveness(gossip.AllEndpointStatesWithPort, gossip.SimpleStatesWithPort)
	return view, errors.Join(problems[:]...)
}

func parseHostIDs(wire map[string]string) (map[netip.AddrPort]string, error) {
	hostIDs := make(map[netip.AddrPort]string, len(wire))
	for text, hostID := range wire {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		hostIDs[endpoint] = hostID
	}
	return hostIDs, nil
}

// partitioner is the only one whose tokens are understood here.
const partitioner = "org.apache.cassandra.dht.Murmur3Partitioner"

func parseTokens(name string, wire map[string]string) ([]TokenOwner, error) {
	if name != partitioner {
		return nil, fmt.Errorf("partitioner is %s; only %s is supported", name, partitioner)
	}
	owners := make([]TokenOwner, 0, len(wire))
	for text, owner := range wire {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse token of %s: %w", owner, err)
		}
		endpoint, err := parseEndpoint(owner)
		if err != nil {
			return nil, err
		}
		owners = append(owners, TokenOwner{Token: token, Endpoint: endpoint})
	}
	slices.SortFunc(owners, func(a, b TokenOwner) int {
		if a.Token < b.Token {
			return -1
		}
		return 1
	})
	return owners, nil
}

// parseGossipWithLiveness adds the word of the failure detector. The two attributes are read one
// after the other: an endpoint that came or went in between counts as dead.
func parseGossipWithLiveness(text string, liveness map[string]string) ([]GossipState, error) {
	states, err := ParseGossip(text)
	if err != nil {
		return nil, err
	}
	alive := make(map[netip.AddrPort]bool, len(liveness))
	for text, word := range liveness {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		alive[endpoint] = word == "UP"
	}
	for i := range states {
		states[i].Alive = alive[states[i].Endpoint]
	}
	return states, nil
}
