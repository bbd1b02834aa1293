package trial

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/simulate/world"
)

// Scenario is a scenario with a known end.
type Scenario struct {
	Name string
	// About says in a sentence what happens.
	About string
	// Zones and hosts in each of the world.
	Zones        []string
	HostsPerZone int
	// Waits says that a roll-out waits at its end.
	Waits bool
	// LosesDisk says that a disk is lost in it: with a fault beside that, a write can be lost that
	// was on two disks only.
	LosesDisk bool
	// LosesNode says that a node is lost in it for good.
	LosesNode bool
	// Grows says that there are hosts for more nodes than the ring begins with.
	Grows bool
	// Keeps says that its acts end when all is as it was kept.
	Keeps bool
	// Resizes says that heaps follow from memory limits in it.
	Resizes bool
	// Forgets says that records are recreated from the spec after the JVMs were started.
	Forgets bool
	// Tries says that how many pods it takes depends on when things happen in it.
	Tries bool
	// Alone says that no fault is injected beside what happens in it: it ends with a disk that
	// nothing replaces, or rests on what one JVM or one record has lived through.
	Alone bool
	// InVain is how many JVMs may start in vain in it, when a fault changes the order in which
	// nodes come back.
	InVain int
	// Renews says that a node whose pod goes is replaced in it: by a fault beside that once more.
	Renews bool
	// Acts happen one after the other.
	Acts []Act
}

// Act is something that the user or fate does, and how things stand when it is over.
type Act struct {
	Name string
	// Do does it. An error is one of the scenario, not of the product.
	Do func(w *world.World) error
	// Until holds at the end.
	Until func(w *world.World) bool
	// Within bounds it; a fault adds its own delay.
	Within time.Duration
	// Despite says that it comes to its own end whatever was lost before.
	Despite bool
}

// clusterName of the cluster in all scenarios, and ringName inside Cassandra.
const (
	clusterName = "orders"
	ringName    = world.Namespace + "." + clusterName
)

// shape of a cluster: nodes of each rack of each datacenter.
type shape struct {
	datacenters, racks, nodes int
}

// cluster in that shape: small nodes, a rack in each zone.
func (s shape) cluster(change ...func(*v1alpha1.CassandraCluster)) *v1alpha1.CassandraCluster {
	var text strings.Builder
	fmt.Fprintf(&text, `
metadata: {namespace: %s, name: %s}
spec:
  version: 5.0.6
  security: {authentication: {mode: None}, networkPolicy: {mode: None},
    encryption: {internode: {mode: Disabled}, clients: {mode: Disabled}}}
  node:
    resources: {limits: {memory: 2Gi}}
    storage: {claims: {data: {size: 2Gi}}}
    jvm: {heap: 384Mi}
  datacenters:
`, world.Namespace, clusterName)
	for d := range s.datacenters {
		fmt.Fprintf(&text, "  - {name: dc%d, nodesPerRack: %d, plannedReplicationFactor: %d, racks: [", d+1, s.nodes,
			min(3, s.racks*s.nodes))
		for r := range s.racks {
			fmt.Fprintf(&text, "{name: r%d, node: {placement: {zone: %s}}}, ", r+1, zones[r])
		}
		text.WriteString("]}\n")
	}
	c := &v1alpha1.CassandraCluster{}
	if err := yaml.UnmarshalStrict([]byte(text.String()), c); err != nil {
		panic(fmt.Sprintf("scenario's cluster: %v", err)) // it is part of the program
	}
	for _, f := range change {
		f(c)
	}
	return c
}

var zones = []string{"a", "b", "c", "d"}

// create has the user create the cluster, and waits until it serves.
func (s shape) create(change ...func(*v1alpha1.CassandraCluster)) Act {
	return Act{
		Name:   "create",
		Do:     func(w *world.World) error { return w.User().Create(context.Background(), s.cluster(change...)) },
		Until:  ready,
		Within: 15 * time.Minute,
	}
}

// wantedNodes are those that a cluster's spec describes, as its ring is made.
func wantedNodes(c *v1alpha1.CassandraCluster) []render.Wanted {
	out := render.WantedNodes(c, world.Install)
	encryption := (&facts.Snapshot{Cluster: c}).Encryption()
	for i := range out {
		out[i].Configuration.Encryption, out[i].Pod.Certificates = encryption, encryption.Uses()
		out[i].Configuration.Authentication = cmp.Or(c.Spec.AuthenticationMode(), v1alpha1.AuthenticationPassword)
	}
	return out
}

func get(w *world.World) *v1alpha1.CassandraCluster {
	c, _ := w.Server.Object("CassandraCluster", keyOf(clusterName)).(*v1alpha1.CassandraCluster)
	return c
}

// ready says that the cluster is as its spec wants it, in its own words.
func ready(w *world.World) bool {
	c := get(w)
	return c != nil && c.Status.ObservedGeneration == c.Generation &&
		meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) &&
		!meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReconciling)
}

// gone says that the cluster and all that a user must not find afterwards is gone.
func gone(w *world.World) bool {
	if get(w) != nil {
		return false
	}
	for _, kind := range []string{"CassandraNode", "Pod", "Service", "ConfigMap", "Secret", "PodDisruptionBudget",
		"NetworkPolicy", "ServiceAccount", "Role", "RoleBinding"} {
		for _, o := range w.Server.Objects(kind) {
			if o.GetLabels()[v1alpha1.LabelCluster] == clusterName {
				return false
			}
		}
	}
	return true
}

func remove(w *world.World) error {
	return client.IgnoreNotFound(w.User().Delete(context.Background(), shape{}.cluster()))
}
