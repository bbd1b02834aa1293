//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// stopRing has a ring stopped, or started, and waits for nothing.
func stopRing(t *testing.T, ring *scene.Ring, yes bool) error {
	t.Helper()
	if yes {
		for _, name := range ring.NodeNames(t.Context()) {
			ring.Invariants.ExpectOtherPods(name)
		}
	}
	return ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = yes })
}

// isDown waits until nothing of a ring runs, and the cluster says that this is as it should be.
func isDown(t *testing.T, ring *scene.Ring) error {
	t.Helper()
	return ring.Until(t.Context(), 4*time.Minute, "nothing of the ring runs", func(now follow.Sight) error {
		c, found := now.Cluster(ring.Name)
		if !found || c.Status.ObservedGeneration != c.Generation || c.Status.Step == nil {
			return errors.New("the operator has not begun")
		}
		if pods := now.Pods(ring.Name); len(pods) > 0 || !strings.HasPrefix(c.Status.Step.Message, "stopped since ") {
			return fmt.Errorf("%d pods are there; %s: %s", len(pods), c.Status.Step.Name, c.Status.Step.Message)
		}
		available := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAvailable)
		if available == nil || available.Status != "False" || available.Reason != v1alpha1.ReasonStopped {
			return fmt.Errorf("the condition Available is %+v", available)
		}
		if meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReconciling) {
			return errors.New("the cluster still reconciles")
		}
		return nil
	})
}

// claimsOf a ring, by name.
func claimsOf(t *testing.T, ring *scene.Ring) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, c := range ring.Now(t.Context()).Claims(ring.Name) {
		out[c.Name] = c.UID
	}
	return out
}

// TestStopped: a ring is stopped while a client writes, and starts again in other pods. What the
// client was told stays so.
func TestStopped(t *testing.T) {
	ring := threeRacks(t)
	before, claims := identities(t, ring), claimsOf(t, ring)
	var stop, start time.Duration
	while(t, ring, nothingIsLost, "the ring is stopped and starts again", func() error {
		began := time.Now()
		if err := errors.Join(stopRing(t, ring, true), isDown(t, ring)); err != nil {
			return err
		}
		stop = time.Since(began)
		if now := claimsOf(t, ring); !maps.Equal(now, claims) || len(now) == 0 {
			return fmt.Errorf("the claims were %v and are %v", claims, now)
		}
		began = time.Now()
		err := errors.Join(stopRing(t, ring, false), ring.Serving(t.Context()))
		start = time.Since(began)
		return err
	})
	t.Logf("%6.1fs until nothing ran, %.1fs until all served", stop.Seconds(), start.Seconds())
	now := identities(t, ring)
	wantSameMembers(t, before, now)
	for name := range before {
		if now[name].podUID == before[name].podUID {
			t.Errorf("node %s still has its pod", name)
		}
	}
	wantHistory(t, ring, "StopRing")
	wantRingSeen(t, ring)
}

// TestStoppedWhileTheOperatorIsKilled: the operator is killed again and again while a ring is
// stopped and starts.
func TestStoppedWhileTheOperatorIsKilled(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	before, claims := identities(t, ring), claimsOf(t, ring)
	while(t, ring, nothingIsLost, "the ring is stopped and starts again while the operator is killed", func() error {
		stop := killing(t, ring.Scene, 27)
		err := errors.Join(stopRing(t, ring, true), isDown(t, ring), stopRing(t, ring, false),
			ring.Serving(t.Context()))
		if n := stop(); n == 0 {
			return errors.Join(err, errors.New("no operator was killed"))
		}
		return err
	})
	wantSameMembers(t, before, identities(t, ring))
	if now := claimsOf(t, ring); !maps.Equal(now, claims) {
		t.Errorf("the claims were %v and are %v", claims, now)
	}
	wantRingSeen(t, ring)
}

// TestStoppedForLong: a ring is stopped for longer than a table keeps its deletions, beside the
// five minutes for which a node need not note that it is NORMAL. No node waits for the user when it
// starts, and every row is there.
func TestStoppedForLong(t *testing.T) {
	onlyInFull(t)
	const kept, unseen = time.Minute, 5 * time.Minute
	ring, pod := onHosts(t, "e2e-stopped")
	before := identities(t, ring)
	took(t, "the agent of a node knows for how long deletions are kept", func() error {
		now := time.Now()
		if err := ring.KeepDeletions(t.Context(), kept); err != nil {
			return err
		}
		return ring.Says(t.Context(), pod.Name, layout.AgentContainer, now, "deletions are kept for another time now")
	})
	took(t, "the ring is stopped", func() error { return errors.Join(stopRing(t, ring, true), isDown(t, ring)) })
	rest(t, unseen+kept+30*time.Second)
	took(t, "the ring starts", func() error { return errors.Join(stopRing(t, ring, false), ring.Serving(t.Context())) })
	took(t, "all rows are read at ALL through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.All) })
	wantSameMembers(t, before, identities(t, ring))
	wantEvent(t, ring, "StartAllowed", "no other member was NORMAL after it")
	wantHistory(t, ring, "StopRing")
	wantRingSeen(t, ring)
}

// TestStoppedDatacenter: one of two datacenters is stopped while a client writes at LOCAL_QUORUM in
// the other one, which restarts meanwhile, and starts again in other pods. What the client was told
// stays so, and is read in both.
func TestStoppedDatacenter(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-datacenter-stops")
	grow(t, ring, "a datacenter more", 6, addDatacenter)
	before, claims := identities(t, ring), claimsOf(t, ring)
	stopped := func(yes bool) error {
		return ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Stopped = yes })
	}
	for _, n := range ring.Nodes(t.Context()) {
		if n.Spec.Datacenter == "dc2" {
			ring.Invariants.ExpectOtherPods(n.Name)
		}
	}
	what := "the second datacenter is stopped, the first restarts, the second starts"
	while(t, ring, gapsAreShort, what, func() error {
		if err := errors.Join(stopped(true), secondIsDown(t, ring)); err != nil {
			return err
		}
		err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].RestartedAt = &metav1.Time{Time: time.Now().Truncate(time.Second)}
		})
		if err != nil {
			return err
		}
		if err := errors.Join(ring.RolledOut(t.Context(), growth), secondIsDown(t, ring)); err != nil {
			return err
		}
		return errors.Join(stopped(false), ring.Serving(t.Context()))
	})
	took(t, "all rows are read at LOCAL_QUORUM through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.LocalQuorum) })
	wantSameMembers(t, before, identities(t, ring))
	if now := claimsOf(t, ring); !maps.Equal(now, claims) {
		t.Errorf("the claims were %v and are %v", claims, now)
	}
	wantHistory(t, ring, "StopDatacenter", "RollOut", "StopDatacenter")
	wantRingSeen(t, ring)
}

// secondIsDown waits until nothing of the second datacenter runs, and the cluster says what comes
// of it, and serves.
func secondIsDown(t *testing.T, ring *scene.Ring) error {
	t.Helper()
	return ring.Until(t.Context(), 4*time.Minute, "nothing of dc2 runs", func(now follow.Sight) error {
		c, found := now.Cluster(ring.Name)
		if !found || c.Status.ObservedGeneration != c.Generation || c.Status.Step != nil {
			return errors.New("the operator has not begun, or not ended")
		}
		for _, p := range now.Pods(ring.Name) {
			if p.Labels[v1alpha1.LabelDatacenter] == "dc2" {
				return fmt.Errorf("pod %s is there", p.Name)
			}
		}
		if !slices.ContainsFunc(c.Status.Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeDatacenterStopped && strings.Contains(n.Message, "dc2 is stopped since")
		}) {
			return fmt.Errorf("the notices are %+v", c.Status.Notices)
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionAvailable) {
			return fmt.Errorf("the condition Available is %+v",
				meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAvailable))
		}
		return nil
	})
}
