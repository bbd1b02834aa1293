//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
)

// TestPasswordsOnALivingRing: a ring that was made without passwords is to ask for them. A client
// that has none is served while the first node waits for roles, is then given one, and is served
// until all ask; and while they are turned off again.
func TestPasswordsOnALivingRing(t *testing.T) {
	onlyInFull(t)
	authenticate := func(mode v1alpha1.AuthenticationMode) func(*v1alpha1.CassandraClusterSpec) {
		return func(s *v1alpha1.CassandraClusterSpec) {
			s.Security = &v1alpha1.Security{Authentication: &v1alpha1.Authentication{Mode: mode}}
		}
	}
	ring := forGrowth(t, "e2e-passwords", authenticate(v1alpha1.AuthenticationNone))
	onlyHere(t, ring.Scene)
	before := identities(t, ring)
	except := func(s *v1alpha1.CassandraClusterSpec, e v1alpha1.Exception) {
		e.Reason, e.Until = "it was agreed", metav1.NewTime(time.Now().Add(time.Hour))
		s.Exceptions = append(s.Exceptions, e)
	}
	has := func(mode v1alpha1.AuthenticationMode) error {
		return ring.Until(t.Context(), rollingOut, "all nodes have "+string(mode), func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			if s := c.Status.Security; s == nil || s.Authentication.Mode != mode || s.Authentication.Next != "" {
				return errors.New("they have not")
			}
			return nil
		})
	}
	while(t, ring, servedThroughout, "all ask, the first of them before applications have roles", func() error {
		if err := ring.Edit(t.Context(), authenticate(v1alpha1.AuthenticationPassword)); err != nil {
			return err
		}
		first := ""
		err := ring.Until(t.Context(), rollingOut, "a node waits for roles", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			blocked := c.Status.Blocked
			at := slices.IndexFunc(blocked, func(b v1alpha1.BlockedStep) bool {
				return b.Reason == v1alpha1.BlockedRolesNotReady
			})
			if at < 0 {
				return errors.New("none does")
			}
			first = blocked[at].Nodes[0]
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := ring.Run(t.Context(), first, "cqlsh", "-e", "SELECT count(*) FROM e2e.rows"); err == nil {
			t.Errorf("node %s accepts a client without a password", first)
		}
		// what the status asks for before the roles are said to be ready
		if err := ring.LogIn(t.Context(), first); err != nil {
			return err
		}
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			except(s, v1alpha1.Exception{Name: "ready", Type: v1alpha1.ExceptionRolesReady, Node: first})
		}); err != nil {
			return err
		}
		return has(v1alpha1.AuthenticationPassword)
	})
	wantShell(t, ring)
	while(t, ring, servedThroughout, "passwords are turned off", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			authenticate(v1alpha1.AuthenticationNone)(s)
			except(s, v1alpha1.Exception{Name: "off", Type: v1alpha1.ExceptionTurnOffPassword})
		}); err != nil {
			return err
		}
		return has(v1alpha1.AuthenticationNone)
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestPasswordRotated: the superuser's password is replaced in its Secret while a client is there:
// twice within seconds, by one that is none, and while a host is lost. Nothing is restarted, and in
// the end only the last password is accepted.
func TestPasswordRotated(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-rotated")
	was := jvms(t, ring)
	rotate := func(password string) string {
		t.Helper()
		version, err := ring.Rotate(t.Context(), password)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	rotated := func(version string) error {
		if err := ring.Rotated(t.Context(), version, growth); err != nil {
			return err
		}
		return ring.LogIn(t.Context(), ring.NodeNames(t.Context())[0]) // as an application is given it
	}
	while(t, ring, servedThroughout, "the password is replaced twice at once", func() error {
		rotate(rand.Text())
		return rotated(rotate(rand.Text()))
	})
	while(t, ring, servedThroughout, "it is replaced by none, which is refused, and by another one", func() error {
		rotate("")
		if err := ring.Until(t.Context(), growth, "it is refused", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			if !slices.ContainsFunc(c.Status.Blocked, func(b v1alpha1.BlockedStep) bool {
				return b.Reason == v1alpha1.BlockedSuperuserInvalid
			}) {
				return fmt.Errorf("blocked are %+v", c.Status.Blocked)
			}
			return nil
		}); err != nil {
			return err
		}
		return rotated(rotate(rand.Text()))
	})
	for name, now := range jvms(t, ring) {
		if now != was[name] {
			t.Errorf("the JVM of node %s was %+v and is %+v", name, was[name], now)
		}
	}
	ring.Invariants.ExpectRestart(pod.Name)
	while(t, ring, gapsAreShort, "it is replaced while a host is lost, which comes back", func() error {
		if err := ring.LoseHost(t.Context(), pod.Spec.NodeName, false); err != nil {
			return err
		}
		err := ring.Until(t.Context(), growth, "the cluster says that a node is down",
			func(now follow.Sight) error { return notHealthy(now, ring, pod.Name) })
		version := rotate(rand.Text())
		err = errors.Join(err, ring.ReturnHost(context.WithoutCancel(t.Context()), pod.Spec.NodeName))
		if err != nil {
			return err
		}
		return rotated(version)
	})
	wantShell(t, ring)
	wantRingSeen(t, ring)
}
