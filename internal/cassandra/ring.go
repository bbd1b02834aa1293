package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/jolokia"
)

// ringRequests ask how the ring looks from a node.
var ringRequests = []jolokia.Request{
	jolokia.Read(beanStorageService, "OperationMode", "LocalHostId", "ReleaseVersion", "SchemaVersion", "GossipRunning",
		"NativeTransportRunning", "PartitionerName", "EndpointWithPortToHostId", "TokenToEndpointWithPortMap",
		"JoiningNodesWithPort", "LeavingNodesWithPort", "MovingNodesWithPort"),
	jolokia.Read(beanFailureDetector, "AllEndpointStatesWithPort", "SimpleStatesWithPort"),
}

// ringAnswers are the answers to them. Who has a host id is a member, bootstraps, or is the node
// itself from early in its start: a leaving node is gone from there when its data is streamed, and
// a node that replaces another at a new address comes into it only at the end. Who owns a token is
// a member, or joins and will own it.
type ringAnswers struct {
	node struct {
		OperationMode, ReleaseVersion, SchemaVersion, PartitionerName   string
		LocalHostID                                                     string `json:"LocalHostId"`
		GossipRunning, NativeTransportRunning                           bool
		EndpointWithPortToHostID                                        map[string]string `json:"EndpointWithPortToHostId"`
		TokenToEndpointWithPortMap                                      map[string]string
		JoiningNodesWithPort, LeavingNodesWithPort, MovingNodesWithPort []string
	}
	gossip struct {
		AllEndpointStatesWithPort string
		SimpleStatesWithPort      map[string]string
	}
}

// Ring asks the node how it sees itself and the ring, in one exchange, and in a second one about
// those that it knows from its disk alone; and whether anybody joins, leaves or moves in its view.
// Keyspaces and pending ranges cost more and have methods of their own.
func (n *Node) Ring(ctx context.Context) (ring *facts.Ring, moving bool, err error) {
	answers, err := n.jmx.Do(ctx, ringRequests...)
	if err != nil {
		return nil, false, err
	}
	var a ringAnswers
	if err := errors.Join(answers[0].Decode(&a.node), answers[1].Decode(&a.gossip)); err != nil {
		return nil, false, fmt.Errorf("read ring: %w", whileStarting(err))
	}
	if a.node.OperationMode == "" {
		return nil, false, fmt.Errorf("read ring: %w: no operation mode", jolokia.ErrProtocol)
	}
	endpoints, nowhere, err := a.endpoints()
	if err != nil {
		return nil, false, fmt.Errorf("read ring: %w", err)
	}
	if err := n.locate(ctx, nowhere); err != nil {
		return nil, false, fmt.Errorf("read where members are: %w", whileStarting(err))
	}
	ring = &facts.Ring{
		Mode: facts.Mode(a.node.OperationMode), HostID: a.node.LocalHostID, ReleaseVersion: a.node.ReleaseVersion,
		SchemaVersion: a.node.SchemaVersion, GossipRunning: a.node.GossipRunning,
		NativeRunning: a.node.NativeTransportRunning,
	}
	for _, e := range endpoints {
		slices.Sort(e.Tokens)
		ring.Endpoints = append(ring.Endpoints, *e)
	}
	slices.SortFunc(ring.Endpoints, func(a, b facts.Endpoint) int { return strings.Compare(a.Address, b.Address) })
	moves := slices.Concat(a.node.JoiningNodesWithPort, a.node.LeavingNodesWithPort, a.node.MovingNodesWithPort)
	return ring, len(moves) > 0, nil
}

// partitioner is the only one whose tokens are understood here.
const partitioner = "org.apache.cassandra.dht.Murmur3Partitioner"

// endpoints puts together by address what gossip says, the word of the failure detector, and what
// the node has in its memory of the ring. The attributes are read one after the other: an endpoint
// that came or went in between counts as dead. Nowhere are other members of which gossip does not
// say where they are.
func (a *ringAnswers) endpoints() (all map[netip.Addr]*facts.Endpoint, nowhere []*facts.Endpoint, err error) {
	if name := a.node.PartitionerName; name != partitioner {
		return nil, nil, fmt.Errorf("partitioner is %s; only %s is supported", name, partitioner)
	}
	alive := map[netip.AddrPort]bool{}
	for text, word := range a.gossip.SimpleStatesWithPort {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return nil, nil, err
		}
		alive[endpoint] = word == "UP"
	}
	entries, err := parseGossip(a.gossip.AllEndpointStatesWithPort)
	if err != nil {
		return nil, nil, err
	}
	all = map[netip.Addr]*facts.Endpoint{}
	for _, entry := range entries {
		e, err := entry.facts()
		if err != nil {
			return nil, nil, err
		}
		e.Live = alive[entry.endpoint]
		all[entry.endpoint.Addr()] = &e
	}
	at := func(text string) (*facts.Endpoint, error) {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		if all[endpoint.Addr()] == nil {
			all[endpoint.Addr()] = &facts.Endpoint{Address: endpoint.Addr().String()}
		}
		return all[endpoint.Addr()], nil
	}
	for text, hostID := range a.node.EndpointWithPortToHostID {
		e, err := at(text)
		if err != nil {
			return nil, nil, err
		}
		e.HostID = cmp.Or(e.HostID, hostID)
		if e.Datacenter == "" && hostID != a.node.LocalHostID {
			nowhere = append(nowhere, e)
		}
	}
	for token, text := range a.node.TokenToEndpointWithPortMap {
		number, err := strconv.ParseInt(token, 10, 64)
		if err != nil {
			return nil, nil, fmt.Errorf("parse token of %s: %w", text, err)
		}
		e, err := at(text)
		if err != nil {
			return nil, nil, err
		}
		e.Tokens = append(e.Tokens, number)
	}
	slices.SortFunc(nowhere, func(a, b *facts.Endpoint) int { return strings.Compare(a.Address, b.Address) })
	return all, nowhere, nil
}

// unknownDatacenter is the word of a snitch that neither gossip nor the disk has told where a node
// is (GossipingPropertyFileSnitch, 4.1 and 5.0).
const unknownDatacenter = "UNKNOWN_DC"

// locate asks the snitch where other members are: a node that has started knows those that were
// down all the while from its disk alone, with their tokens and host ids. Where a member is decides
// who has its rows.
func (n *Node) locate(ctx context.Context, members []*facts.Endpoint) error {
	var requests []jolokia.Request
	for _, e := range members {
		for _, operation := range []string{"getDatacenter(java.lang.String)", "getRack(java.lang.String)"} {
			requests = append(requests, jolokia.Exec(beanSnitch, operation, e.Address))
		}
	}
	answers, err := n.jmx.Do(ctx, requests...) // of nothing there is no exchange
	if err != nil {
		return err
	}
	for i, e := range members {
		var datacenter, rack string
		if err := errors.Join(answers[2*i].Decode(&datacenter), answers[2*i+1].Decode(&rack)); err != nil {
			return err
		}
		if datacenter != unknownDatacenter {
			e.Datacenter, e.Rack = datacenter, rack
		}
	}
	return nil
}
