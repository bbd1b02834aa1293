//go:build cassandra

package agent

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/layout"
)

// TestPasswordsOnALivingRing has a ring that an earlier release has made, with Cassandra's own
// superuser, get the roles while nobody is asked, and then ask for them node by node. The agent is
// killed while it writes the roles.
func TestPasswordsOnALivingRing(t *testing.T) {
	w := newWorld(t)
	pods := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(pods[0].address)
	logins := w.putSecrets()
	for _, p := range pods {
		p.start()
	}
	w.awaitEmpty(pods...)
	known := cassandra.Login{User: v1alpha1.RoleDefault, Password: v1alpha1.RoleDefault}
	nobody := func(ctx context.Context, p *pod) (*cql.Session, error) {
		return cql.Connect(ctx, netip.AddrPortFrom(netip.MustParseAddr(p.address), layout.NativePort), nil)
	}
	succeeds := func(t *testing.T, p *pod, id string, o v1alpha1.OperationType, a *v1alpha1.OperationArguments) {
		t.Helper()
		began := time.Now()
		s := w.operate(t, p, id, o, a)
		t.Logf("%s took %.2f s: %s", id, time.Since(began).Seconds(), s.Message)
		if s.Phase != v1alpha1.OperationSucceeded {
			t.Fatalf("%s: %+v", id, s)
		}
	}
	roles := &v1alpha1.OperationArguments{SuperuserSecret: superuserSecret, Replication: map[string]int32{"dc1": 2}}
	proof := &v1alpha1.OperationArguments{SuperuserSecret: superuserSecret}
	w.part("form", func(t *testing.T) {
		w.tickets(pods...)
		for _, p := range pods {
			w.joined(p, 5*time.Minute)
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficOpen })
			w.await(p.name, "ready", time.Minute, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
		}
		// Cassandra makes its superuser 10 s after the node has joined.
		<-time.After(15 * time.Second)
		s, err := nobody(t.Context(), pods[0])
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if r, there, err := s.Role(t.Context(), known.User); err != nil || !there || !r.Superuser {
			t.Fatalf("role %s is %+v, there %v, error %v", known.User, r, there, err)
		}
		for _, statement := range []string{`CREATE ROLE "x" WITH PASSWORD = 'x' AND LOGIN = true`,
			"ALTER ROLE cassandra WITH LOGIN = false", "GRANT SELECT ON ALL KEYSPACES TO cassandra"} {
			err := s.Change(t.Context(), statement)
			t.Logf("%s: %v", statement, err)
			if err == nil {
				t.Errorf("%s works where nobody is asked", statement)
			}
		}
	})
	w.part("roles", func(t *testing.T) {
		w.outlives(t, pods[1], "roles", v1alpha1.OperationSetRoles, roles)
		succeeds(t, pods[0], "roles-again", v1alpha1.OperationSetRoles, roles)
		for _, p := range pods {
			succeeds(t, p, "repair", v1alpha1.OperationRepair, &v1alpha1.OperationArguments{
				Keyspaces: []string{"system_auth"}, Full: true, PrimaryRange: true})
			if s := w.operate(t, p, "too-early", v1alpha1.OperationProveLogin, proof); s.Phase !=
				v1alpha1.OperationFailed || !strings.Contains(s.Message, "asks nobody") {
				t.Errorf("login is proven where nobody is asked: %+v", s)
			}
		}
	})
	asks := func(t *testing.T, p *pod, traffic v1alpha1.ClientTraffic) {
		t.Helper()
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			asksForPassword(s)
			s.ClientTraffic, s.Operations = traffic, nil
			s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "asks-" + p.name}}
		})
		w.await(p.name, "restarted", 5*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			done := r.Status.Restart
			return done != nil && done.ID == "asks-"+p.name && done.FinishedAt != nil && r.Status.ClientTraffic == traffic
		})
	}
	refuses := func(t *testing.T, p *pod) {
		t.Helper()
		if s, err := nobody(t.Context(), p); err == nil {
			s.Close()
			t.Errorf("node %s lets in without a password", p.name)
		} else {
			t.Logf("without a password: %v", err)
		}
		if _, err := p.logIn(t.Context(), known); !errors.Is(err, cql.ErrRefused) {
			t.Errorf("node %s: login as %s: %v", p.name, known.User, err)
		}
	}
	w.part("the first node", func(t *testing.T) {
		asks(t, pods[0], v1alpha1.TrafficAdministrative)
		refuses(t, pods[0])
		succeeds(t, pods[0], "grants", v1alpha1.OperationSetRoles, roles)
		succeeds(t, pods[0], "login", v1alpha1.OperationProveLogin, proof)
		s, err := pods[0].logIn(t.Context(), logins.Superuser)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, statement := range []string{`CREATE ROLE app WITH PASSWORD = 'of the app' AND LOGIN = true`,
			"GRANT SELECT ON ALL KEYSPACES TO app"} {
			if err := s.Change(t.Context(), statement); err != nil {
				t.Error(err)
			}
		}
		for _, login := range []cassandra.Login{{User: "app", Password: "of the app"}, {User: "x", Password: "y"}} {
			s, err := pods[1].logIn(t.Context(), login) // it asks nobody
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
	})
	w.part("the other", func(t *testing.T) {
		asks(t, pods[1], v1alpha1.TrafficOpen)
		w.change(pods[0].name, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficOpen })
		for _, p := range pods {
			w.await(p.name, "ready", time.Minute, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
			refuses(t, p)
			succeeds(t, p, "login-"+p.name, v1alpha1.OperationProveLogin, proof)
			s, err := p.logIn(t.Context(), cassandra.Login{User: "app", Password: "of the app"})
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
	})
}
