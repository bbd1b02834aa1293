package cqlclient

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/dev/demo/reach"
	"helenus.io/helenus/internal/core/layout"
)

// Session speaks to one coordinator. Statements go through it as the driver makes them: Query on
// the embedded session.
type Session struct {
	*gocql.Session
	// Pod is the coordinator.
	Pod     string
	forward *reach.Forward
}

// timeout bounds each step of the handshake and each statement. It is a bound for failures: on a
// busy machine the first change of the schema takes seconds.
const timeout = 60 * time.Second

// Connect opens a session through a pod.
func Connect(ctx context.Context, cluster *reach.Cluster, namespace, pod string) (*Session, error) {
	forward, err := cluster.Forward(ctx, namespace, pod, layout.NativePort)
	if err != nil {
		return nil, err
	}
	type result struct {
		session *gocql.Session
		err     error
	}
	connected := make(chan result, 1)
	go func() {
		session, err := gocql.NewSession(narrow(forward.Address))
		connected <- result{session, err}
	}()
	select {
	case r := <-connected:
		if r.err != nil {
			forward.Close()
			return nil, fmt.Errorf("connect to CQL of pod %s: %w", pod, r.err)
		}
		return &Session{Session: r.session, Pod: pod, forward: forward}, nil
	case <-ctx.Done():
		forward.Close() // which ends what the driver, that knows no context, still tries
		go func() {
			if r := <-connected; r.session != nil {
				r.session.Close()
			}
		}()
		return nil, fmt.Errorf("connect to CQL of pod %s: %w", pod, ctx.Err())
	}
}

// Close ends the session and its way to the pod.
func (s *Session) Close() {
	s.Session.Close()
	s.forward.Close()
}

// narrow makes the driver, which is made for whole clusters, speak to one address. Nothing is
// repeated behind the caller's back.
func narrow(address netip.AddrPort) gocql.ClusterConfig {
	host := address.Addr().String()
	only := net.ParseIP(host)
	c := gocql.NewCluster(host)
	c.Port = int(address.Port())
	c.ConnectTimeout, c.Timeout, c.WriteTimeout = timeout, timeout, timeout
	c.ProtoVersion = 4
	c.NumConns = 1
	c.DisableInitialHostLookup = true
	c.Events.DisableNodeStatusEvents = true
	c.Events.DisableTopologyEvents = true
	c.Events.DisableSchemaEvents = true
	c.Metadata.CacheMode = gocql.Disabled
	c.HostFilter = gocql.HostFilterFunc(func(h *gocql.HostInfo) bool { return h.ConnectAddress().Equal(only) })
	c.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: time.Second}
	c.ReconnectInterval = 0
	c.Consistency = gocql.Quorum
	c.MaxWaitSchemaAgreement = timeout
	return *c
}
