package cql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const (
	// connectTimeout bounds the TCP connection and each step of the handshake.
	connectTimeout = 5 * time.Second
	// statementTimeout bounds each statement. A change of the schema takes a second or two on a
	// busy node.
	statementTimeout = 30 * time.Second
)

// Session is a connection to one node, and to that node only: whatever the node says of its peers,
// none of them is connected. A statement is sent once and never repeated by the driver, which gets
// no policy of retries; the callers here read before they write. Safe for use by several
// goroutines.
type Session struct{ driver *gocql.Session }

// Connect opens a session: two TCP connections, one for statements and one by which the driver
// watches the node.
func Connect(ctx context.Context, address netip.AddrPort) (*Session, error) {
	if !address.IsValid() {
		return nil, errors.New("connect to CQL: no address given")
	}
	type result struct {
		driver *gocql.Session
		err    error
	}
	connected := make(chan result, 1)
	go func() {
		driver, err := gocql.NewSession(clusterConfig(address))
		connected <- result{driver, err}
	}()
	select {
	case r := <-connected:
		if r.err != nil {
			return nil, fmt.Errorf("connect to CQL at %s: %w", address, r.err)
		}
		return &Session{r.driver}, nil
	case <-ctx.Done():
		// The driver takes no context; its own timeouts end it, and what it may still open is
		// closed.
		go func() {
			if r := <-connected; r.driver != nil {
				r.driver.Close()
			}
		}()
		return nil, fmt.Errorf("connect to CQL at %s: %w", address, ctx.Err())
	}
}

// Close closes the connections.
func (s *Session) Close() { s.driver.Close() }

// clusterConfig narrows the driver, which is made for a whole cluster, to one node.
func clusterConfig(address netip.AddrPort) gocql.ClusterConfig {
	host := address.Addr().String()
	c := gocql.NewCluster(host)
	c.Port = int(address.Port())
	c.ConnectTimeout, c.Timeout, c.WriteTimeout = connectTimeout, statementTimeout, statementTimeout
	// Version 4 is spoken by all supported releases; to name it saves a round of negotiation.
	c.ProtoVersion = protocolVersion
	c.NumConns = 1
	c.DisableInitialHostLookup = true
	c.Events.DisableNodeStatusEvents = true
	c.Events.DisableTopologyEvents = true
	c.Events.DisableSchemaEvents = true
	c.Metadata.CacheMode = gocql.Disabled
	only := net.ParseIP(host)
	c.HostFilter = gocql.HostFilterFunc(func(h *gocql.HostInfo) bool { return h.ConnectAddress().Equal(only) })
	c.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: time.Second}
	c.ReconnectInterval = 0
	c.Consistency = gocql.One
	// The driver counts members that are down; callers await agreement over JMX, which does not.
	c.MaxWaitSchemaAgreement = time.Nanosecond
	return *c
}

const protocolVersion = 4
