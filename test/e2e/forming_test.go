//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/cqlclient"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// TestTwoDatacenters: two datacenters form together, each with its own settings, and replicate to
// each other.
func TestTwoDatacenters(t *testing.T) {
	s := open(t, "e2e-two")
	var ring *scene.Ring
	took(t, "two datacenters have formed", func() (err error) {
		ring, err = s.Form(t.Context(), sampleOf(t, "two-datacenters.yaml"))
		return err
	})
	wantRingSeen(t, ring)
	wantSystemKeyspaces(t, ring, map[string]string{"online": "3", "analytics": "1"})
	wantToldOnce(t, ring, v1alpha1.EventFormed)
	took(t, "rows are written in both and read in each", func() error {
		if err := ring.Fill(t.Context(), gocql.EachQuorum); err != nil {
			return err
		}
		return ring.ReadBack(t.Context(), gocql.LocalQuorum)
	})
	for _, n := range ring.Nodes(t.Context()) {
		want := "5000ms" // the default of Cassandra 5.0
		if n.Spec.Datacenter == "analytics" {
			want = "30s"
		}
		if got := setting(t, ring, n.Name, "read_request_timeout"); got != want {
			t.Errorf("node %s has read_request_timeout %q, want %q", n.Name, got, want)
		}
	}
}

// wantToldOnce fails unless one event of a cluster has a reason, and is told one time.
func wantToldOnce(t *testing.T, r *scene.Ring, reason string) {
	t.Helper()
	events := &corev1.EventList{}
	if err := kubernetes.Client.List(t.Context(), events, client.InNamespace(r.Namespace)); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range events.Items {
		if e.Reason == reason && e.InvolvedObject.Name == r.Name {
			told = append(told, e.Message)
			if e.Series != nil {
				t.Errorf("the event %s is told %d times", reason, e.Series.Count)
			}
		}
	}
	if len(told) != 1 {
		t.Errorf("the event %s is told as %q, want once", reason, told)
	}
}

// setting is what a running node says of one of its settings.
func setting(t *testing.T, r *scene.Ring, node, name string) string {
	t.Helper()
	session, err := r.Session(t.Context(), node)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer session.Close()
	var value string
	if err := session.Query("SELECT value FROM system_views.settings WHERE name = ?",
		name).Consistency(gocql.One).ScanContext(t.Context(), &value); err != nil {
		t.Errorf("read setting %s of node %s: %v", name, node, err)
	}
	return value
}

// TestThreeRacks: a ring forms at once, each rack in its zone, with equal shares, one schema, and
// system keyspaces that survive the loss of a rack.
func TestThreeRacks(t *testing.T) {
	ring := threeRacks(t)
	wantRingSeen(t, ring)
	wantInZones(t, ring)
	wantSystemKeyspaces(t, ring, map[string]string{"dc1": "3"})
	took(t, "rows are read through every node", func() error { return ring.ReadBack(t.Context(), gocql.All) })

	budget := &policyv1.PodDisruptionBudget{}
	key := client.ObjectKey{Namespace: ring.Namespace, Name: v1alpha1.DisruptionBudgetName(ring.Name, "dc1")}
	if err := kubernetes.Client.Get(t.Context(), key, budget); err != nil {
		t.Error(err)
	} else if budget.Spec.MinAvailable == nil || budget.Spec.MinAvailable.IntValue() != 2 {
		t.Errorf("the disruption budget keeps %v of three nodes, want 2", budget.Spec.MinAvailable)
	}
	for _, pod := range ring.Now(t.Context()).Pods(ring.Name) {
		wantNoTokenBesideCassandra(t, &pod)
	}
}

// wantInZones fails if a rack's nodes are not in the zone that the spec says.
func wantInZones(t *testing.T, r *scene.Ring) {
	t.Helper()
	wanted := map[string]string{}
	for _, dc := range r.Spec.Datacenters {
		for _, rack := range dc.Racks {
			if rack.Node != nil && rack.Node.Placement != nil {
				wanted[dc.Name+"/"+rack.Name] = rack.Node.Placement.Zone
			}
		}
	}
	for _, n := range r.Nodes(t.Context()) {
		pod, found := r.Now(t.Context()).Pod(n.Name)
		if !found {
			t.Errorf("node %s has no pod", n.Name)
			continue
		}
		host := &corev1.Node{}
		if err := kubernetes.Client.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, host); err != nil {
			t.Error(err)
			continue
		}
		want, got := wanted[n.Spec.Datacenter+"/"+n.Spec.Rack], host.Labels[corev1.LabelTopologyZone]
		if want != "" && got != want {
			t.Errorf("node %s of rack %s is in zone %q, want %q", n.Name, n.Spec.Rack, got, want)
		}
	}
}

// wantSystemKeyspaces fails if the system keyspaces are not replicated like this, by datacenter, in
// the view of every node.
func wantSystemKeyspaces(t *testing.T, r *scene.Ring, want map[string]string) {
	t.Helper()
	wanted := map[string]string{"class": "org.apache.cassandra.locator.NetworkTopologyStrategy"}
	for dc, copies := range want {
		wanted[dc] = copies
	}
	for _, node := range r.NodeNames(t.Context()) {
		session, err := r.Session(t.Context(), node)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, keyspace := range []string{"system_auth", "system_distributed", "system_traces"} {
			if got, err := replicationOf(t, session, keyspace); err != nil || fmt.Sprint(got) != fmt.Sprint(wanted) {
				t.Errorf("node %s has keyspace %s replicated as %v, error %v; want %v", node, keyspace, got, err,
					wanted)
			}
		}
		session.Close()
	}
}

func replicationOf(t *testing.T, session *cqlclient.Session, keyspace string) (map[string]string, error) {
	t.Helper()
	var got map[string]string
	err := session.Query("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?",
		keyspace).Consistency(gocql.One).ScanContext(t.Context(), &got)
	return got, err
}

// wantNoTokenBesideCassandra fails if the container in which Cassandra runs could speak to the API
// server.
func wantNoTokenBesideCassandra(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	for _, c := range pod.Spec.Containers {
		for _, mount := range c.VolumeMounts {
			if c.Name == layout.CassandraContainer && strings.HasPrefix(mount.MountPath, "/var/run/secrets") {
				t.Errorf("pod %s has %s mounted in container %s", pod.Name, mount.MountPath, c.Name)
			}
		}
	}
}
