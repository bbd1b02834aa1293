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

// Defaults of Config.
const (
	// DefaultConnectTimeout bounds the TCP connection and each step of the handshake.
	DefaultConnectTimeout = 5 * time.Second
	// DefaultTimeout bounds each statement. A change of the schema takes a second or two on a busy
	// node.
	DefaultTimeout = 30 * time.Second
)

// Config says which node to administer, and as whom.
type Config struct {
	// Address of the node's native transport.
	Address netip.AddrPort
	// Username and Password; empty Username: the node asks for none.
	Username, Password string
	// ConnectTimeout and Timeout; zero: the defaults.
	ConnectTimeout, Timeout time.Duration
}

// Session is a connection to one node, and to that node only: whatever the node says of its peers,
// none of them is connected. A statement is sent once and never repeated by the driver; the callers
// here read before they write. Safe for use by several goroutines.
type Session struct {
	driver  *gocql.Session
	address netip.AddrPort
}

// Connect opens a session: two TCP connections, one for statements and one by which the driver
// watches the node.
func Connect(ctx context.Context, config Config) (*Session, error) {
	if !config.Address.IsValid() {
		return nil, errors.New("connect to CQL: no address given")
	}
	type result struct {
		driver *gocql.Session
		err    error
	}
	connected := make(chan result, 1)
	go func() {
		driver, err := gocql.NewSession(clusterConfig(config))
		connected <- result{driver, err}
	}()
	select {
	case r := <-connected:
		if r.err != nil {
			return nil, fmt.Errorf("connect to CQL at %s: %w", config.Address, r.err)
		}
		return &Session{driver: r.driver, address: config.Address}, nil
	case <-ctx.Done():
		// The driver takes no context; its own timeouts end it, and what it may still open is
		// closed.
		go func() {
			if r := <-connected; r.driver != nil {
				r.driver.Close()
			}
		}()
		return nil, fmt.Errorf("connect to CQL at %s: %w", config.Address, ctx.Err())
	}
}

// Close closes the connections.
func (s *Session) Close() { s.driver.Close() }

// clusterConfig narrows the driver, which is made for a whole cluster, to one node.
func clusterConfig(config Config) gocql.ClusterConfig {
	host := config.Address.Addr().String()
	c := gocql.NewCluster(host)
	c.Port = int(config.Address.Port())
	c.ConnectTimeout = orDefault(config.ConnectTimeout, DefaultConnectTimeout)
	c.Timeout = orDefault(config.Timeout, DefaultTimeout)
	c.WriteTimeout = c.Timeout
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
	c.RetryPolicy = neverRetry{}
	c.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: time.Second}
	c.ReconnectInterval = 0
	c.Consistency = gocql.One
	// The driver counts members that are down; callers await agreement over JMX, which does not.
	c.MaxWaitSchemaAgreement = time.Nanosecond
	if config.Username != "" {
		c.Authenticator = gocql.PasswordAuthenticator{Username: config.Username, Password: config.Password}
	}
	return *c
}

const protocolVersion = 4

func orDefault(value, otherwise time.Duration) time.Duration {
	if value == 0 {
		return otherwise
	}
	return value
}

// neverRetry leaves every decision to the caller, who knows whether a statement may be repeated.
type neverRetry struct{}

// Attempt says that there is no further attempt.
func (neverRetry) Attempt(gocql.RetryableQuery) bool { return false }

// GetRetryType says what to do with an error: give it to the caller.
func (neverRetry) GetRetryType(error) gocql.RetryType { return gocql.Rethrow }
