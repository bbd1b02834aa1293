package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// The shapes of the scenarios.
var (
	oneNode    = shape{datacenters: 1, racks: 1, nodes: 1}
	oneRack    = shape{datacenters: 1, racks: 1, nodes: 3}
	threeRacks = shape{datacenters: 1, racks: 3, nodes: 1}
	nineNodes  = shape{datacenters: 1, racks: 3, nodes: 3}
	twoCenters = shape{datacenters: 2, racks: 2, nodes: 1}
)

// Catalogue of all scenarios by name.
func Catalogue() []*Scenario {
	return append([]*Scenario{
		scenario("create-1", "one node forms a ring of its own", oneNode),
		scenario("create-3", "three racks of one node form a ring", threeRacks),
		scenario("create-rack", "three nodes of one rack form a ring", oneRack),
		scenario("create-9", "three racks of three nodes form a ring", nineNodes),
		formsWithPasswords(),
		rotatesPassword(),
		keepsRoles(),
		resetsSuperuser(),
		asksLiving(),
		turnsPasswordsOff(),
		renewsCertificates(), rotatesAuthority(), hasOwnCertificates(),
		encryptsLivingRing(),
		scenario("create-2dc", "two datacenters of two racks form a ring together", twoCenters.with(unlikeFactors)),

		threeRacks.late("create-late", "a ring of three racks forms without the node whose host is lost for good "+
			"when it has its ticket"),

		scenario("delete-retain", "a ring is deleted and its claims stay", threeRacks,
			Act{Name: "delete", Do: remove, Until: gone, Within: 20 * time.Minute, Despite: true}),
		scenario("delete-delete", "a ring is deleted and leaves nothing", threeRacks.with(deleteClaims),
			Act{Name: "delete", Do: removeData, Until: goneWithClaims, Within: 20 * time.Minute, Despite: true}),
		scenario("recreate", "a cluster of the same name is created as soon as the old one lets the name go",
			threeRacks.with(deleteClaims),
			Act{Name: "delete", Do: removeData, Until: func(w *world.World) bool { return get(w) == nil },
				Within: 20 * time.Minute, Despite: true},
			Act{Name: "create again", Do: createAgain, Until: ready, Within: 30 * time.Minute}),
		scenario("adopt", "a ring is deleted and recreated from its retained claims", threeRacks,
			Act{Name: "delete", Do: remember(remove), Until: gone, Within: 20 * time.Minute, Despite: true},
			Act{Name: "adopt", Do: adopt, Until: ready, Within: 30 * time.Minute}),
		sixNodes.restored("form-restored", "a ring is deleted with its disks, and recreated from a backup, with "+
			"roles of its own", v1alpha1.Restore{Backup: backupID, Roles: v1alpha1.RolesFresh}, sixNodes),
		threeRacks.restored("form-restored-roles", "a ring is recreated from a backup with the roles in it, and must "+
			"have rows before it serves", v1alpha1.Restore{Backup: backupID, Roles: v1alpha1.RolesRestore,
			Checks: []v1alpha1.RowCheck{{AtLeast: new(int64(1)),
				Query: "SELECT count(*) FROM " + world.Keyspace + ".rows"}}}, threeRacks),
		sixNodes.restoredSmaller("form-restored-smaller", "a ring of six is recreated from its latest backup with "+
			"three nodes, while its ledger is lost and the operators end", threeRacks),

		scenario("pod-deleted", "a pod is deleted and its node comes back at another address", threeRacks,
			Act{Name: "delete the pod", Do: deletePods(1), Until: again, Within: 15 * time.Minute}),
		scenario("all-pods-deleted", "all pods are deleted at once", threeRacks,
			Act{Name: "delete the pods", Do: deletePods(3), Until: again, Within: 20 * time.Minute}),
		scenario("jvm-killed", "a JVM is killed and starts again in place", threeRacks,
			Act{Name: "kill", Do: onePod(killJVM), Until: again, Within: 15 * time.Minute}),
		scenario("jvm-frozen", "a JVM stops answering and is made to start again", threeRacks,
			Act{Name: "freeze", Do: onePod(freezeJVM), Until: again, Within: 30 * time.Minute}),
		// An edit beside it may have a roll-out restart the JVM before its agent does.
		alone(scenario("jvm-drained", "a JVM is drained by hand, and is restarted once", threeRacks,
			Act{Name: "drain", Do: onePod(drainJVM), Until: all(again, restartedForDrain), Within: 15 * time.Minute},
			Act{Name: "drain again", Do: onePod(drainJVM), Until: blockedOn("DrainedAgain"), Within: 5 * time.Minute},
			passing("an hour", time.Hour, serves(2)),
			Act{Name: "delete the pod", Do: deletePods(1), Until: again, Within: 15 * time.Minute})),
		scenario("clock-off", "the clock of a host goes wrong, and is set right again", threeRacks,
			Act{Name: "a second ahead", Do: firstClock(time.Second), Until: clockSaid, Within: 15 * time.Minute},
			Act{Name: "nearly right", Do: firstClock(300 * time.Millisecond)},
			passing("an hour", time.Hour, clockSaid),
			Act{Name: "right", Do: firstClock(0), Until: not(clockSaid), Within: 15 * time.Minute}),
		scenario("agent-killed", "an agent is killed and its JVM runs on", threeRacks,
			Act{Name: "kill", Do: onePod(func(s *pod.Sandbox) { s.Kill(layout.AgentContainer) }), Until: again,
				Within: 15 * time.Minute}),
		scenario("host-lost", "a host is lost and comes back with its disk", threeRacks,
			Act{Name: "lose", Do: func(w *world.World) error { w.Kube.Lose(w.Kube.Hosts()[0]); return nil },
				Until: notReady, Within: 10 * time.Minute},
			Act{Name: "return", Do: func(w *world.World) error { w.Kube.Return(w.Kube.Hosts()[0], true); return nil },
				Until: again, Within: 15 * time.Minute}),
		losing(scenario("disk-lost", "a host is lost, comes back without its disk, and the node says what it has lost",
			threeRacks.with(leavesToUser),
			Act{Name: "lose", Do: func(w *world.World) error { w.Kube.Lose(w.Kube.Hosts()[0]); return nil },
				Until: notReady, Within: 10 * time.Minute},
			Act{Name: "return empty", Do: func(w *world.World) error {
				w.Kube.Return(w.Kube.Hosts()[0], false)
				return nil
			}, Until: allBut(v1alpha1.PhaseDataLost), Within: 15 * time.Minute})),
		volumesGrow(),
		threeRacks.growing(2).scenario("grow-3-6", "a ring of three grows by a node in each rack while clients write",
			nodesPerRack(2)),
		oneNode.growing(3).scenario("grow-1-3", "a single node becomes a ring of three", nodesPerRack(3),
			plannedReplicationFactor(3)),
		lowersReplication(),
		threeRacks.growing(1).scenario("grow-rack", "a ring gets a rack more", fourthRack),
		threeRacks.growing(2).scenario("grow-datacenter", "a ring gets a datacenter, to which the data is copied",
			secondDatacenter),
		forgottenWhileGrowing(), rebuiltAgain(), drainedWhileGrowing(), growsOnCordonedHosts(),

		scenario("all-down", "all hosts are lost and come back with their disks", threeRacks,
			Act{Name: "lose", Do: everyHost((*kube.Cluster).Lose), Until: nobodyServes, Within: 10 * time.Minute},
			Act{Name: "return", Do: everyHost(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: again, Within: 30 * time.Minute}),
	}, slices.Concat(recoverScenarios(), deletionScenarios(), childScenarios(), wrongScenarios(),
		rollOutScenarios(), versionScenarios(), losingScenarios(), taskScenarios(), backupScenarios(), tableScenarios(),
		repairScenarios(), leaveScenarios(), stopScenarios(), replaceScenarios(),
		ephemeralScenarios())...)
}

// Find a scenario by its name.
func Find(name string) (*Scenario, error) {
	var names []string
	for _, s := range Catalogue() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("there is no scenario %q; there are %v", name, names)
}

// creator creates a cluster of a shape.
type creator interface {
	act() Act
	zones() []string
	perZone() int
	// nodesOfFirst is how many nodes the first datacenter has.
	nodesOfFirst() int
}

func (s shape) act() Act          { return s.create() }
func (s shape) zones() []string   { return zones[:s.racks] }
func (s shape) perZone() int      { return s.datacenters * s.nodes }
func (s shape) nodesOfFirst() int { return s.racks * s.nodes }

// changed is a shape with changes of its spec.
type changed struct {
	shape
	change func(*v1alpha1.CassandraCluster)
}

func (s shape) with(change func(*v1alpha1.CassandraCluster)) changed { return changed{s, change} }
func (c changed) act() Act                                           { return c.create(c.change) }

// scenario begins with the creation of a cluster, which clients write to when it is there.
func scenario(name, about string, of creator, acts ...Act) *Scenario {
	s := &Scenario{Name: name, About: about, Zones: of.zones(), HostsPerZone: of.perZone(), Acts: []Act{of.act()}}
	if len(acts) > 0 {
		s.Acts = append(s.Acts, clientWrites(of))
	}
	s.Acts = append(s.Acts, acts...)
	return s
}

// clientWrites has a client write rows, and continue for a minute while the next acts happen.
func clientWrites(of creator) Act {
	return Act{Name: "write", Do: func(w *world.World) error {
		defer w.WriteOn(12)
		return w.WriteRows(20, map[string]int{"dc1": min(3, of.nodesOfFirst())})
	}}
}

// losing is a scenario in which a disk is lost.
func losing(s *Scenario) *Scenario {
	s.LosesDisk = true
	return s
}

// alone is a scenario beside which nothing else goes wrong.
func alone(s *Scenario) *Scenario {
	s.Alone = true
	return s
}

func unlikeFactors(c *v1alpha1.CassandraCluster) { c.Spec.Datacenters[1].PlannedReplicationFactor = 1 }

func deleteClaims(c *v1alpha1.CassandraCluster) {
	c.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
}

// removeData deletes a cluster with its data, as its user wants.
func removeData(w *world.World) error {
	w.Network.Forget(ringName)
	return remove(w)
}

func goneWithClaims(w *world.World) bool {
	return gone(w) && len(w.Server.Objects("PersistentVolumeClaim")) == 0
}

func createAgain(w *world.World) error {
	return w.User().Create(context.Background(), threeRacks.cluster(deleteClaims))
}

// former is the uid of the cluster that was deleted, kept in the world's notes.
const former = "former cluster"

func remember(do func(*world.World) error) func(*world.World) error {
	return func(w *world.World) error {
		if c := get(w); c != nil {
			w.Notes[former] = string(c.UID)
		}
		return do(w)
	}
}

func adopt(w *world.World) error {
	return w.User().Create(context.Background(), threeRacks.cluster(func(c *v1alpha1.CassandraCluster) {
		c.Spec.Bootstrap = &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: types.UID(w.Notes[former])}}
	}))
}

func deletePods(n int) func(*world.World) error {
	return func(w *world.World) error {
		all := w.Pods.Sandboxes() // a fault may have taken some already
		for _, s := range all[:min(n, len(all))] {
			if err := w.User().Delete(context.Background(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: s.Name()}}); err != nil {
				return err
			}
		}
		return nil
	}
}

// onePod does something to the first pod, if there is any.
func onePod(do func(*pod.Sandbox)) func(*world.World) error {
	return func(w *world.World) error {
		if all := w.Pods.Sandboxes(); len(all) > 0 {
			do(all[0])
		}
		return nil
	}
}

func killJVM(s *pod.Sandbox) {
	if j := s.JVM(); j != nil {
		j.Kill()
	}
}

func drainJVM(s *pod.Sandbox) {
	if j := s.JVM(); j != nil {
		j.Drain()
	}
}

// firstClock has the clock of the first host be ahead by so much.
func firstClock(ahead time.Duration) func(*world.World) error {
	return func(w *world.World) error { w.SetClock(w.Kube.Hosts()[0], ahead); return nil }
}

var clockSaid = blockedWith(v1alpha1.NoticeClocksDiffer, clusterName+"-dc1-r1-0")

func freezeJVM(s *pod.Sandbox) {
	if j := s.JVM(); j != nil {
		j.Freeze(false)
	}
}

func everyHost(do func(*kube.Cluster, string)) func(*world.World) error {
	return func(w *world.World) error {
		for _, name := range w.Kube.Hosts() {
			do(w.Kube, name)
		}
		return nil
	}
}

// blockedOn says that an agent holds something back for a reason.
func blockedOn(reason v1alpha1.Reason) func(*world.World) bool {
	return func(w *world.World) bool {
		return slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
			b := o.(*v1alpha1.CassandraNode).Status.Blocked
			return b != nil && b.Reason == reason
		})
	}
}

func nobodyServes(w *world.World) bool {
	c := get(w)
	return c != nil && c.Status.ReadyNodes == 0
}

// allBut says that one node waits for the user in this phase, by its own word, and that by the
// cluster's the others serve.
func allBut(phase v1alpha1.NodePhase) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return c != nil && c.Status.ReadyNodes == c.Status.Nodes-1 &&
			slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
				return o.(*v1alpha1.CassandraNode).Status.Phase == phase
			})
	}
}

// late is a scenario in which the last node gets its ticket and never comes.
func (s shape) late(name, about string) *Scenario {
	create := s.create()
	create.Until = ticketsOut
	out := losing(scenario(name, about, s))
	out.LosesNode = true
	last := func(w *world.World) string { return w.Kube.Hosts()[s.racks*s.nodes-1] }
	out.Acts = []Act{
		create,
		{Name: "lose", Do: func(w *world.World) error { w.Kube.Scrap(last(w)); return nil },
			Until: func(w *world.World) bool { return unheard(w, last(w)) }, Within: 5 * time.Minute},
		{Name: "say that it is lost for good", Do: func(w *world.World) error { return deleteByForce(w, last(w)) },
			Until: formedWithout(1), Within: time.Hour},
	}
	return out
}

// unheard says that Kubernetes has noticed that a host is silent.
func unheard(w *world.World, host string) bool {
	n, _ := w.Server.Object("Node", types.NamespacedName{Name: host}).(*corev1.Node)
	return n != nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

// deleteByForce deletes the pods of a host, as a user does who knows that it never comes back.
func deleteByForce(w *world.World, host string) error {
	var errs []error
	for _, o := range w.Server.Objects("Pod") {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == host {
			errs = append(errs, client.IgnoreNotFound(w.User().Delete(context.Background(), pod.DeepCopy(),
				client.GracePeriodSeconds(0))))
		}
	}
	return errors.Join(errs...)
}

func ticketsOut(w *world.World) bool {
	all := w.Server.Objects("CassandraNode")
	return len(all) > 0 && !slices.ContainsFunc(all,
		func(o client.Object) bool { return o.(*v1alpha1.CassandraNode).Spec.Join == nil })
}

// formedWithout says that a ring has formed without some of the nodes, and that the cluster says
// so.
func formedWithout(n int32) func(w *world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return c != nil && (c.Status.Step == nil || c.Status.Step.Name != string(ledger.FormRing)) &&
			c.Status.ReadyNodes > 0 && c.Status.ReadyNodes == c.Status.Nodes-n
	}
}

func notReady(w *world.World) bool {
	c := get(w)
	return c != nil && c.Status.ReadyNodes < c.Status.Nodes
}

// again says that every node serves, and that the cluster says so.
func again(w *world.World) bool {
	if !ready(w) {
		return false
	}
	c := get(w)
	serving := int32(0)
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) && j.NativeOpen() {
			serving++
		}
	}
	return serving == c.Status.Nodes && c.Status.ReadyNodes == c.Status.Nodes
}
