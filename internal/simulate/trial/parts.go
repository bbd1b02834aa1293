package trial

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/world"
)

// ClusterName of all scenarios.
const ClusterName = clusterName

// With is the scenario under another name, with acts put before the one of that name, or at the end
// if there is none.
func (s *Scenario) With(name, before string, acts ...Act) *Scenario {
	out := *s
	out.Name = name
	at := slices.IndexFunc(s.Acts, func(a Act) bool { return a.Name == before })
	if at < 0 {
		at = len(s.Acts)
	}
	out.Acts = slices.Insert(slices.Clone(s.Acts), at, acts...)
	return &out
}

// Named begins a scenario with a cluster of one node in each of three racks, which clients write to
// if write is set. Change may be nil.
func Named(name, about string, write bool, change func(*v1alpha1.CassandraCluster), acts ...Act) *Scenario {
	var of creator = threeRacks
	if change != nil {
		of = threeRacks.with(change)
	}
	s := scenario(name, about, of)
	if write {
		s.Acts = append(s.Acts, clientWrites(of))
	}
	s.Acts = append(s.Acts, acts...)
	return s
}

// Cluster as it is at the API server; nil if there is none.
func Cluster(w *world.World) *v1alpha1.CassandraCluster { return get(w) }

// Serves says that every node of the cluster serves clients, and that the cluster says so.
func Serves(w *world.World) bool { return again(w) }

// Edit has the user change the spec.
func Edit(name string, change func(*v1alpha1.CassandraCluster), until func(*world.World) bool,
	within time.Duration) Act {
	return Act{Name: name, Until: until, Within: within, Do: func(w *world.World) error {
		c := get(w).DeepCopy()
		change(c)
		return w.User().Update(context.Background(), c)
	}}
}

// ThreeRacks is the cluster of Named. Change may be nil.
func ThreeRacks(change func(*v1alpha1.CassandraCluster)) *v1alpha1.CassandraCluster {
	c := threeRacks.cluster()
	if change != nil {
		change(c)
	}
	return c
}

// OneNode is a cluster of one node.
func OneNode() *v1alpha1.CassandraCluster {
	return oneNode.cluster(confine, func(c *v1alpha1.CassandraCluster) {
		c.Spec.Repair.Window = &v1alpha1.RepairWindow{Start: "01:00",
			Duration: metav1.Duration{Duration: 6 * time.Hour}}
	})
}
