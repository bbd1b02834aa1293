package cql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/internal/cassandra"
)

const (
	// connectTimeout bounds the TCP connection and each step of the handshake.
	connectTimeout = 5 * time.Second
	// StatementTimeout bounds each statement of Connect. A change of the schema takes a second or
	// two on a busy node.
	StatementTimeout = 30 * time.Second
)

// ErrRefused means that the node does not let a role in: it is not there, its password is another
// one, or it may not log in. A node that could not find that out says something else.
var ErrRefused = errors.New("login refused")

// refusals are the words of it (PasswordAuthenticator#authenticate, ClientState#login, 4.1 and
// 5.0). The driver keeps nothing but words of an error while it connects.
var refusals = []string{"and/or password are incorrect", "is not permitted to log in"}

// Login is asked for who logs in when the node asks for a password, for each connection.
type Login func(ctx context.Context) (cassandra.Login, error)

// Session is a connection to one node, and to that node only: whatever the node says of its peers,
// none of them is connected. A statement is sent once and never repeated by the driver, which gets
// no policy of retries; the callers here read before they write. Safe for use by several
// goroutines.
type Session struct {
	driver *gocql.Session
	asked  *atomic.Bool
}

// Asked says whether the node has asked for a password.
func (s *Session) Asked() bool { return s.asked.Load() }

// Connect opens a session: two TCP connections, one for statements and one by which the driver
// watches the node. The error is ErrRefused if the node does not let the login in. Without one
// (nil) a node that asks for a password is an error.
func Connect(ctx context.Context, address netip.AddrPort, login Login) (*Session, error) {
	return ConnectTLS(ctx, address, login, nil, StatementTimeout)
}

// ConnectTLS is Connect with encryption, unless that is nil, for statements that take so long at
// most.
func ConnectTLS(ctx context.Context, address netip.AddrPort, login Login, encryption *tls.Config,
	longest time.Duration) (*Session, error) {
	if !address.IsValid() {
		return nil, errors.New("connect to CQL: no address given")
	}
	type result struct {
		driver *gocql.Session
		err    error
	}
	connected := make(chan result, 1)
	config, asked := clusterConfig(address, longest), &atomic.Bool{}
	if encryption != nil {
		// The configuration verifies by itself whom it talks to.
		config.SslOpts = &gocql.SslOptions{Config: encryption, EnableHostVerification: false}
	}
	if login != nil {
		config.Authenticator = authenticator{func() (cassandra.Login, error) { return login(ctx) }, asked}
	}
	go func() {
		driver, err := gocql.NewSession(config)
		connected <- result{driver, err}
	}()
	select {
	case r := <-connected:
		if r.err != nil {
			if slices.ContainsFunc(refusals, func(of string) bool { return strings.Contains(r.err.Error(), of) }) {
				r.err = fmt.Errorf("%w: %w", ErrRefused, r.err)
			}
			return nil, fmt.Errorf("connect to CQL at %s: %w", address, r.err)
		}
		return &Session{r.driver, asked}, nil
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

// authenticator answers a node that asks for a password, in clear: the connection does not leave
// the pod.
type authenticator struct {
	login func() (cassandra.Login, error)
	asked *atomic.Bool
}

// Challenge implements gocql.Authenticator by SASL's PLAIN.
func (a authenticator) Challenge([]byte) ([]byte, gocql.Authenticator, error) {
	a.asked.Store(true)
	login, err := a.login()
	if err != nil {
		return nil, nil, fmt.Errorf("find out who logs in: %w", err)
	}
	return []byte("\x00" + login.User + "\x00" + login.Password), a, nil
}

// Success implements gocql.Authenticator.
func (authenticator) Success([]byte) error { return nil }

// Close closes the connections.
func (s *Session) Close() { s.driver.Close() }

// clusterConfig narrows the driver, which is made for a whole cluster, to one node.
func clusterConfig(address netip.AddrPort, longest time.Duration) gocql.ClusterConfig {
	host := address.Addr().String()
	c := gocql.NewCluster(host)
	c.Port = int(address.Port())
	c.ConnectTimeout, c.Timeout, c.WriteTimeout = connectTimeout, longest, longest
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
