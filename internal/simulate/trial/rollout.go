package trial

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// rollOutScenarios are changes of a ring that serves, while clients write.
func rollOutScenarios() []*Scenario {
	// Longer than an edit lasts that is taken back, shorter than what counts as silence.
	soaking := threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		c.Spec.Disruption.Soak = &metav1.Duration{Duration: 110 * time.Second}
	})
	wrong := Act{Name: "an option that no JVM takes", Do: whileWriting(jvmOption(refusedOption)),
		Until: all(blockedSaying("ThereIsNoSuchOption"), serves(2)), Within: 30 * time.Minute}
	return []*Scenario{
		scenario("rollout-restart", "a setting changes that needs a restart", threeRacks,
			rolled("change it", concurrentWrites("20"))),
		scenario("rollout-hot", "a setting changes that needs no restart", threeRacks,
			rolled("change it", yamlSetting("compaction_throughput", `"32MiB/s"`))),
		scenario("rollout-labels", "labels and annotations of the pods change, and go", threeRacks,
			labelling("label", v1alpha1.Metadata{Labels: map[string]string{"team": "shop", "tier": "a"},
				Annotations: map[string]string{"example.com/note": "x"}}),
			labelling("take out", v1alpha1.Metadata{Labels: map[string]string{"team": "cart"}})),
		scenario("rollout-pod", "the memory changes", threeRacks, rolled("change it", memory("3Gi"))),
		scenario("rollout-rack", "a setting changes, and whole racks restart together", nineNodes.with(
			func(c *v1alpha1.CassandraCluster) { c.Spec.Disruption.MaxUnavailable = percent("100%") }),
			rolled("change it", concurrentWrites("20"))),
		restartingTwice(scenario("rollout-changed", "a setting changes again while it reaches the nodes", nineNodes,
			Act{Name: "change it", Do: whileWriting(concurrentWrites("20")), Until: haveTaken(2),
				Within: 30 * time.Minute},
			rolled("change it again", concurrentWrites("24")))),
		scenario("rollout-evicted", "the pod of a node whose turn has not come is deleted, and comes back as it was",
			soaking,
			Act{Name: "change it", Do: whileWriting(memory("3Gi")), Until: soaks, Within: 30 * time.Minute},
			Act{Name: "delete another pod", Do: deleteLastPod, Until: backAsItWas, Within: 15 * time.Minute},
			Act{Name: "the rest follows", Until: rolledOut, Within: time.Hour}),
		scenario("rollout-killed", "a JVM whose turn has not come is killed, and no other goes down meanwhile",
			soaking,
			Act{Name: "change it", Do: whileWriting(concurrentWrites("20")), Until: soaks, Within: 30 * time.Minute},
			Act{Name: "kill another JVM", Do: func(w *world.World) error {
				killJVM(lastPod(w))
				return nil
			}, Until: rolledOut, Within: time.Hour}),
		alone(restartingTwice(scenario("rollout-host-lost",
			"a host is lost while the first node serves, and no other node is changed until it is back", soaking,
			Act{Name: "change it", Do: whileWriting(concurrentWrites("20")), Until: soaks, Within: 30 * time.Minute},
			Act{Name: "lose", Do: func(w *world.World) error { w.Kube.Lose(w.Kube.Hosts()[2]); return nil },
				Until: notReady, Within: 10 * time.Minute},
			passing("a quarter of an hour", 15*time.Minute, not(haveTaken(2))),
			Act{Name: "return", Do: func(w *world.World) error { w.Kube.Return(w.Kube.Hosts()[2], true); return nil },
				Until: rolledOut, Within: time.Hour}))),
		scenario("rollout-reverted", "an option that no JVM takes reaches one node, and is taken back",
			threeRacks, wrong,
			passing("a quarter of an hour", 15*time.Minute, serves(2)), rolled("take it back", jvmOption())),
		alone(scenario("rollout-hints", "hints for a node that has restarted are not sent, and the roll-out continues "+
			"after a while and names them", threeRacks,
			Act{Name: "change it", Do: func(w *world.World) error {
				lastPod(w).JVM().PauseHints(true)
				return whileWriting(concurrentWrites("20"))(w)
			}, Until: blockedWith(v1alpha1.BlockedHintsNotDelivered, clusterName+"-dc1-r3-0 keeps hints for "+
				clusterName+"-dc1-r1-0", "the roll-out continues"), Within: 30 * time.Minute},
			Act{Name: "the rest follows", Until: rolledOut, Within: time.Hour})),
		alone(scenario("rollout-room", "more memory than any host has is asked for, and no node is touched", threeRacks,
			Act{Name: "ask for too much", Do: whileWriting(memory("80Gi")), Within: 10 * time.Minute,
				Until: blockedWith(v1alpha1.BlockedNoHostHasRoom, "81952Mi of memory", "has 64Gi")},
			passing("a quarter of an hour", 15*time.Minute, serves(3)),
			rolled("ask for less", memory("3Gi")))),
		resizable("rollout-resized", "memory and CPU change, and the pods are resized in place", nil,
			rolled("more memory", memory("3Gi")), rolled("more CPU", cpu("2"))),
		resizable("rollout-deferred", "the memory changes while the host of the first node has no room for more: the "+
			"node serves until it has", func(w *world.World) { w.Kube.Fill(w.Kube.Hosts()[0], true) },
			Act{Name: "more memory", Do: whileWriting(memory("3Gi")), Within: 30 * time.Minute,
				Until: func(w *world.World) bool { // beside a fault the pod may be another one by then
					said := blockedWith(v1alpha1.BlockedPodNotResized, clusterName+"-dc1-r1-0", "Deferred")
					return said(w) || rolledOut(w)
				}},
			passing("a quarter of an hour", 15*time.Minute, serves(3)),
			Act{Name: "room", Do: func(w *world.World) error { w.Kube.Fill(w.Kube.Hosts()[0], false); return nil },
				Until: rolledOut, Within: time.Hour}),
		cleanedUpMeanwhile(),
		scenario("rollout-corrected", "an option that no JVM takes reaches one node, and is corrected",
			threeRacks, wrong,
			rolled("correct it", jvmOption("-XX:+UseStringDeduplication"))),
	}
}

// cleanedUpMeanwhile is a change while members are cleaned up for long: it waits, and says for
// what.
func cleanedUpMeanwhile() *Scenario {
	s := threeRacks.growing(2).scenario("rollout-cleanup", "a setting changes while members are cleaned up for long: "+
		"none is restarted before that ends, and what is waited for is named", fourthRack)
	growth := &s.Acts[len(s.Acts)-1]
	grow := growth.Do
	growth.Until, growth.Do = Operates(v1alpha1.OperationCleanup), func(w *world.World) error {
		w.Network.Prolong(4 * time.Minute) // for each keyspace
		return grow(w)
	}
	s.Acts = append(s.Acts, Act{Name: "change it", Do: respec(concurrentWrites("20")), Within: 30 * time.Minute,
		Until: blockedWith(v1alpha1.BlockedMaintenanceRunning, "Cleanup on node "+clusterName)},
		Act{Name: "the rest follows", Until: all(rolledOut, succeeded("Cleanup")), Within: 3 * time.Hour})
	return alone(s)
}

// resizable is a scenario on hosts that resize pods, of a cluster whose heap follows from the
// memory limit.
func resizable(name, about string, prepare func(*world.World), acts ...Act) *Scenario {
	s := scenario(name, about, threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		c.Spec.Node.JVM.Heap = nil
		cpu("1")(&c.Spec)
	}), acts...)
	s.Resizes = true
	create := s.Acts[0].Do
	s.Acts[0].Do = func(w *world.World) error {
		for _, host := range w.Kube.Hosts() {
			w.Kube.ResizePods(host)
		}
		if prepare != nil {
			prepare(w)
		}
		return create(w)
	}
	return s
}

// restartingTwice is a scenario in which a node may start once more when a fault holds the operator
// up: it has begun a restart when the next change comes, or is back before its record has the
// change.
func restartingTwice(s *Scenario) *Scenario { return startingInVain(1, s) }

// rolled is a change of the spec that every node takes over.
func rolled(name string, change func(*v1alpha1.CassandraClusterSpec)) Act {
	return Act{Name: name, Do: whileWriting(change), Until: rolledOut, Within: time.Hour}
}

// labelling has the pods get labels and annotations, and lose those that they had from the spec.
func labelling(name string, metadata v1alpha1.Metadata) Act {
	act := rolled(name, func(s *v1alpha1.CassandraClusterSpec) { s.Node.Metadata = &metadata })
	act.Until = all(rolledOut, func(w *world.World) bool {
		return !slices.ContainsFunc(w.Pods.Sandboxes(), func(s *pod.Sandbox) bool {
			p, _ := w.Server.Object("Pod", keyOf(s.Name())).(*corev1.Pod)
			return p == nil || p.Labels["team"] != metadata.Labels["team"] ||
				p.Labels["tier"] != metadata.Labels["tier"] ||
				p.Annotations["example.com/note"] != metadata.Annotations["example.com/note"]
		})
	})
	return act
}

// whileWriting has the user change the spec while clients write.
func whileWriting(change func(*v1alpha1.CassandraClusterSpec)) func(*world.World) error {
	return func(w *world.World) error {
		w.WriteOn(60)
		return respec(change)(w)
	}
}

// rolledOut says that every node serves with what the spec describes, and that nothing is left to
// do.
func rolledOut(w *world.World) bool {
	c := get(w)
	return grown(w) && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionUpToDate)
}

func yamlSetting(name, value string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		if s.Node.CassandraYaml == nil {
			s.Node.CassandraYaml = v1alpha1.Settings{}
		}
		s.Node.CassandraYaml[name] = v1alpha1.Value{Raw: []byte(value)}
	}
}

func concurrentWrites(value string) func(*v1alpha1.CassandraClusterSpec) {
	return yamlSetting("concurrent_writes", value)
}

func memory(limit string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
}

func cpu(request string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)}
	}
}

func jvmOption(options ...string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Node.JVM.Options = slices.Clone(options) }
}

func percent(text string) *intstr.IntOrString {
	out := intstr.FromString(text)
	return &out
}

// haveTaken says that so many records are what the spec describes.
func haveTaken(n int) func(*world.World) bool {
	return func(w *world.World) bool {
		c, taken := get(w), 0
		for _, wanted := range wantedNodes(c) {
			r, _ := w.Server.Object("CassandraNode", keyOf(wanted.Name)).(*v1alpha1.CassandraNode)
			if r != nil && render.HashesOf(r).Hashes == wanted.Hashes() {
				taken++
			}
		}
		return taken >= n
	}
}

// soaks says that a first node serves with what the spec describes, and that not all were asked
// yet: where the ledger is lost there is another first one.
func soaks(w *world.World) bool {
	c := get(w)
	return haveTaken(1)(w) && !haveTaken(3)(w) && serves(3)(w) && c.Status.Step != nil &&
		strings.HasPrefix(c.Status.Step.Message, "the first node")
}

func lastPod(w *world.World) *pod.Sandbox {
	all := w.Pods.Sandboxes()
	return slices.MaxFunc(all, func(a, b *pod.Sandbox) int { return strings.Compare(a.Name(), b.Name()) })
}

const deletedPod = "deleted pod"

func deleteLastPod(w *world.World) error {
	p := w.Server.Object("Pod", keyOf(lastPod(w).Name())).(*corev1.Pod)
	w.Notes[deletedPod] = string(p.UID)
	return w.User().Delete(context.Background(), p.DeepCopy())
}

// backAsItWas says that the node of the pod that was deleted serves in another one that is made as
// the old one was.
func backAsItWas(w *world.World) bool {
	p, _ := w.Server.Object("Pod", keyOf(lastPod(w).Name())).(*corev1.Pod)
	if p == nil || string(p.UID) == w.Notes[deletedPod] || !serves(3)(w) {
		return false
	}
	limit := p.Spec.Containers[slices.IndexFunc(p.Spec.Containers,
		func(c corev1.Container) bool { return c.Name == layout.CassandraContainer })].Resources.Limits.Memory()
	return limit.Equal(resource.MustParse("2Gi"))
}
