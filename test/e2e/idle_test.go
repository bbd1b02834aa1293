//go:build e2e

package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// settling is how long after the last change the end of it may still be written down: agents
	// look at tables once a minute, and the status says when they are to be repaired.
	settling = 80 * time.Second
	// idleness is how long is measured here; `make bench` measures ten minutes.
	idleness = 30 * time.Second
)

// TestIdle: a cluster to which nothing happens causes no write to the API server, by the operator
// or by any agent.
func TestIdle(t *testing.T) {
	ring := threeRacks(t)
	if _, err := ring.Local(); errors.Is(err, scene.ErrNotHere) {
		t.Skipf("the audit log of the API server is not at hand: %v", err)
	}
	others := &v1alpha1.CassandraClusterList{}
	if err := kubernetes.Client.List(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	for _, c := range others.Items {
		if c.UID != ring.UID {
			t.Skipf("the cluster %s/%s is there too, and its writes would be counted", c.Namespace, c.Name)
		}
	}
	took(t, "all nodes serve", func() error { return ring.Serving(t.Context()) })
	pass(t, settling)
	since := time.Now()
	before, _ := ring.Now(t.Context()).Cluster(ring.Name)
	// the local cluster has no plugin that enforces policies
	if !slices.ContainsFunc(before.Status.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticeNetworkPolicyNotEnforced
	}) {
		t.Errorf("nothing says that network policies have no effect here: %+v", before.Status.Notices)
	}
	pass(t, idleness)
	counts, err := ring.Writes(since)
	if err != nil {
		t.Fatal(err)
	}
	if n := scene.Total(counts); n != 0 {
		after, _ := ring.Now(t.Context()).Cluster(ring.Name)
		t.Errorf("%d writes in %s in which nothing happened:\n%s\nwhat they changed of the status:\n%s",
			n, idleness, scene.Listed(counts), cmp.Diff(before.Status, after.Status))
	}
	all, err := ring.Writes(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if scene.Total(all) == 0 {
		t.Error("the audit log has no write of ours at all: what was counted is not ours")
	}
}

// pass lets time pass: what is measured is what happens in it.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
