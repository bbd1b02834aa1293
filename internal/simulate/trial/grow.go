package trial

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// growing is a shape of which a ring grows: there are hosts for more nodes.
type growing struct {
	shape
	hosts int
}

func (s shape) growing(hosts int) growing { return growing{s, hosts} }

func (g growing) zones() []string { return zones[:min(g.racks+1, len(zones))] }
func (g growing) perZone() int    { return g.hosts }

// scenario is one in which a ring grows by a change of its spec while clients write.
func (g growing) scenario(name, about string, changes ...func(*v1alpha1.CassandraClusterSpec)) *Scenario {
	s := scenario(name, about, g, Act{Name: "grow", Within: time.Hour, Until: grown, Do: func(w *world.World) error {
		return whileClientsWrite(min(3, g.nodesOfFirst()), changes...)(w)
	}})
	s.Grows = true
	return s
}

const (
	writesWhileGrowing = 40
	betweenWrites      = 3 * time.Second
)

func nodesPerRack(n int32) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NodesPerRack = n }
}

func plannedReplicationFactor(n int32) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].PlannedReplicationFactor = n }
}

// secondDatacenter is in the zones of the first, and as the first was before anybody edited it.
// lowersReplication is a ring whose system keyspaces are to have one replica, not three. One node
// has lost rows of them that the others have.
func lowersReplication() *Scenario {
	const keyspace = "system_distributed"
	return losing(scenario("lower-replication", "the planned replication factor is lowered to one: the system "+
		"keyspaces lose replicas when they are repaired, and no row", threeRacks,
		Act{Name: "write there", Do: func(w *world.World) error {
			for i, j := range slices.Repeat(jvms(w), 8) {
				_ = j.Write(keyspace, "view-"+strconv.Itoa(i), "built", ring.Quorum) // none is owed that is refused
			}
			return nil
		}}, passing("a minute", time.Minute),
		Act{Name: "lower it", Within: time.Hour, Until: all(grown, usesFactor(1)), Do: func(w *world.World) error {
			_ = onePod(func(s *pod.Sandbox) { s.Content(v1alpha1.VolumeData).Data.LoseRows(keyspace) })(w)
			return respec(plannedReplicationFactor(1))(w)
		}}))
}

// usesFactor says that by the ledger the first datacenter makes use of a replication factor.
func usesFactor(n int32) func(*world.World) bool {
	return func(w *world.World) bool {
		return slices.ContainsFunc(w.Server.Objects("ConfigMap"), func(o client.Object) bool {
			l, err := ledger.Decode(o.(*corev1.ConfigMap).Data, types.UID(o.GetLabels()[v1alpha1.LabelClusterUID]))
			return err == nil && l.Replication["dc1"] == n
		})
	}
}

func secondDatacenter(s *v1alpha1.CassandraClusterSpec) {
	dc := threeRacks.cluster().Spec.Datacenters[0]
	dc.Name = "dc2"
	dc.Extend = &v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: world.Keyspace}},
		LocalConsistencyOnly: true}
	s.Datacenters = append(s.Datacenters, dc)
}

// forgottenWhileGrowing is a datacenter that is added, which must not open client traffic before it
// has the data, whatever the operator remembers.
func forgottenWhileGrowing() *Scenario {
	s := threeRacks.growing(2).scenario("grow-forgotten",
		"while a datacenter gets its data somebody deletes all records, and the ledger before they are recreated",
		secondDatacenter)
	s.Acts[len(s.Acts)-1].Until = Operates(v1alpha1.OperationRebuild)
	s.Acts = append(s.Acts, forgetting(grown, time.Hour)...)
	s.Forgets = true
	return s
}

// rebuiltAgain is a datacenter that is added, whose nodes are told to copy the data of another one
// until they have it, whatever an earlier attempt has brought.
func rebuiltAgain() *Scenario {
	s := threeRacks.growing(2).scenario("grow-rebuilt-again",
		"while a datacenter gets its data an agent is killed, and a stream breaks", secondDatacenter)
	rebuilds := func(w *world.World) *pod.Sandbox {
		for _, s := range w.Pods.Sandboxes() {
			if strings.HasPrefix(s.Name(), clusterName+"-dc2-") && s.JVM() != nil && s.JVM().Rebuilds() {
				return s
			}
		}
		return nil
	}
	s.Acts[len(s.Acts)-1].Until = func(w *world.World) bool { return rebuilds(w) != nil }
	s.Acts = append(s.Acts, Act{Name: "kill the agent, break a stream", Within: time.Hour, Until: grown,
		Do: func(w *world.World) error {
			if s := rebuilds(w); s != nil { // a fault may have ended it
				s.Kill(layout.AgentContainer)
			}
			w.Network.FailStreams(1)
			return nil
		}})
	return s
}

// Operates says that a node is told to carry an operation out.
func Operates(kind v1alpha1.OperationType) func(*world.World) bool {
	return func(w *world.World) bool {
		return slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
			return slices.ContainsFunc(o.(*v1alpha1.CassandraNode).Spec.Operations,
				func(o v1alpha1.OperationIntent) bool { return o.Type == kind })
		})
	}
}

// grown says that every node of the spec serves, and that nothing is left to do.
func grown(w *world.World) bool {
	c := get(w)
	return again(w) && c.Status.ObservedGeneration == c.Generation && c.Status.Step == nil
}

// drainedWhileGrowing is a queue of joins in which somebody drains the host of a member: that does
// not wait until all have joined.
func drainedWhileGrowing() *Scenario {
	s := threeRacks.growing(2).scenario("grow-drained",
		"a ring of three grows by a node in each rack, and after the first of them the host of a member is drained",
		nodesPerRack(2))
	s.Acts[len(s.Acts)-1].Until = func(w *world.World) bool {
		c := get(w)
		return c.Status.Step != nil && c.Status.Step.Name == string(ledger.JoinNode)
	}
	s.Acts = append(s.Acts,
		Act{Name: "drain", Do: drain, Until: drainedBeforeTheEnd, Within: 20 * time.Minute},
		Act{Name: "uncordon", Do: first(func(k *kube.Cluster, name string) { k.Cordon(name, false) }), Until: grown,
			Within: time.Hour})
	return s
}

// growsOnCordonedHosts is a ring that is to grow although the host of a member is cordoned, by the
// word of a person.
func growsOnCordonedHosts() *Scenario {
	s := threeRacks.growing(1).scenario("grow-overruled", "a ring gets a rack more although the host of a member is "+
		"cordoned, once a person overrules the guard", fourthRack)
	last := len(s.Acts) - 1
	s.Acts[last].Until = blockedWith(v1alpha1.BlockedHostCordoned, clusterName+"-dc1-r1-0")
	s.Acts = slices.Insert(s.Acts, last, Act{Name: "cordon", Do: first(func(k *kube.Cluster, name string) {
		k.Cordon(name, true)
	})})
	s.Acts = append(s.Acts, Act{Name: "overrule", Do: func(w *world.World) error {
		e := exceptionOf(w, v1alpha1.ExceptionOverrideGuard, "")
		e.Guard = v1alpha1.OverrideHostCordoned
		return respec(func(s *v1alpha1.CassandraClusterSpec) { s.Exceptions = append(s.Exceptions, e) })(w)
	}, Until: all(grown, func(w *world.World) bool { return get(w).Status.Exceptions[0].UsedAt != nil }),
		Within: time.Hour})
	return s
}

// grewUnaware says that a ring has grown although a host is cordoned, which the operator saw only
// when all had joined: nobody had to overrule anything.
func (r *run) grewUnaware() bool {
	return r.Fault.View == "Node" && grown(r.w) && slices.ContainsFunc(r.w.Server.Objects("Node"),
		func(o client.Object) bool { return o.(*corev1.Node).Spec.Unschedulable }) &&
		!slices.ContainsFunc(get(r.w).Status.Exceptions,
			func(e v1alpha1.ExceptionStatus) bool { return e.UsedAt != nil })
}

// drained notes how many members there were when a host was drained.
const drained = "members when drained"

// drain cordons the first host, and asks for the eviction of its pod until it is granted.
func drain(w *world.World) error {
	w.Kube.Cordon(w.Kube.Hosts()[0], true)
	var ask func()
	ask = func() {
		if apierrors.IsTooManyRequests(w.Kube.Evict(keyOf(clusterName + "-dc1-r1-0"))) {
			w.Line.After(5*time.Second, "drain", ask)
			return
		}
		w.Notes[drained] = strconv.Itoa(members(w))
	}
	ask()
	return nil
}

func drainedBeforeTheEnd(w *world.World) bool {
	n, err := strconv.Atoi(w.Notes[drained])
	return err == nil && n < 6
}

// members counts the nodes that have joined by their records.
func members(w *world.World) int {
	n := 0
	for _, o := range w.Server.Objects("CassandraNode") {
		if o.(*v1alpha1.CassandraNode).Spec.Member != nil {
			n++
		}
	}
	return n
}

// volumesGrow asks for larger volumes, which their class lets grow only later.
func volumesGrow() *Scenario {
	class, size := apiserver.GrowingStorageClass, resource.MustParse("4Gi")
	letGrow := func(allowed bool) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, AllowVolumeExpansion: &allowed}
	}
	grown := func(w *world.World) bool {
		claims := w.Server.Objects("PersistentVolumeClaim")
		return !slices.ContainsFunc(claims, func(o client.Object) bool {
			return !o.(*corev1.PersistentVolumeClaim).Status.Capacity.Storage().Equal(size)
		})
	}
	return scenario("volumes-grow", "the volumes of a ring that serves become larger, once their class lets them",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) {
			c.Spec.Node.Storage.Claims.Data.StorageClassName = &class
		}),
		Act{Name: "ask for more", Do: func(w *world.World) error {
			if err := w.User().Create(context.Background(), letGrow(false)); err != nil {
				return err
			}
			return whileWriting(func(s *v1alpha1.CassandraClusterSpec) { s.Node.Storage.Claims.Data.Size = &size })(w)
		}, Until: stalledWith(v1alpha1.ReasonUnsupportedChange, "does not let volumes grow"), Within: 10 * time.Minute},
		Act{Name: "let them grow", Do: func(w *world.World) error {
			return w.User().Update(context.Background(), letGrow(true))
		}, Until: all(rolledOut, grown), Within: 30 * time.Minute})
}
