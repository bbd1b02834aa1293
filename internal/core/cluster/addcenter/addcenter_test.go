package addcenter

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/ring"
)

// The system keyspaces come to a datacenter whether the user names them or not, and once.
func TestEachKeyspaceIsExtendedOnce(t *testing.T) {
	for name, named := range map[string][]string{"none": nil, "one of the system": {"system_auth", "zoo"},
		"one of the user": {"zoo"}} {
		want := append(slices.Clone(ring.SystemKeyspaces()), "zoo")[:3+min(len(named), 1)]
		x := &Extension{Keyspaces: map[string]int32{}}
		for _, keyspace := range named {
			x.Keyspaces[keyspace] = 3
		}
		if got := x.all(); !slices.Equal(got, want) {
			t.Errorf("%s is named: %v, want %v", name, got, want)
		}
	}
}

// A datacenter is rebuilt from one that is formed, and that is not itself.
func TestWhereADatacenterIsRebuiltFrom(t *testing.T) {
	for from, want := range map[string]string{"": "dc1", "dc1": "dc1", "dc4": "dc4", "dc3": "", "dc2": "",
		"elsewhere": ""} {
		cluster := &v1alpha1.CassandraCluster{}
		for _, name := range []string{"dc3", "dc2", "dc1", "dc4"} {
			cluster.Spec.Datacenters = append(cluster.Spec.Datacenters, v1alpha1.Datacenter{Name: name})
		}
		dc := &cluster.Spec.Datacenters[1]
		dc.Extend = &v1alpha1.Extend{From: from}
		s := &facts.Snapshot{Cluster: cluster, Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1",
			"dc4"}}}}
		got := ""
		if source := source(assess.NewView(s, metav1.Now().Time), dc); source != nil {
			got = source.Name
		}
		if got != want {
			t.Errorf("from %q it is %q, want %q", from, got, want)
		}
	}
}
