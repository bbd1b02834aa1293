package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

// lost is a world of three hosts, the second of which has fallen silent with its agent.
func lost(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	for _, name := range three {
		w.host("of-"+name, corev1.ConditionTrue)
		w.snapshot.Nodes[name].Pod.Spec.NodeName = "of-" + name
		w.snapshot.Nodes[name].Claims[v1alpha1.VolumeData].Volume = volumeOn("of-" + name)
	}
	w.host("of-"+second, corev1.ConditionUnknown)
	w.absent[second], w.snapshot.Nodes[second].Agent = true, nil
	w.see(second, false)
	return w
}

// see has the members see a node alive or not.
func (w *world) see(name string, alive bool) {
	for _, n := range w.snapshot.Nodes {
		if n.Agent == nil || n.Agent.Ring == nil {
			continue
		}
		for i := range n.Agent.Ring.Endpoints {
			if e := &n.Agent.Ring.Endpoints[i]; e.HostID == hostID(name) {
				e.Live = alive
			}
		}
	}
}

func (w *world) host(name string, ready corev1.ConditionStatus, taints ...string) {
	m := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	m.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Reason: "KubeletNotReady", Message: "container runtime is down",
		LastTransitionTime: metav1.NewTime(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)),
	}}
	for _, key := range taints {
		m.Spec.Taints = append(m.Spec.Taints, corev1.Taint{Key: key})
	}
	w.snapshot.Hosts[name] = m
}

func volumeOn(host string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname,
				Operator: corev1.NodeSelectorOpIn,
				Values:   []string{host}}},
		}}}},
	}}
}

// A node without a pod keeps nobody from looking at the others.
func TestALostHostBesideANodeWithoutAPod(t *testing.T) {
	w := lost(t)
	w.snapshot.Nodes[first].Pod, w.snapshot.Nodes[first].Agent = nil, nil
	wantBlocked(t, next(w), "HostUnreachable", second)
}

func TestAPodOnALostHost(t *testing.T) {
	node := func(w *world) string { return "of-" + second }
	for name, c := range map[string]struct {
		change func(w *world)
		forced bool
		guard  v1alpha1.Reason
		words  []string
	}{
		"that is silent": {
			func(*world) {}, false, "HostUnreachable",
			[]string{"host of-" + second + " has not been heard of since about 2026-11-20T11:00:00Z",
				"so pod " + second + " is kept. Waits until the host is ready, or known to be gone. If the host is " +
					"gone for good, say so",
				"delete its Node object", "kubectl taint node of-" + second + " " +
					"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"},
		},
		"that is silent, told to stop": {
			func(w *world) { now := metav1.NewTime(w.now); w.snapshot.Nodes[second].Pod.DeletionTimestamp = &now },
			false,
			"HostUnreachable", []string{"pod " + second + " is kept, told to stop or not."},
		},
		"that says that it is not ready": {
			func(w *world) { w.host(node(w), corev1.ConditionFalse) }, false, "HostUnreachable",
			[]string{"is not ready since 2026-11-20T11:00:00Z: container runtime is down. Cassandra may still run " +
				"there"},
		},
		"that is ready": {func(w *world) { w.host(node(w), corev1.ConditionTrue) }, false, "", nil},
		"that says nothing of itself": {func(w *world) {
			w.snapshot.Hosts[node(w)].Status.Conditions = nil
		}, false, "", nil},
		"that has no Node object": {func(w *world) { delete(w.snapshot.Hosts, node(w)) }, true, "", nil},
		"that is out of service": {func(w *world) {
			w.host(node(w), corev1.ConditionUnknown, corev1.TaintNodeOutOfService)
		}, true, "", nil},
		"that was tainted and is ready": {func(w *world) {
			w.host(node(w), corev1.ConditionTrue, corev1.TaintNodeOutOfService)
		}, false, "", nil},
		"of which nobody has asked yet": {func(w *world) {
			delete(w.snapshot.Hosts, node(w))
			w.snapshot.Nodes[second].Asking = true
		}, false, "", nil},
		"that has none, without a place": {func(w *world) {
			w.snapshot.Nodes[second].Pod.Spec.NodeName = ""
			delete(w.snapshot.Hosts, node(w))
		}, false, "VolumeHostUnavailable", nil},
		"that has none, told to stop": {
			func(w *world) {
				delete(w.snapshot.Hosts, node(w))
				now := metav1.NewTime(w.now)
				w.snapshot.Nodes[second].Pod.DeletionTimestamp = &now
			}, true, "", nil,
		},
		"that has none, without a record": {func(w *world) {
			delete(w.snapshot.Hosts, node(w))
			w.snapshot.Nodes[second].Record.DeletionTimestamp = &metav1.Time{Time: w.now}
		}, true, "", nil},
		"that has none, failed": {
			func(w *world) { delete(w.snapshot.Hosts, node(w)); w.fail(second, "NodeLost", "") }, true, "", nil,
		},
		"that has none, and its agent answers": {
			func(w *world) {
				delete(w.snapshot.Hosts, node(w))
				w.snapshot.Nodes[second].Agent = w.running[w.snapshot.Nodes[second].Pod.UID]
			}, false,
			"RemovedHostStillAnswers", []string{"host of-" + second +
				" is gone: it has no Node object, but the agent " +
				"of node " + second + " answers from there"},
		},
		"that has none, and a member sees the node alive": {
			func(w *world) {
				delete(w.snapshot.Hosts, node(w))
				w.see(second, true)
			}, false,
			"RemovedHostStillAnswers", []string{"but node " + first + " sees node " + second + " alive"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := lost(t)
			c.change(w)
			made := next(w)
			i := slices.IndexFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.DeleteByForce })
			if (i >= 0) != c.forced {
				t.Fatalf("forced %v, want %v:\n%s", i >= 0, c.forced, made)
			}
			if c.forced {
				if write := made.Writes[i]; write.Host != node(w) || write.UID != w.snapshot.Nodes[second].Pod.UID ||
					write.Object.GetName() != second {
					t.Errorf("%+v", write)
				}
			}
			if slices.ContainsFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.Delete }) {
				t.Errorf("a pod is told to stop:\n%s", made)
			}
			wantBlocked(t, made, c.guard, c.words...)
		})
	}
}

// A newcomer that the ledger does not know yet is alive, too.
func TestAPodOnALostHostOfANewcomer(t *testing.T) {
	w := lost(t)
	delete(w.snapshot.Hosts, "of-"+second)
	w.see(second, true)
	delete(w.snapshot.Ledger.Members, second)
	w.snapshot.Nodes[second].Record.Status.HostID = hostID(second)
	made := next(w)
	if slices.ContainsFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.DeleteByForce }) {
		t.Errorf("a pod is deleted by force whose node the members see alive:\n%s", made)
	}
}

func TestTheHostOfADisk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		words  []string // nothing is said without
	}{
		"is gone": {
			func(w *world) { delete(w.snapshot.Hosts, "of-"+second) },
			[]string{"volume pv of claim data-" + second + ", which node " + second +
				" has its data on, can be used on " +
				"host of-" + second + " alone, which is gone; the node waits"},
		},
		"is out of service": {func(w *world) {
			w.host("of-"+second, corev1.ConditionUnknown, corev1.TaintNodeOutOfService)
		}, []string{"alone, which is gone"}},
		"is silent": {func(*world) {}, []string{"alone, which has not been heard of since about " +
			"2026-11-20T11:00:00Z; the node waits until that host is ready"}},
		"is there":     {func(w *world) { w.host("of-"+second, corev1.ConditionTrue) }, nil},
		"says nothing": {func(w *world) { w.snapshot.Hosts["of-"+second].Status.Conditions = nil }, nil},
		"is any host": {func(w *world) {
			w.snapshot.Nodes[second].Claims[v1alpha1.VolumeData].Volume.Spec.NodeAffinity = nil
		}, nil},
		"is not known yet": {func(w *world) { w.snapshot.Nodes[second].Claims[v1alpha1.VolumeData].Volume = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pod := range []bool{false, true} {
				w := lost(t)
				if w.snapshot.Nodes[second].Pod.Spec.NodeName = ""; !pod {
					w.snapshot.Nodes[second].Pod = nil
				}
				c.change(w)
				guard := v1alpha1.NoticeVolumeHostUnavailable
				if c.words == nil {
					guard = ""
				}
				wantBlocked(t, next(w), guard, c.words...)
			}
		})
	}
}

func TestADeletedClusterLeavesLostHosts(t *testing.T) {
	w := lost(t)
	now := metav1.NewTime(w.now)
	w.snapshot.Cluster.DeletionTimestamp = &now
	made := next(w)
	wantBlocked(t, made, "HostUnreachable", "of-"+second)
	if made.Blocked[0].Step != "Deletion" {
		t.Errorf("blocked %+v", made.Blocked)
	}
	delete(w.snapshot.Hosts, "of-"+second)
	wantWrites(t, next(w), second, "Apply CassandraNode", "DeleteByForce Pod")
}
