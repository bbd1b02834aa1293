package cqlclient

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
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

// Connect opens a session through a pod, as the superuser where the ring asks for a password.
func Connect(ctx context.Context, cluster *reach.Cluster, namespace, pod string) (*Session, error) {
	login, err := Superuser(ctx, cluster, namespace, pod)
	if err != nil {
		return nil, err
	}
	forward, err := cluster.Forward(ctx, namespace, pod, layout.NativePort)
	if err != nil {
		return nil, err
	}
	config := narrow(forward.Address)
	if login != nil {
		config.Authenticator = *login
	}
	type result struct {
		session *gocql.Session
		err     error
	}
	connected := make(chan result, 1)
	go func() {
		session, err := gocql.NewSession(config)
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

// Superuser is who logs in to the ring of a pod; nil if that lets everybody in.
func Superuser(ctx context.Context, cluster *reach.Cluster, namespace, pod string) (*gocql.PasswordAuthenticator,
	error) {
	p, ring, secret := &corev1.Pod{}, &v1alpha1.CassandraCluster{}, &corev1.Secret{}
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, p); err != nil {
		return nil, fmt.Errorf("read pod %s: %w", pod, err)
	}
	name := p.Labels[v1alpha1.LabelCluster]
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring); err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", name, err)
	}
	security := ring.Status.Security
	if security == nil || security.Authentication == nil || security.Authentication.Superuser == nil {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: namespace, Name: security.Authentication.Superuser.SecretName}
	if err := cluster.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read Secret %s of the superuser: %w", key.Name, err)
	}
	return &gocql.PasswordAuthenticator{Username: string(secret.Data[corev1.BasicAuthUsernameKey]),
		Password: string(secret.Data[corev1.BasicAuthPasswordKey])}, nil
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
