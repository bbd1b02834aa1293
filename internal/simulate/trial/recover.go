package trial

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// trying is a scenario in which pods are tried until one does it.
func trying(s *Scenario) *Scenario {
	s.Tries = true
	return s
}

// startingInVain is a scenario in which so many nodes may come back at the address of a member when
// no agent runs that could tell them. Cassandra does not let them in as soon as another node knows,
// and they get other pods.
func startingInVain(nodes int, s *Scenario) *Scenario {
	s.InVain = nodes
	return s
}

// unfit is a scenario in which Cassandra ends, and does not start for a quarter of an hour, because
// of what is on a disk, which nobody touches but a user.
func unfit(name, about, words string, spoil func(d *cassandra.Disk, yes bool)) *Scenario {
	const node = clusterName + "-dc1-r1-0"
	do := func(yes bool) func(*world.World) error {
		return func(w *world.World) error {
			claim, _ := w.Server.Object("PersistentVolumeClaim",
				keyOf(v1alpha1.ClaimName(v1alpha1.VolumeData, node))).(*corev1.PersistentVolumeClaim)
			if claim == nil || w.Kube.Volume(claim) == nil {
				return fmt.Errorf("node %s has no disk", node)
			}
			spoil(pod.ContentOf(w.Kube.Volume(claim)).Data, yes)
			for _, s := range w.Pods.Sandboxes() {
				if yes && s.Name() == node {
					killJVM(s)
				}
			}
			return nil
		}
	}
	said := blockedSaying(words, node)
	return scenario(name, about, threeRacks,
		Act{Name: "spoil", Do: do(true), Until: said, Within: 15 * time.Minute},
		passing("a quarter of an hour", 15*time.Minute, said, serves(2)),
		Act{Name: "mend", Do: do(false), Until: again, Within: 15 * time.Minute})
}

// peersSeenLate is a scenario in which a node that starts sees its peers up late, and then not all.
func peersSeenLate() *Scenario {
	cut := func(change func(n *cassandra.Network, a, b netip.Addr)) func(*world.World) error {
		return func(w *world.World) error {
			all := w.Pods.Sandboxes()
			if len(all) < 3 {
				return nil // a fault has taken some
			}
			for _, other := range all[1:] {
				change(w.Network, all[0].Address(), other.Address())
			}
			return nil
		}
	}
	return scenario("seen-late", "nodes that start see their peers up late, and one does not see them at all for some "+
		"minutes", threeRacks,
		Act{Name: "kill with slow echoes", Do: func(w *world.World) error {
			w.Network.SlowEcho(time.Minute)
			return onePod(killJVM)(w)
		}, Until: again, Within: 15 * time.Minute},
		Act{Name: "cut and kill", Do: func(w *world.World) error {
			w.Network.SlowEcho(0)
			return errors.Join(cut((*cassandra.Network).Block)(w), onePod(killJVM)(w))
		}, Until: again, Within: 15 * time.Minute},
		Act{Name: "mend", Do: cut((*cassandra.Network).Unblock), Until: again, Within: 15 * time.Minute})
}

// recoverScenarios are what happens to the pods, hosts and programs of a ring that serves.
func recoverScenarios() []*Scenario {
	return []*Scenario{
		trying(scenario("pod-rejected", "a host refuses the pod of a member for an hour, and takes it then", threeRacks,
			Act{Name: "refuse", Do: refuse, Until: pausing(3, "OutOfcpu", "requested: 500"), Within: 15 * time.Minute},
			Act{Name: "restart the operator", Do: restartOperator, Until: pausing(4), Within: 15 * time.Minute},
			anHour(),
			Act{Name: "take it again", Do: func(w *world.World) error {
				w.Kube.Reject(w.Kube.Hosts()[0], "", "")
				return nil
			}, Until: again, Within: 15 * time.Minute})),
		peersSeenLate(),
		unfit("disk-full", "a disk is full, and its node waits until there is room again", "no space left on device",
			func(d *cassandra.Disk, yes bool) { d.Fill(yes) }),
		unfit("file-corrupt", "a file is corrupt, and its node waits until somebody has mended it",
			"Corrupted: nb-1-big-Data.db", func(d *cassandra.Disk, yes bool) {
				if d.Corrupt(""); yes {
					d.Corrupt("Corrupted: nb-1-big-Data.db")
				}
			}),
		scenario("all-down-too-long", "all hosts are down for longer than a table keeps its deletions, and come back",
			threeRacks,
			Act{Name: "create a table", Do: keepDeletions},
			passing("ten minutes", 10*time.Minute, again), // the agents hear of it
			Act{Name: "lose", Do: everyHost((*kube.Cluster).Lose), Until: nobodyServes, Within: 10 * time.Minute},
			anHour(),
			Act{Name: "return", Do: everyHost(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: again, Within: 30 * time.Minute}),
		scenario("start-anyway", "a host is down for longer than a table keeps its deletions, and a user lets its "+
			"node start and has it repaired", threeRacks,
			Act{Name: "create a table, and let people repair", Do: func(w *world.World) error {
				if err := keepDeletions(w); err != nil {
					return err
				}
				return respec(func(s *v1alpha1.CassandraClusterSpec) {
					s.Repair.Mode = v1alpha1.RepairRecommend
				})(w)
			}},
			passing("ten minutes", 10*time.Minute, again), // the agents hear of it
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: readyNodes(2), Within: 10 * time.Minute},
			anHour(),
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: all(allBut(v1alpha1.PhaseDownTooLong), serves(2)), Within: 15 * time.Minute},
			Act{Name: "start anyway", Do: except(v1alpha1.ExceptionStartAnyway),
				Until:  all(again, recommends("Repair")),
				Within: 15 * time.Minute},
			Act{Name: "repair", Do: except(v1alpha1.ExceptionRepair), Until: all(again, not(recommends("Repair")),
				succeeded("Repair")), Within: 15 * time.Minute}),
		scenario("down-too-long", "a host is down for longer than a table keeps its deletions, and its node waits "+
			"for the user", threeRacks,
			Act{Name: "create a table", Do: keepDeletions},
			passing("ten minutes", 10*time.Minute, again), // the agents hear of it
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: readyNodes(2), Within: 10 * time.Minute},
			anHour(),
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: all(allBut(v1alpha1.PhaseDownTooLong), serves(2)), Within: 15 * time.Minute}),
		scenario("pod-evicted", "a host runs out of memory and evicts its pod", threeRacks,
			Act{Name: "evict", Do: func(w *world.World) error {
				w.Kube.Press(w.Kube.Hosts()[0], "The node was low on resource: memory. Threshold quantity: 100Mi, "+
					"available: 41Mi.")
				return nil
			}, Until: notReady, Within: 10 * time.Minute},
			Act{Name: "wait", Until: again, Within: 15 * time.Minute}),
		scenario("stuck", "a lost host keeps the pod of a node that is told to stop, until somebody says that it is "+
			"gone; then it comes back with its disk", threeRacks,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose),
				Until:  blockedWith("HostUnreachable", "m-a-0", "orders-dc1-r1-0", "out-of-service"),
				Within: 10 * time.Minute},
			Act{Name: "delete the pod", Do: func(w *world.World) error { return deleteFrom(w, w.Kube.Hosts()[0]) },
				Until: blockedWith("HostUnreachable", "told to stop or not"), Within: 10 * time.Minute},
			anHour(),
			Act{Name: "say that it is gone", Do: first((*kube.Cluster).Taint),
				Until: blockedWith("VolumeHostUnavailable", "m-a-0", "which is gone"), Within: 10 * time.Minute},
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Untaint(name); k.Return(name, true) }),
				Until: again, Within: 15 * time.Minute}),
		scenario("unregistered", "the Node object of a lost host is deleted, and the host comes back with its disk",
			threeRacks,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: notReady, Within: 10 * time.Minute},
			Act{Name: "delete its Node object", Do: func(w *world.World) error {
				return w.Kube.Unregister(w.Kube.Hosts()[0])
			},
				Until: blockedWith("VolumeHostUnavailable", "m-a-0", "which is gone"), Within: 10 * time.Minute},
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }), Until: again,
				Within: 15 * time.Minute}),
		scenario("partition-long", "a host is cut off from the API server for an hour while its JVM serves, and its "+
			"pod is told to stop", threeRacks,
			Act{Name: "cut off", Do: func(w *world.World) error { w.Partition(w.Kube.Hosts()[0], false); return nil },
				Until: blockedWith("HostUnreachable", "m-a-0"), Within: 10 * time.Minute},
			Act{Name: "delete the pod", Do: func(w *world.World) error { return deleteFrom(w, w.Kube.Hosts()[0]) },
				Until: servesUncutOff, Within: 10 * time.Minute},
			anHour(),
			Act{Name: "the JVM still serves", Until: servesUncutOff, Within: time.Minute},
			Act{Name: "heal", Do: func(w *world.World) error { w.Heal(w.Kube.Hosts()[0]); return nil }, Until: again,
				Within: 15 * time.Minute}),
		scenario("unregistered-alive", "somebody deletes the Node object of a host that lives", threeRacks,
			Act{Name: "delete the Node object", Do: func(w *world.World) error {
				return w.Kube.Unregister(w.Kube.Hosts()[0])
			},
				// A host that a fault has taken away just then does not answer, and registers
				// itself when it is back.
				Until: either(blockedWith("RemovedHostStillAnswers", "m-a-0", "answers from there"),
					all(isRegistered, again)), Within: 10 * time.Minute},
			Act{Name: "its kubelet starts again", Do: first(func(k *kube.Cluster, name string) { k.Heal(name) }),
				Until: again, Within: 15 * time.Minute}),
		scenario("deleted-by-force", "a pod is deleted by force, and another while its JVM hangs as it stops: both "+
			"JVMs run on beside the next pods for a while", threeRacks,
			Act{Name: "delete by force", Do: func(w *world.World) error {
				notePods(w)
				w.Kube.Linger(w.Kube.Hosts()[0], time.Minute)
				return deletePod(w, w.Kube.Hosts()[0], client.GracePeriodSeconds(0))
			}, Until: all(again, newPods(1)), Within: 15 * time.Minute},
			Act{Name: "the second hangs as it stops", Do: func(w *world.World) error {
				notePods(w)
				for _, s := range w.Pods.Sandboxes() {
					if s.Host() == w.Kube.Hosts()[1] {
						freezeJVM(s)
					}
				}
				return deleteFrom(w, w.Kube.Hosts()[1])
			}},
			passing("half a minute", 30*time.Second),
			Act{Name: "delete it by force", Do: func(w *world.World) error {
				return deletePod(w, w.Kube.Hosts()[1], client.GracePeriodSeconds(0))
			}, Until: all(again, newPods(1)), Within: 30 * time.Minute}),
		scenario("delete-stuck", "a ring is deleted of which a host is lost, which somebody says is gone", threeRacks,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: notReady, Within: 10 * time.Minute},
			Act{Name: "delete", Do: remove, Until: blockedWith("HostUnreachable", "m-a-0"), Within: 20 * time.Minute},
			anHour(),
			Act{Name: "delete its Node object", Do: func(w *world.World) error {
				return w.Kube.Unregister(w.Kube.Hosts()[0])
			}, Until: gone, Within: 20 * time.Minute, Despite: true}),
		scenario("seed-lost", "the host of a seed is lost, and then all pods are deleted at once: the others come "+
			"back without it", threeRacks,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose)},
			Act{Name: "delete the pods", Do: deletePods(3), Until: all(serves(2), readyNodes(2), newPods(2)),
				Within: 20 * time.Minute},
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }), Until: again,
				Within: 15 * time.Minute}),
		startingInVain(2, trying(scenario("crossed",
			"two pods are deleted, and each comes back at the address that the other had", threeRacks,
			Act{Name: "cross", Do: cross, Until: all(again, newPods(2)), Within: 30 * time.Minute}))),
		startingInVain(2, trying(scenario("crossed-all",
			"all pods are deleted, and each comes back at the address that another had", threeRacks,
			Act{Name: "cross", Do: crossAll, Until: all(again, newPods(3)), Within: 30 * time.Minute}))),
		scenario("server-away", "the API server is down when a JVM is killed, which starts again all the same",
			threeRacks,
			Act{Name: "the API server goes", Do: func(w *world.World) error { w.Outage(true); return nil }},
			Act{Name: "kill", Do: onePod(killJVM), Until: serves(2), Within: time.Minute},
			Act{Name: "it serves again", Until: everyPodServes, Within: 5 * time.Minute},
			anHour(),
			Act{Name: "the API server is back", Do: func(w *world.World) error { w.Outage(false); return nil },
				Until: all(again, tellsOfRestart), Within: 15 * time.Minute}),
		scenario("operator-away", "no operator is there when a JVM is killed and another pod deleted", threeRacks,
			Act{Name: "the operator ends", Do: endOperators},
			Act{Name: "kill", Do: onePod(killJVM), Until: serves(2), Within: time.Minute},
			Act{Name: "it serves again", Until: serves(3), Within: 5 * time.Minute},
			Act{Name: "delete the other's pod", Do: func(w *world.World) error {
				return deleteFrom(w, w.Kube.Hosts()[1])
			}, Until: serves(2), Within: 5 * time.Minute},
			anHour(),
			Act{Name: "an operator starts", Do: func(w *world.World) error {
				w.StartOperator(w.Installed)
				return nil
			}, Until: again, Within: 15 * time.Minute}),
		scenario("agents-replaced", "a newer operator replaces the agents, and Cassandra runs on", nineNodes,
			Act{Name: "a newer operator starts", Do: newerOperator, Until: all(again, agentsReplaced),
				Within: 15 * time.Minute}),
		scenario("agents-replaced-kept", "a newer operator replaces agents whose kubelets are older than 1.32, and "+
			"Cassandra runs on", nineNodes,
			Act{Name: "a newer operator starts", Do: func(w *world.World) error {
				for _, host := range w.Kube.Hosts() {
					w.Kube.KeepSidecars(host)
				}
				return newerOperator(w)
			}, Until: all(again, agentsReplaced), Within: 15 * time.Minute}),
		scenario("zone-lost", "the hosts of a zone are lost and come back with their disks", nineNodes,
			Act{Name: "lose", Do: everyHostOf("a", (*kube.Cluster).Lose), Until: readyNodes(6),
				Within: 10 * time.Minute},
			Act{Name: "return", Do: everyHostOf("a", func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: again, Within: 30 * time.Minute}),
		trying(threeRacks.rejected("create-rejected", "a ring forms when a host that refuses its pod takes it")),
	}
}

// rejected is a scenario in which a host refuses the first pod while the ring is to form.
func (s shape) rejected(name, about string) *Scenario {
	create := s.create()
	out := scenario(name, about, s)
	out.Acts = []Act{
		{Name: "create", Do: func(w *world.World) error {
			w.Kube.Reject(w.Kube.Hosts()[0], "UnexpectedAdmissionError",
				"Allocate failed due to no healthy devices present; cannot allocate unhealthy devices, which is "+
					"unexpected")
			return create.Do(w)
		}, Until: pausing(4, "UnexpectedAdmissionError"), Within: 15 * time.Minute},
		{Name: "take it", Do: func(w *world.World) error { w.Kube.Reject(w.Kube.Hosts()[0], "", ""); return nil },
			Until: ready, Within: 15 * time.Minute},
	}
	return out
}

// refuse has the first host refuse pods, and its pod be deleted.
func refuse(w *world.World) error {
	host := w.Kube.Hosts()[0]
	w.Kube.Reject(host, "OutOfcpu", "Node didn't have enough resource: cpu, requested: 500, used: 1900, capacity: 2000")
	return deleteFrom(w, host)
}

// pausing says that a pod has failed so many times in a row and that the next is not made yet. By
// an operator's clock that a fault has set forward the shorter pauses are over at once: then, and
// only then, it may have failed more often.
func pausing(times int, words ...string) func(*world.World) bool {
	return func(w *world.World) bool {
		most := times
		if w.OperatorClock > 0 {
			most = 3 * times
		}
		for n := times; n <= most; n++ {
			count := fmt.Sprintf("the %dth time", n)
			if n == 3 {
				count = "the third time"
			}
			if blockedWith("PodBackoff", append([]string{count}, words...)...)(w) {
				return true
			}
		}
		return false
	}
}

// deleteFrom deletes the pods of a host, in order.
func deleteFrom(w *world.World, host string) error { return deletePod(w, host) }

func deletePod(w *world.World, host string, how ...client.DeleteOption) error {
	for _, o := range w.Server.Objects("Pod") {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == host {
			if err := w.User().Delete(context.Background(), pod.DeepCopy(), how...); err != nil {
				return err
			}
		}
	}
	return nil
}

// cross deletes the pods of two nodes, and has each come back at the other's address.
func cross(w *world.World) error {
	return rotate(w, 2)
}

func crossAll(w *world.World) error {
	return rotate(w, len(w.Pods.Sandboxes()))
}

// rotate deletes the first pods and has each come back at the address of the next. A fault may have
// taken some already.
func rotate(w *world.World, n int) error {
	pods := w.Pods.Sandboxes()
	pods = pods[:min(n, len(pods))]
	notePods(w)
	for i, s := range pods {
		w.Kube.HandAddress(s.Name(), pods[(i+1)%len(pods)].Address())
	}
	return deletePods(n)(w)
}

// notePods remembers which pods there are.
func notePods(w *world.World) {
	for _, s := range w.Pods.Sandboxes() {
		w.Notes["pod "+s.Name()] = string(s.PodUID())
	}
}

// newPods says that at least so many pods have made way for others since they were noted.
func newPods(n int) func(*world.World) bool {
	return func(w *world.World) bool {
		changed := 0
		for _, s := range w.Pods.Sandboxes() {
			if w.Notes["pod "+s.Name()] != string(s.PodUID()) {
				changed++
			}
		}
		return changed >= n
	}
}

func all(of ...func(*world.World) bool) func(*world.World) bool {
	return func(w *world.World) bool {
		return !slices.ContainsFunc(of, func(holds func(*world.World) bool) bool { return !holds(w) })
	}
}

func either(of ...func(*world.World) bool) func(*world.World) bool {
	return func(w *world.World) bool {
		return slices.ContainsFunc(of, func(holds func(*world.World) bool) bool { return holds(w) })
	}
}

// except is a user's word about the first node, for a day.
func except(kind v1alpha1.ExceptionType) func(*world.World) error {
	const name = clusterName + "-dc1-r1-0"
	return func(w *world.World) error {
		e := v1alpha1.Exception{Name: strings.ToLower(string(kind)), Type: kind, Node: name, Reason: "it must serve",
			Until: metav1.NewTime(w.Line.Now().Add(24 * time.Hour).Truncate(time.Second))}
		if kind == v1alpha1.ExceptionStartAnyway {
			e.HostID = w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode).Status.HostID
		}
		return respec(func(s *v1alpha1.CassandraClusterSpec) { s.Exceptions = append(s.Exceptions, e) })(w)
	}
}

// recommends says that the cluster recommends an operation.
func recommends(operation string) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return c != nil && slices.ContainsFunc(c.Status.Recommended,
			func(r v1alpha1.Recommendation) bool { return r.Operation == operation })
	}
}

// succeeded says that a step of a kind has.
func succeeded(step string) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return c != nil && slices.ContainsFunc(c.Status.History, func(r v1alpha1.StepRecord) bool {
			return r.Step == step && r.Result == v1alpha1.StepSucceeded
		})
	}
}

// isRegistered says that the first host has a Node object.
func isRegistered(w *world.World) bool {
	return w.Server.Object("Node", types.NamespacedName{Name: w.Kube.Hosts()[0]}) != nil
}

// readyNodes says that so many nodes serve, by the word of the cluster.
func readyNodes(n int32) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return c != nil && c.Status.ReadyNodes == n
	}
}

// tellsOfRestart says that a node tells of a JVM that ended by itself.
func tellsOfRestart(w *world.World) bool {
	return slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
		restarts := o.(*v1alpha1.CassandraNode).Status.Restarts
		return restarts != nil && restarts.Count > 0
	})
}

// restartedForDrain says that the last JVM of a node that ended did because it was drained. A fault
// may have ended others before.
func restartedForDrain(w *world.World) bool {
	return slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
		restarts := o.(*v1alpha1.CassandraNode).Status.Restarts
		return restarts != nil && restarts.LastReason == v1alpha1.RestartDrained
	})
}

func everyHostOf(zone string, do func(*kube.Cluster, string)) func(*world.World) error {
	return func(w *world.World) error {
		for _, name := range w.Kube.Hosts() {
			if w.Kube.Zone(name) == zone {
				do(w.Kube, name)
			}
		}
		return nil
	}
}

func endOperators(w *world.World) error {
	for len(w.Operators()) > 0 {
		w.Operators()[0].Kill()
	}
	return nil
}

// restartOperator ends every operator and starts one again.
func restartOperator(w *world.World) error {
	_ = endOperators(w)
	w.StartOperator(w.Installed)
	return nil
}

// newerOperator installs an operator with another image of the agent.
func newerOperator(w *world.World) error {
	w.Installed.Version, w.Installed.AgentImage = "newer", "helenus/agent:newer"
	return restartOperator(w)
}

// agentsReplaced says that the agents of all pods run by the image of the operator.
func agentsReplaced(w *world.World) bool {
	for _, object := range w.Server.Objects("Pod") {
		for _, status := range object.(*corev1.Pod).Status.InitContainerStatuses {
			if status.Name == layout.AgentContainer && (status.Image != w.Installed.AgentImage || !status.Ready) {
				return false
			}
		}
	}
	return true
}

// first does something to the first host.
func first(do func(*kube.Cluster, string)) func(*world.World) error {
	return func(w *world.World) error {
		do(w.Kube, w.Kube.Hosts()[0])
		return nil
	}
}

// everyPodServes says that a JVM is NORMAL and open for clients in every pod that runs. Without an
// API server none starts on a host that was lost meanwhile.
func everyPodServes(w *world.World) bool { return serves(len(w.Pods.Sandboxes()))(w) }

// servesUncutOff says that all three JVMs serve, that of the host that is cut off among them,
// unless a fault has taken its host away: then the two others do.
func servesUncutOff(w *world.World) bool {
	return serves(3)(w) || w.Kube.WasLost(w.Kube.Hosts()[0]) && serves(2)(w)
}

// serves says that so many JVMs are NORMAL and open for clients, whatever the cluster says of them.
func serves(n int) func(*world.World) bool {
	return func(w *world.World) bool {
		serving := 0
		for _, s := range w.Pods.Sandboxes() {
			if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) && j.NativeOpen() {
				serving++
			}
		}
		return serving == n
	}
}

// blockedWith says that the status reports a reason, or any if it is "", as blocked or as a notice,
// with these words in its message.
func blockedWith(reason v1alpha1.Reason, words ...string) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return c != nil && slices.ContainsFunc(reported(c), func(b v1alpha1.Notice) bool {
			return (reason == "" || b.Reason == reason) &&
				!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(b.Message, word) })
		})
	}
}

func blockedSaying(words ...string) func(*world.World) bool { return blockedWith("", words...) }

// reported is what the status of a cluster reports: its blocked steps and its notices.
func reported(c *v1alpha1.CassandraCluster) []v1alpha1.Notice {
	out := slices.Clone(c.Status.Notices)
	for _, b := range c.Status.Blocked {
		out = append(out, v1alpha1.Notice{Reason: b.Reason, Nodes: b.Nodes, Message: b.Message})
	}
	return out
}

// keepDeletions makes a table that keeps deletions for half an hour.
func keepDeletions(w *world.World) error {
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.NativeOpen() {
			session, err := j.CQL(context.Background())
			if err != nil {
				return err
			}
			return session.CreateTable(context.Background(), world.Keyspace, "short", 30*time.Minute)
		}
	}
	return errors.New("no node serves clients")
}

// anHour passes. Other conditions hold at its end, too.
func anHour(also ...func(*world.World) bool) Act { return passing("an hour", time.Hour, also...) }

// passing is that some time passes. Other conditions hold at its end, too.
func passing(words string, d time.Duration, also ...func(*world.World) bool) Act {
	const begun = "the time began"
	passed := func(w *world.World) bool {
		at, err := time.Parse(time.RFC3339Nano, w.Notes[begun])
		return err == nil && w.Line.Now().Sub(at) >= d
	}
	return Act{Name: words + " passes", Within: 2 * d, Until: all(append(also, passed)...),
		Do: func(w *world.World) error {
			w.Notes[begun] = w.Line.Now().Format(time.RFC3339Nano)
			return nil
		}}
}
