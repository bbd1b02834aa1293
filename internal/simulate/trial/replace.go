package trial

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// The node that is lost, and one that has missed what others have.
const (
	lostNode = clusterName + "-dc1-r1-0"
	laggard  = clusterName + "-dc1-r2-0"
)

// replaceScenarios are those in which a member is lost and replaced without hands.
func replaceScenarios() []*Scenario {
	return []*Scenario{
		ReplaceLostDisk("replace-disk-lost", "the disk of a member is lost while another one lacks rows: the others "+
			"are repaired, and the node is replaced", v1alpha1.ReplacementRepairBefore),
		replaceCutOff(), replaceHostGone(), replaceAsked(), replaceUnheard(), replaceUnheardLate(),
		ReplacePlanned("replace-planned", v1alpha1.ReplacementRepairBefore), replaceTakenBack(),
		removeLost(), replaceDiskFailing(),
	}
}

// replaceDiskFailing is a member whose volume is mounted read-only, after errors: it serves on
// until its JVM ends, which is all that makes it a lost one. It is replaced on another volume.
func replaceDiskFailing() *Scenario {
	fails := blockedWith(v1alpha1.NoticeDiskFailing, lostNode, "read-only", "--planned")
	return elsewhere(scenario("replace-disk-failing", "the disk of a member fails: that is said while it serves, and "+
		"when its JVM has ended for long enough the node is replaced on another volume",
		threeRacks.with(replacesBy(v1alpha1.ReplacementRepairBefore)),
		Act{Name: "have the disk fail", Do: onLostNode(func(s *pod.Sandbox) {
			s.Content(v1alpha1.VolumeData).Failing = true
		}), Until: all(fails, serves(3)), Within: 15 * time.Minute},
		passing("half an hour", 30*time.Minute, all(fails, serves(3), not(replaced))),
		Act{Name: "kill the JVM", Do: func(w *world.World) error {
			w.Line.After(time.Minute, "a client writes", func() { probe(w, 60) })
			return onLostNode(killJVM)(w)
		}, Until: all(replaced, grown, not(fails)), Within: time.Hour}))
}

// onLostNode does something to the pod of the lost node.
func onLostNode(do func(*pod.Sandbox)) func(*world.World) error {
	return func(w *world.World) error {
		for _, s := range w.Pods.Sandboxes() {
			if s.Name() == lostNode {
				do(s)
			}
		}
		return nil
	}
}

// ReplaceLostDisk is a ring in which the disk of a member is lost while another one lacks what it
// was sent, and that is repaired before the node is replaced, or after.
func ReplaceLostDisk(name, about string, repair v1alpha1.ReplacementRepair) *Scenario {
	return replacing(scenario(name, about, threeRacks.with(replacesBy(repair)),
		Act{Name: "have one lack rows", Do: lacksRows},
		Act{Name: "lose the disk", Do: loseDiskOf(lostNode), Until: all(replaced, grown), Within: time.Hour}))
}

// replaceCutOff is a replacement whose JVM is killed while it streams: the same ticket begins
// again.
func replaceCutOff() *Scenario {
	return replacing(scenario("replace-cut-off", "the JVM of a replacement is killed while it streams",
		threeRacks.with(replacesBy(v1alpha1.ReplacementRepairBefore)),
		Act{Name: "lose the disk", Do: loseDiskOf(lostNode), Until: joins, Within: time.Hour},
		Act{Name: "kill the replacement", Do: onLostNode(killJVM), Until: all(replaced, grown), Within: time.Hour}))
}

// replaceHostGone is a member whose host is gone for certain, and its volume with it: it gets
// another one elsewhere, and the claim of the first stays.
func replaceHostGone() *Scenario {
	s := elsewhere(scenario("replace-host-gone", "the host of a member is gone for good: the node is replaced on "+
		"another",
		threeRacks.with(replacesBy(v1alpha1.ReplacementRepairBefore)),
		Act{Name: "lose the host", Do: func(w *world.World) error {
			w.Line.After(time.Minute, "a client writes", func() { probe(w, 60) })
			w.Kube.Scrap(lostHost(w))
			return nil
		}, Until: notReady, Within: 10 * time.Minute},
		Act{Name: "say that it is gone", Do: func(w *world.World) error {
			return w.Kube.Unregister(lostHost(w))
		}, Until: all(replaced, grown), Within: time.Hour}))
	s.HostsPerZone = 2
	return s
}

// replaceUnheard is a member whose disk is lost while the ring is stopped: when it has started, no
// other member has gossip of it.
func replaceUnheard() *Scenario {
	return replacing(scenario("replace-unheard", "the disk of a member is lost while the ring is stopped: it is "+
		"removed from the ring, and its node joins as a new one",
		threeRacks.with(replacesBy(v1alpha1.ReplacementRepairBefore)),
		Act{Name: "stop", Do: func(w *world.World) error {
			lostHost(w)
			return respec(stopping(true))(w)
		}, Until: isStopped, Within: 30 * time.Minute},
		Act{Name: "lose the disk", Do: func(w *world.World) error {
			w.Kube.Lose(lostHost(w))
			w.Kube.Return(lostHost(w), false)
			return nil
		}},
		Act{Name: "start", Do: respec(stopping(false)), Until: all(replaced, grown), Within: 2 * time.Hour}))
}

// replaceUnheardLate is a replacement that begins, and all JVMs start again: no member has gossip
// any more of the one that is replaced.
func replaceUnheardLate() *Scenario {
	return replacing(scenario("replace-unheard-late", "all JVMs are killed while a replacement streams: the lost "+
		"member is removed from the ring, and its node joins as a new one when a user has cleared its disk",
		threeRacks.with(replacesBy(v1alpha1.ReplacementRepairBefore)),
		Act{Name: "lose the disk", Do: loseDiskOf(lostNode), Until: joins, Within: time.Hour},
		Act{Name: "kill all", Do: func(w *world.World) error {
			for _, s := range w.Pods.Sandboxes() {
				killJVM(s)
			}
			return nil
		}, Until: blockedWith(v1alpha1.BlockedJoiningDiskNotEmpty, "delete its claim and its pod"), Within: time.Hour},
		Act{Name: "clear the disk", Do: func(w *world.World) error {
			present, _ := w.Server.Object("Pod", keyOf(lostNode)).(*corev1.Pod)
			return errors.Join(w.User().Delete(context.Background(), claimOf(w, lostNode).DeepCopy()),
				w.User().Delete(context.Background(), present.DeepCopy()))
		}, Until: all(replaced, grown), Within: time.Hour}))
}

// replaceAsked is a ring whose user decides on replacements.
func replaceAsked() *Scenario {
	return replacing(scenario("replace-asked", "the disk of a member is lost, and it is replaced when its user asks "+
		"for it",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) {
			replacesBy(v1alpha1.ReplacementRepairAfter)(c)
			c.Spec.Replacement.Mode, c.Spec.Repair.Mode = v1alpha1.AutomationRecommend, v1alpha1.RepairAutomatic
		}),
		Act{Name: "lose the disk", Do: loseDiskOf(lostNode), Until: recommends("Replace"), Within: 15 * time.Minute},
		passing("half an hour", 30*time.Minute, not(replaced)),
		Act{Name: "ask for it", Do: func(w *world.World) error {
			return respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Exceptions = append(s.Exceptions, v1alpha1.Exception{Name: "replace", Type: v1alpha1.ExceptionReplace,
					Node: lostNode, Reason: "its disk is gone",
					Until: metav1.NewTime(w.Line.Now().Add(24 * time.Hour))})
			})(w)
		}, Until: all(replaced, grown, repairScheduled), Within: time.Hour}))
}

// ReplacePlanned is a ring in which a task gives up the disk of a member that is up, while another
// one lacks what it was sent, and that is repaired before the node is replaced, or after.
func ReplacePlanned(name string, repair v1alpha1.ReplacementRepair, then ...Act) *Scenario {
	s := scenario(name, "a task gives up the disk of a member while another one lacks rows: the node is stopped, the "+
		"others are repaired, and the node is replaced on another volume",
		threeRacks.with(replacesBy(repair)),
		Act{Name: "have one lack rows", Do: lacksRows},
		Act{Name: "create the task", Do: func(w *world.World) error {
			t := task(v1alpha1.TaskReplace, 1)
			t.Spec.Nodes = []string{lostNode}
			return w.User().Create(context.Background(), t)
		}, Until: all(replaced, grown, taskIs(v1alpha1.TaskSucceeded)), Within: time.Hour})
	if then != nil {
		s.Acts[len(s.Acts)-1].Until = isStoppedAlone
		s.Acts = append(s.Acts, then...)
	}
	return elsewhere(s)
}

// replaceTakenBack is a replacement whose task is deleted while its node is stopped: the node
// starts again on its disk.
func replaceTakenBack() *Scenario {
	s := ReplacePlanned("replace-taken-back", v1alpha1.ReplacementRepairBefore,
		Act{Name: "delete the task", Do: func(w *world.World) error {
			return w.User().Delete(context.Background(), task("", 0))
		}, Until: all(grown, not(replaced)), Within: 30 * time.Minute})
	s.LosesDisk = false
	return s
}

// removeLost is a ring that is to shrink by a member whose disk is lost: it is removed by a task,
// and the others leave then.
func removeLost() *Scenario {
	const unwanted = clusterName + "-dc1-r1-1"
	s := replacing(scenario("remove-lost", "a ring of six is to shrink to three, and one of those that are to leave "+
		"has lost its disk: a task removes it, and the others leave",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) {
			nodesPerRack(2)(&c.Spec)
			leavesToUser(c)
		}),
		Act{Name: "lose the disk", Do: loseDiskOf(unwanted), Until: recommends("Replace"), Within: 15 * time.Minute},
		Act{Name: "shrink", Do: respec(nodesPerRack(1)), Until: blockedWith(v1alpha1.BlockedMemberDown, unwanted),
			Within: 15 * time.Minute},
		Act{Name: "create the task", Do: func(w *world.World) error {
			t := task(v1alpha1.TaskRemove, 1)
			t.Spec.Nodes = []string{unwanted}
			return w.User().Create(context.Background(), t)
		}, Until: all(recordsAre(3), idle, taskIs(v1alpha1.TaskSucceeded)), Within: 2 * time.Hour}))
	s.HostsPerZone = 2
	s.Tries = true // the removal is put off, and the node gets a pod meanwhile, if another member goes down
	return s
}

// isStoppedAlone says that the node which is to be replaced has no pod any more.
func isStoppedAlone(w *world.World) bool {
	n, _ := w.Server.Object("CassandraNode", keyOf(lostNode)).(*v1alpha1.CassandraNode)
	return n != nil && n.Spec.State == v1alpha1.StateStopped && w.Server.Object("Pod", keyOf(lostNode)) == nil
}

// elsewhere is one in which the node gets another claim. No fault is injected beside it: the
// claim is named after the host id of the member that was, which is another one where a fault has
// members form the ring in another order.
func elsewhere(s *Scenario) *Scenario { return alone(replacing(s)) }

// replacing is a scenario in which a member is lost and replaced.
func replacing(s *Scenario) *Scenario {
	s.Grows = true // a node joins
	return losing(s)
}

// replacesBy has lost members be replaced as soon as may be.
func replacesBy(repair v1alpha1.ReplacementRepair) func(*v1alpha1.CassandraCluster) {
	return func(c *v1alpha1.CassandraCluster) {
		c.Spec.Replacement = v1alpha1.ReplacementPolicy{After: &metav1.Duration{Duration: 10 * time.Minute},
			Repair: repair}
		if repair == v1alpha1.ReplacementRepairAfter {
			c.Spec.Repair.Mode = v1alpha1.RepairRecommend // else what is lacking comes back soon
		}
	}
}

// leavesToUser has the user decide on replacements.
func leavesToUser(c *v1alpha1.CassandraCluster) {
	c.Spec.Replacement.Mode = v1alpha1.AutomationRecommend
}

// lacksRows has a node lack what it was sent: it was missed, and no hint brings it.
func lacksRows(w *world.World) error {
	for _, s := range w.Pods.Sandboxes() {
		if s.Name() == laggard {
			s.Content(v1alpha1.VolumeData).Data.WipeRows()
		}
	}
	return nil
}

// replaced says that the lost node is another member, and that its record knows whose place it
// took.
func replaced(w *world.World) bool {
	n, _ := w.Server.Object("CassandraNode", keyOf(lostNode)).(*v1alpha1.CassandraNode)
	return n != nil && len(n.Spec.Replaced) > 0 && n.Spec.Join == nil && n.Spec.Member != nil &&
		!slices.ContainsFunc(n.Spec.Replaced,
			func(r v1alpha1.ReplacedMember) bool { return r.HostID == n.Spec.Member.HostID })
}

// lostHost is that where the data of the lost node is.
func lostHost(w *world.World) string {
	const key = "the host that is lost"
	if w.Notes[key] == "" {
		for _, s := range w.Pods.Sandboxes() {
			if s.Name() == lostNode {
				w.Notes[key] = s.Host()
			}
		}
	}
	return w.Notes[key]
}

// claimOf is the claim for data that the record of a node pins, or that of a node without a record;
// nil if there is none.
func claimOf(w *world.World, node string) *corev1.PersistentVolumeClaim {
	name := v1alpha1.ClaimName(v1alpha1.VolumeData, node)
	if n, _ := w.Server.Object("CassandraNode", keyOf(node)).(*v1alpha1.CassandraNode); n != nil {
		name = ""
		for _, c := range n.Spec.Claims {
			if c.Volume == v1alpha1.VolumeData {
				name = c.Name
			}
		}
	}
	claim, _ := w.Server.Object("PersistentVolumeClaim", keyOf(name)).(*corev1.PersistentVolumeClaim)
	return claim
}

// takesPlaceOf says that a record lets its node take the place of a member.
func takesPlaceOf(n *v1alpha1.CassandraNode, hostID string) bool {
	return n != nil && slices.ContainsFunc(n.Spec.Replaced,
		func(r v1alpha1.ReplacedMember) bool { return r.HostID == hostID })
}

// hasReplaced says that a node has taken the place of a member, and so has another host id, if it
// has not left since.
func (r *run) hasReplaced() bool {
	return len(r.checker.lastLedger.Replaced) > 0 || slices.ContainsFunc(r.w.Server.Objects("CassandraNode"),
		func(o client.Object) bool { return len(o.(*v1alpha1.CassandraNode).Spec.Replaced) > 0 })
}
