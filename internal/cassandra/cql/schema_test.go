package cql

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/cassandra"
)

func TestAlterStatement(t *testing.T) {
	for want, c := range map[string]struct {
		keyspace string
		replicas map[string]int
	}{
		`ALTER KEYSPACE "system_auth" WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': '3', 'dc2': '2'}`: {
			"system_auth", map[string]int{"dc2": 2, "dc1": 3, "dc3": 0},
		},
		`ALTER KEYSPACE "a""b" WITH replication = {'class': 'NetworkTopologyStrategy', 'it''s': '1'}`: {`a"b`,
			map[string]int{"it's": 1}},
	} {
		if got := alterStatement(c.keyspace, cassandra.PerDatacenter(c.replicas)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestImpossibleReplicationIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	session := &Session{} // without a driver: any question would panic
	for name, wanted := range map[string]map[string]map[string]int{
		"no datacenter":            {"system_auth": {}},
		"no replica":               {"system_auth": {"dc1": 0}},
		"fewer than none":          {"system_auth": {"dc1": 3, "dc2": -1}},
		"datacenter without name":  {"system_auth": {"": 3}},
		"keyspace without name":    {"": {"dc1": 3}},
		"one impossible among two": {"system_auth": {"dc1": 3}, "system_traces": {"dc1": 0}},
	} {
		if altered, err := RaiseReplication(context.Background(), session, wanted, nil); err == nil || altered != nil {
			t.Errorf("%s: altered %v, error %v", name, altered, err)
		}
	}
}

// schema is one that a client changes while the ring agrees on what was altered before.
type schema struct {
	keyspaces map[string]cassandra.Replication
}

func (s *schema) Keyspaces(context.Context) (map[string]cassandra.Replication, error) {
	return maps.Clone(s.keyspaces), nil
}

func (s *schema) AlterKeyspace(_ context.Context, name string, to cassandra.Replication) error {
	s.keyspaces[name] = to
	return nil
}

func TestWhatAnotherClientAltersMeanwhileIsLeftAsItIs(t *testing.T) {
	of := func(n int) cassandra.Replication { return cassandra.PerDatacenter(map[string]int{"dc1": n}) }
	for name, meanwhile := range map[string]func(*schema){
		"nothing":    func(*schema) {},
		"other":      func(s *schema) { s.keyspaces["unasked"] = of(2) },
		"replicas":   func(s *schema) { s.keyspaces["b"] = of(5) },
		"datacenter": func(s *schema) { s.keyspaces["b"] = cassandra.PerDatacenter(map[string]int{"dc1": 1, "dc2": 1}) },
		"dropped":    func(s *schema) { delete(s.keyspaces, "b") },
	} {
		t.Run(name, func(t *testing.T) {
			s := &schema{keyspaces: map[string]cassandra.Replication{"a": of(1), "b": of(1)}}
			waits, before := 0, maps.Clone(s.keyspaces)
			three := map[string]int{"dc1": 3}
			altered, err := RaiseReplication(t.Context(), s, map[string]map[string]int{"a": three, "b": three},
				func(context.Context) error {
					if waits++; waits == 1 {
						meanwhile(s)
						before = maps.Clone(s.keyspaces)
					}
					return nil
				})
			if name == "nothing" || name == "other" {
				if err != nil || len(altered) != 2 || !s.keyspaces["b"].Equal(of(3)) {
					t.Errorf("altered %v to %v, error %v", altered, s.keyspaces, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "keyspace b was") || len(altered) != 1 ||
				s.keyspaces["b"].String() != before["b"].String() {
				t.Errorf("altered %v to %v, error %v", altered, s.keyspaces, err)
			}
		})
	}
}

func TestKeepsReplicas(t *testing.T) {
	replication := func(text string) cassandra.Replication {
		r, err := cassandra.ParseReplication(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		keyspace, replication string
		want                  bool
	}{
		{"shop", "NetworkTopologyStrategy {dc1=3}", true},
		{"shop", "NetworkTopologyStrategy {dc1=1, dc2=1}", true},
		{"shop", "NetworkTopologyStrategy {dc1=1}", false},
		{"shop", "SimpleStrategy {replication_factor=1}", false},
		{"shop", "com.example.OwnStrategy {}", true},
		{"system_auth", "NetworkTopologyStrategy {dc1=3}", false},
		{"system_of_mine", "NetworkTopologyStrategy {dc1=3}", true},
	} {
		if got := keepsReplicas(c.keyspace, replication(c.replication)); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.keyspace, c.replication, got, c.want)
		}
	}
}

func TestSessionIsNarrowedToOneNode(t *testing.T) {
	c := clusterConfig(netip.MustParseAddrPort("127.0.0.1:9042"), time.Minute)
	if c.Timeout != time.Minute {
		t.Errorf("statements may take %s", c.Timeout)
	}
	if c.NumConns != 1 || !c.DisableInitialHostLookup || c.RetryPolicy != nil || c.ReconnectInterval != 0 ||
		c.Authenticator != nil ||
		!c.Events.DisableNodeStatusEvents || !c.Events.DisableTopologyEvents || !c.Events.DisableSchemaEvents {
		t.Errorf("configuration of the driver is %+v", c)
	}
}

func TestConnectToNothing(t *testing.T) {
	if _, err := Connect(context.Background(), netip.AddrPort{}, nil); err == nil {
		t.Error("no address: no error")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	listener.Close() //nolint:errcheck // nothing was accepted
	if _, err := Connect(context.Background(), address, nil); err == nil {
		t.Error("closed port: no error")
	}
}

// TestConnectGivesUpWithItsContext uses a node that accepts and says nothing, as one that is
// frozen.
func TestConnectGivesUpWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // ends the test
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if connection, err := listener.Accept(); err == nil {
			defer connection.Close() //nolint:errcheck // ends the test
			cancel()
			<-t.Context().Done()
		}
	}()
	if _, err := Connect(ctx, netip.MustParseAddrPort(listener.Addr().String()), nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	cancel()
}
