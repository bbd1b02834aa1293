package trial

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// sixNodes are two in each of three racks.
var sixNodes = shape{datacenters: 1, racks: 3, nodes: 2}

// leaveScenarios are those in which nodes leave a ring while clients write.
func leaveScenarios() []*Scenario {
	of := func(of creator, name, about string, acts ...Act) *Scenario {
		s := scenario(name, about, of, acts...)
		s.Grows = true
		return s
	}
	leave := func(name, about string, acts ...Act) *Scenario { return of(sixNodes, name, about, acts...) }
	act := func(name string, until func(*world.World) bool, changes ...func(*v1alpha1.CassandraClusterSpec)) Act {
		return Act{Name: name, Do: whileClientsWrite(3, append(changes, deletesClaims)...), Until: until,
			Within: 2 * time.Hour}
	}
	to := func(n int32, until func(*world.World) bool) Act {
		return act("to "+strconv.Itoa(int(n))+" in each rack", until, nodesPerRack(n))
	}
	fourRacks := shape{datacenters: 1, racks: 4, nodes: 1}
	return []*Scenario{
		leave("leave-nodes", "a ring of six shrinks by a node in each rack while clients write", to(1, shrunk)),
		leave("leave-taken-back", "a ring of six is to shrink, and grows again when the first node is on its way out",
			to(1, Operates(v1alpha1.OperationDecommission)), to(2, grown)),
		leave("leave-killed", "a ring of six shrinks, and the first JVM that leaves is killed",
			to(1, isLeaving), Act{Name: "kill", Do: killLeaver, Until: shrunk, Within: 2 * time.Hour}),
		leave("leave-cut-off", "a ring of six shrinks, and the host of the first node that leaves is cut off for "+
			"minutes", to(1, isLeaving), Act{Name: "cut off", Do: cutLeaverOff, Until: shrunk, Within: 2 * time.Hour}),
		of(fourRacks, "leave-rack", "a ring of four racks loses one while clients write",
			act("take it out", shrunk, withoutRack(3))),
		of(fourRacks, "leave-rack-back", "a ring is to lose a rack, which is put back when its node is on its way out",
			act("take it out", Operates(v1alpha1.OperationDecommission), withoutRack(3)),
			act("put it back", grown, fourthRack)),
		leave("leave-rack-allowed", "a ring of three racks is to lose one, with which nodes of one rack would hold "+
			"two replicas of a row, and then may",
			act("take it out", stalledWith(v1alpha1.ReasonInvalidSpec, "2 racks left"), withoutRack(2)),
			act("allow it", shrunkTo(4), func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters[0].AllowFewerRacks = true
			})),
		of(threeRacks.growing(1), "rename-rack", "a rack gets another name: its node leaves when that of the new one "+
			"has joined", act("rename", shrunk, fourthRack, withoutRack(2))),
		leave("remove-first", "a ring of six shrinks by a node in each rack, the first of one before the other, "+
			"and grows again", Act{Name: "name it", Do: except(v1alpha1.ExceptionRemoveFirst)},
			to(1, all(shrunk, not(recorded("r1-0")), recorded("r1-1"))),
			Act{Name: "delete the ledger", Do: func(w *world.World) error {
				return client.IgnoreNotFound(deleteLedger(w))
			}, Until: all(shrunk, recorded("r1-1")), Within: time.Hour},
			to(2, all(grown, recorded("r1-0"), recorded("r1-1")))),
		removeDatacenter("remove-datacenter", "a datacenter is removed from the replication of its keyspaces while "+
			"clients write there, and leaves", recommends("RemoveDatacenter"),
			Act{Name: "take it out", Do: respec(firstAlone), Until: shrunk, Within: 2 * time.Hour}),
		removeDatacenter("remove-datacenter-back", "a datacenter is to lose all replicas, and stays after all "+
			"when they are repaired", repairedBy(6),
			Act{Name: "keep it", Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters[1].Withdraw = nil
			}), Until: grown, Within: 2 * time.Hour}),
		scenario("leave-refused", "a ring of three is to shrink to fewer nodes than a keyspace has replicas", oneRack,
			Act{Name: "to two nodes", Do: whileClientsWrite(3, nodesPerRack(2)),
				Until:  stalledWith(v1alpha1.ReasonInvalidSpec, "has 3 replicas in datacenter dc1"),
				Within: 10 * time.Minute},
			Act{Name: "take it back", Do: whileClientsWrite(3, nodesPerRack(3)), Until: again,
				Within: 10 * time.Minute}),
	}
}

// repairedBy says that so many nodes have repaired what a procedure asks for.
func repairedBy(nodes int) func(*world.World) bool {
	return func(w *world.World) bool {
		done := 0
		for _, object := range w.Server.Objects("CassandraNode") {
			n := object.(*v1alpha1.CassandraNode)
			if slices.ContainsFunc(n.Spec.Operations, func(i v1alpha1.OperationIntent) bool {
				o := n.Status.Operation(i.ID)
				return i.Type == v1alpha1.OperationRepair && o != nil && o.Phase == v1alpha1.OperationSucceeded
			}) {
				done++
			}
		}
		return done >= nodes
	}
}

// removeDatacenter is a datacenter that is removed from all replication and leaves, while clients
// write there at LOCAL_QUORUM. The other one has missed what they wrote before, and so has one of
// its own nodes.
func removeDatacenter(name, about string, until func(*world.World) bool, acts ...Act) *Scenario {
	const rows = 20
	both := map[string]int{"dc1": 3, "dc2": 3}
	of := shape{datacenters: 2, racks: 3, nodes: 1}.with(func(c *v1alpha1.CassandraCluster) { deletesClaims(&c.Spec) })
	s := scenario(name, about, of)
	s.Acts = append(s.Acts,
		Act{Name: "write", Do: func(w *world.World) error { return w.WriteRows(rows, both) }},
		Act{Name: "write in the second", Do: func(w *world.World) error {
			w.WriteWithin("dc2", "local", rows)
			for _, s := range w.Pods.Sandboxes() {
				if strings.HasPrefix(s.Name(), clusterName+"-dc1-") || s.Name() == clusterName+"-dc2-r1-0" {
					s.Content(v1alpha1.VolumeData).Data.WipeRows()
				}
			}
			return nil
		}},
		Act{Name: "withdraw", Do: func(w *world.World) error {
			for i := range writesWhileGrowing {
				w.Line.After(time.Duration(i)*betweenWrites, "clients write in the second",
					func() { w.WriteWithin("dc2", "last", 5) })
			}
			return respec(withdrawn)(w)
		}, Until: until, Within: 2 * time.Hour})
	s.Acts = append(s.Acts, acts...)
	s.Grows, s.LosesDisk = true, true
	return s
}

func deletesClaims(s *v1alpha1.CassandraClusterSpec) { s.Volumes.OnScaleIn = v1alpha1.ClaimDelete }

// withoutRack takes the rack at a place out of the first datacenter.
func withoutRack(i int) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks = slices.Delete(s.Datacenters[0].Racks, i, i+1)
	}
}

func withdrawn(s *v1alpha1.CassandraClusterSpec) {
	s.Datacenters[1].Withdraw = &v1alpha1.Withdraw{All: true}
}

// firstAlone takes the second datacenter out of a spec.
func firstAlone(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] }

// whileClientsWrite changes the spec, and has clients write for two minutes from then on, with so
// many replicas.
func whileClientsWrite(replicas int, changes ...func(*v1alpha1.CassandraClusterSpec)) func(*world.World) error {
	return func(w *world.World) error {
		c := get(w).DeepCopy()
		for _, change := range changes {
			change(&c.Spec)
		}
		for i := range writesWhileGrowing {
			w.Line.After(time.Duration(i)*betweenWrites, "clients write", func() {
				err := w.WriteRows(5, map[string]int{"dc1": replicas})
				if err != nil && !errors.Is(err, world.ErrUnserved) {
					panic(err) // of the model, not of the product
				}
			})
		}
		return w.User().Update(context.Background(), c)
	}
}

// shrunk says that the three nodes of the spec serve, and that nothing is left of those that have
// left. What a user has begun to join meanwhile, and taken back, leaves its claim.
func shrunk(w *world.World) bool { return shrunkTo(3)(w) }

func shrunkTo(nodes int) func(*world.World) bool {
	return func(w *world.World) bool {
		return grown(w) && len(w.Server.Objects("CassandraNode")) == nodes && len(w.Server.Objects("Pod")) == nodes &&
			!slices.ContainsFunc(w.Server.Objects("PersistentVolumeClaim"), func(o client.Object) bool {
				v := w.Kube.Volume(o.(*corev1.PersistentVolumeClaim))
				return v != nil && gaveAway(pod.ContentOf(v).Data)
			})
	}
}

// recorded says that a node of the first datacenter has a record.
func recorded(node string) func(*world.World) bool {
	return func(w *world.World) bool {
		return w.Server.Object("CassandraNode", keyOf(clusterName+"-dc1-"+node)) != nil
	}
}

func isLeaving(w *world.World) bool { return leaver(w) != nil }

// leaver is the pod of a JVM that leaves; nil if none does.
func leaver(w *world.World) *pod.Sandbox {
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeLeaving) {
			return s
		}
	}
	return nil
}

// killLeaver kills the JVM that leaves, unless a fault has done it.
func killLeaver(w *world.World) error {
	if s := leaver(w); s != nil {
		s.JVM().Kill()
	}
	return nil
}

// cutLeaverOff has the others see it down before it has given its data to them.
func cutLeaverOff(w *world.World) error {
	if s := leaver(w); s != nil {
		w.Partition(s.Host(), true)
		w.Line.After(5*time.Minute, "heal", func() { w.Heal(s.Host()) })
	}
	return nil
}

// gaveAway says that a disk is that of a member which has given its data to the others.
func gaveAway(d *cassandra.Disk) bool {
	local := d.Report().Local
	return local != nil && (local.Bootstrapped == disk.Decommissioned || local.Bootstrapped == disk.NeedsBootstrap)
}

// left says that a node has left the ring: by its disk, or since it is lost and was removed; and in
// the view of every member that is up.
func (o *checker) left(name, hostID string, l *ledger.Ledger) bool {
	d := o.disk(name)
	if l == nil || (d == nil || !gaveAway(d)) && !slices.Contains(l.Replaced, hostID) {
		return false
	}
	for other, j := range o.topology.members(l.Members) {
		if other != name && slices.Contains(j.Sight().Members, hostID) {
			return false
		}
	}
	return true
}
