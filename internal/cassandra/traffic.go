package cassandra

import (
	"context"
	"errors"
	"fmt"

	"helenus.io/helenus/internal/jolokia"
)

// StopNativeTransport closes CQL: connections are cut and the port is closed. On a node that does
// not serve CQL it does nothing.
func (n *Node) StopNativeTransport(ctx context.Context) error {
	// 5.0 has an overload with "force"; this signature is in every release.
	if err := n.callBlocking(ctx, jolokia.Exec(beanStorageService, "stopNativeTransport()"), nil); err != nil {
		return fmt.Errorf("stop native transport: %w", err)
	}
	return nil
}

// StartNativeTransport opens CQL. The node refuses if it has not joined the ring. On a node that
// serves CQL it does nothing.
func (n *Node) StartNativeTransport(ctx context.Context) error {
	if err := n.callBlocking(ctx, jolokia.Exec(beanStorageService, "startNativeTransport()"), nil); err != nil {
		return fmt.Errorf("start native transport: %w", err)
	}
	return nil
}

// Drain makes the node ready to be stopped: it leaves CQL and gossip, finishes what it began and
// writes its memtables to disk. It blocks for that long, five seconds on an idle node and minutes
// on a loaded one. Afterwards only a restart of the JVM brings the node back. On a drained node it
// does nothing.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.callBlocking(ctx, jolokia.Exec(beanStorageService, "drain()"), nil); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// ErrSeedsNotLoaded means that Cassandra could not read its list of seeds and continues with the
// old one; its log says why.
//
//nolint:staticcheck // a proper name
var ErrSeedsNotLoaded = errors.New("Cassandra could not load its seeds and keeps the old ones")

// ReloadSeeds makes the node read its list of seeds again. Its own address does not count, and an
// empty list changes nothing.
func (n *Node) ReloadSeeds(ctx context.Context) error {
	var reloaded *[]string
	if err := n.call(ctx, jolokia.Exec(beanGossiper, "reloadSeeds()"), &reloaded); err != nil {
		return fmt.Errorf("reload seeds: %w", err)
	}
	if reloaded == nil {
		return fmt.Errorf("reload seeds: %w", ErrSeedsNotLoaded)
	}
	return nil
}

// ReloadCertificates makes the node read the files of its certificates again, for connections that
// are opened from then on. Files that it cannot use are an error in its log alone.
func (n *Node) ReloadCertificates(ctx context.Context) error {
	if err := n.call(ctx, jolokia.Exec(beanMessagingService, "reloadSslCertificates()"), nil); err != nil {
		return fmt.Errorf("reload certificates: %w", err)
	}
	return nil
}

// Flush writes what is in memory of a keyspace, or of some of its tables, to the disk.
func (n *Node) Flush(ctx context.Context, keyspace string, tables ...string) error {
	if tables == nil {
		tables = []string{}
	}
	request := jolokia.Exec(beanStorageService, "forceKeyspaceFlush(java.lang.String,[Ljava.lang.String;)", keyspace,
		tables)
	if err := n.callBlocking(ctx, request, nil); err != nil {
		return fmt.Errorf("flush keyspace %s: %w", keyspace, err)
	}
	return nil
}

// Assassinate has all nodes take an endpoint for one that has left the ring, without its data being
// streamed to anybody. It blocks for 4 s where the node does not know of the endpoint, and for the
// ring delay more (30 s) where it does; all that time the node takes in no gossip
// (Gossiper#assassinateEndpoint, 4.1 and 5.0).
func (n *Node) Assassinate(ctx context.Context, endpoint string) error {
	if err := n.callBlocking(ctx, jolokia.Exec(beanGossiper, "assassinateEndpoint(java.lang.String)", endpoint),
		nil); err != nil {
		return fmt.Errorf("assassinate endpoint %s: %w", endpoint, err)
	}
	return nil
}
