//go:build e2e

package e2e

import (
	"errors"
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
