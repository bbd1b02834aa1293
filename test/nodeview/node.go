package nodeview

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/jolokia"
)

// Beans that are read.
const (
	beanStorageService  = "org.apache.cassandra.db:type=StorageService"
	beanStorageProxy    = "org.apache.cassandra.db:type=StorageProxy"
	beanFailureDetector = "org.apache.cassandra.net:type=FailureDetector"
	beanGossiper        = "org.apache.cassandra.net:type=Gossiper"
	beanSnitch          = "org.apache.cassandra.db:type=EndpointSnitchInfo"
)

// Node is a node of Cassandra of which everything is read.
type Node struct {
	*cassandra.Node
	jmx *jolokia.Client
}

// New uses a client of the Jolokia agent in the node's JVM.
func New(client *jolokia.Client) *Node { return &Node{cassandra.NewNode(client), client} }

// ReloadSeeds has the node read its list of seeds again and returns those in use, read back.
func (n *Node) ReloadSeeds(ctx context.Context) ([]netip.AddrPort, error) {
	if err := n.Node.ReloadSeeds(ctx); err != nil {
		return nil, err
	}
	answer, err := n.jmx.Call(ctx, jolokia.Read(beanGossiper, "Seeds"))
	if err != nil {
		return nil, fmt.Errorf("read seeds: %w", err)
	}
	var wire struct{ Seeds []string }
	if err := answer.Decode(&wire); err != nil {
		return nil, fmt.Errorf("read seeds: %w", err)
	}
	return parseEndpoints(wire.Seeds)
}

func whileStarting(err error) error {
	if errors.Is(err, jolokia.ErrInstanceNotFound) {
		return fmt.Errorf("%w: %w", cassandra.ErrStarting, err)
	}
	return err
}

// Pending is the ranges of one keyspace that are on their way to new owners.
type Pending struct {
	Keyspace string
	// Ranges is their number, and Endpoints who receives them.
	Ranges    int
	Endpoints []netip.AddrPort
}

// PendingRanges reads which of the keyspaces have pending ranges; none in the answer means nothing
// is moving as far as this node knows.
func (n *Node) PendingRanges(ctx context.Context, keyspaces []string) ([]Pending, error) {
	requests := make([]jolokia.Request, 0, len(keyspaces))
	for _, keyspace := range keyspaces {
		requests = append(requests, jolokia.Exec(beanStorageService,
			"getPendingRangeToEndpointWithPortMap(java.lang.String)", keyspace))
	}
	answers, err := n.jmx.Do(ctx, requests...)
	if err != nil {
		return nil, fmt.Errorf("read pending ranges: %w", err)
	}
	var result []Pending
	for i, keyspace := range keyspaces {
		// The key is a list of two tokens, which arrives as text.
		var wire map[string][]string
		if err := answers[i].Decode(&wire); err != nil {
			return nil, fmt.Errorf("read pending ranges of keyspace %s: %w", keyspace, whileStarting(err))
		}
		if len(wire) == 0 {
			continue
		}
		var texts []string
		for _, endpoints := range wire {
			texts = append(texts, endpoints...)
		}
		endpoints, err := parseEndpoints(texts)
		if err != nil {
			return nil, fmt.Errorf("read pending ranges of keyspace %s: %w", keyspace, err)
		}
		result = append(result, Pending{Keyspace: keyspace, Ranges: len(wire), Endpoints: slices.Compact(endpoints)})
	}
	return result, nil
}
