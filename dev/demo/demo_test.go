package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

func sample(t *testing.T) *v1alpha1.CassandraCluster {
	t.Helper()
	c, err := readSample("../../" + samplePath)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func machines(zones ...string) []corev1.Node {
	var all []corev1.Node
	for _, zone := range zones {
		m := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
			Status: corev1.ConditionTrue}}}}
		if zone != "" {
			m.ObjectMeta = metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: zone}}
		}
		all = append(all, m)
	}
	return all
}

func zones(c *v1alpha1.CassandraCluster) []string {
	var all []string
	for _, rack := range c.Spec.Datacenters[0].Racks {
		all = append(all, zoneOf(rack))
	}
	return all
}

func TestTheSampleIsMadeToFitTheMachines(t *testing.T) {
	drained := machines("a", "b", "c")
	drained[2].Spec.Unschedulable = true
	for _, c := range []struct {
		name     string
		machines []corev1.Node
		zones    []string
		affinity v1alpha1.HostAntiAffinity
		said     []string
	}{
		{"as the sample has it", machines("c", "a", "b"), []string{"a", "b", "c"}, v1alpha1.HostAntiAffinityRequired,
			nil},
		{"zones with other names", machines("z", "x", "y", "w"), []string{"w", "x", "y"},
			v1alpha1.HostAntiAffinityRequired, []string{"zones w, x, y"}},
		{"no zones", machines("", "", ""), []string{"", "", ""}, v1alpha1.HostAntiAffinityRequired,
			[]string{"not bound to zones"}},
		{"one machine", machines("a"), []string{"", "", ""}, v1alpha1.HostAntiAffinityPreferred,
			[]string{"not bound to zones", "may share a machine"}},
		{"one of three is drained", drained, []string{"", "", ""}, v1alpha1.HostAntiAffinityPreferred,
			[]string{"not bound to zones", "may share a machine"}},
	} {
		cluster := sample(t)
		said := fit(cluster, c.machines)
		if got := zones(cluster); !slices.Equal(got, c.zones) {
			t.Errorf("%s: zones %q, want %q", c.name, got, c.zones)
		}
		if got := cluster.Spec.Node.Placement.HostAntiAffinity; got != c.affinity {
			t.Errorf("%s: hostAntiAffinity %s, want %s", c.name, got, c.affinity)
		}
		if len(said) != len(c.said) {
			t.Errorf("%s: said %q, want %q", c.name, said, c.said)
			continue
		}
		for i := range said {
			if !strings.Contains(said[i], c.said[i]) {
				t.Errorf("%s: said %q, want %q in it", c.name, said[i], c.said[i])
			}
		}
	}
}

func TestTheKeyspaceHasTheCopiesThatTheClusterPlansFor(t *testing.T) {
	c := sample(t)
	c.Spec.Datacenters = append(c.Spec.Datacenters, v1alpha1.Datacenter{
		Name: "dc2", DatacenterName: "DC 2", PlannedReplicationFactor: 3, NodesPerRack: 2,
		Racks: []v1alpha1.Rack{{Name: "r1"}},
	})
	want := "CREATE KEYSPACE IF NOT EXISTS demo WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3, " +
		"'DC 2': 2}"
	if got := createKeyspace(c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := nodeNames(c); !slices.Equal(got,
		[]string{"demo-dc1-r1-0", "demo-dc1-r2-0", "demo-dc1-r3-0", "demo-dc2-r1-0"}) {
		t.Errorf("nodes %q", got)
	}
}
