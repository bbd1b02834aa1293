package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// resizable is a ring of three on a host whose kubelet resizes pods.
func resizable(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.snapshot.Hosts[host].Status.NodeInfo.KubeletVersion = "v1.33.0"
	return w
}

func asking(cpu, memory string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		amount := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		requests := amount.DeepCopy()
		requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		s.Node.Resources = &v1alpha1.Resources{Limits: amount, Requests: requests}
	}
}

// A plan says whether pods are resized, whether their JVMs restart, or whether they are new ones.
func TestAPlanSaysWhatIsResized(t *testing.T) {
	node := func(w *world) *facts.Node { return w.snapshot.Nodes[three[0]] }
	for name, c := range map[string]struct {
		change func(*world)
		spec   func(*v1alpha1.CassandraClusterSpec)
		takes  plan.Takes
	}{
		"CPU":         {func(*world) {}, asking("2", "4Gi"), plan.Resize},
		"memory":      {func(*world) {}, asking("1", "6Gi"), plan.ResizeAndRestart},
		"less memory": {func(*world) {}, asking("1", "3Gi"), plan.NewPod},
		"an older kubelet": {func(w *world) { w.snapshot.Hosts[host].Status.NodeInfo.KubeletVersion = "v1.32.9" },
			asking("2", "4Gi"), plan.NewPod},
		"no host": {func(w *world) { delete(w.snapshot.Hosts, host) }, asking("2", "4Gi"), plan.NewPod},
		"no room": {func(w *world) {
			w.snapshot.Hosts[host].Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, asking("2", "4Gi"), plan.NewPod}, // the agent asks for some, too
		"an older agent": {func(w *world) { w.running[node(w).Pod.UID].Version = "older" }, asking("2", "4Gi"),
			plan.NewPod},
		"a container that would restart": {func(w *world) {
			node(w).Pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{
				ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		}, asking("2", "4Gi"), plan.NewPod},
		"refused": {func(w *world) { note(w, asking("2", "4Gi"), " refused") }, asking("2", "4Gi"), plan.NewPod},
		"another one was refused": {func(w *world) { note(w, asking("3", "4Gi"), " refused") }, asking("2", "4Gi"),
			plan.Resize},
		"infeasible": {func(w *world) {
			note(w, asking("2", "4Gi"), "")
			node(w).Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending,
				Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
		}, asking("2", "4Gi"), plan.NewPod},
	} {
		t.Run(name, func(t *testing.T) {
			w := resizable(t)
			c.change(w)
			w.agents()
			c.change(w) // what the agents have changed since
			w.change(c.spec)
			var got []plan.Takes
			for _, f := range Ahead(w.snapshot, Next(w.snapshot, w.now), w.now).Changes {
				if slices.Contains(f.Nodes, three[0]) && !strings.HasSuffix(f.Field, "requests.memory") {
					got = append(got, f.Takes)
				}
			}
			if !slices.Equal(got, []plan.Takes{c.takes}) {
				t.Errorf("the plan says %v, want %s", got, c.takes)
			}
		})
	}
}

// note has the pod of the first node say that it was asked to become what a spec describes.
func note(w *world, spec func(*v1alpha1.CassandraClusterSpec), word string) {
	c := w.snapshot.Cluster.DeepCopy()
	spec(&c.Spec)
	n := w.snapshot.Nodes[three[0]]
	wanted := render.Pinned(c, render.WantedNodes(c, w.snapshot.Install)[0], n.Record)
	n.Pod.Annotations[v1alpha1.AnnotationResize] = render.PodHash(wanted.Pod) + word
}

// The pods are resized one after the other, no JVM is restarted before its container has the
// memory, and a node that was proven with what its pod was resized to waits for its turn when it is
// down.
func TestPodsAreResizedInTurn(t *testing.T) {
	w := resizable(t)
	before := w.pods()
	w.change(asking("1", "6Gi"))
	first, second := w.snapshot.Nodes[three[0]], w.snapshot.Nodes[three[1]]
	until := func(what string, holds func() bool) {
		t.Helper()
		for range 20 {
			if holds() {
				return
			}
			w.pass()
			w.now = w.now.Add(time.Second)
		}
		t.Fatalf("%s: never\n%s", what, Next(w.snapshot, w.now))
	}
	until("the first pod is asked", func() bool { return first.Pod.Annotations[v1alpha1.AnnotationResize] != "" })
	for range 3 {
		w.pass()
	}
	if first.Record.Spec.Resized != nil || first.Record.Spec.Restart != nil {
		t.Fatalf("its record is ahead of the kubelet: %+v", first.Record.Spec)
	}
	if second.Pod.Annotations[v1alpha1.AnnotationResize] != "" {
		t.Fatal("the second pod is asked meanwhile")
	}
	w.resizes = true
	w.kubelet(first)
	until("the record takes over", func() bool { return first.Record.Spec.Resized != nil })
	if r := first.Record.Spec; r.Restart == nil || r.Resized.Restart != r.Restart.ID ||
		r.Resized.PodUID != first.Pod.UID || r.Resized.MemoryLimit.String() != "6Gi" ||
		first.PodTemplate() != render.PodHash(r.Pod) {
		t.Fatalf("the record is %+v", r)
	}
	w.rolledOut()
	for name, uid := range w.pods() {
		n := w.snapshot.Nodes[name]
		if uid != before[name] {
			t.Errorf("node %s has another pod", name)
		}
		if n.Record.Spec.Resized.Owes(uid) || n.Record.Status.Proven.PodTemplate != render.PodHash(n.Record.Spec.Pod) {
			t.Errorf("node %s: %+v, proven %+v", name, n.Record.Spec.Resized, n.Record.Status.Proven)
		}
	}
	w.pass() // evictions are allowed again
	made := w.pass()
	if len(made.Writes) > 0 {
		t.Errorf("there is something left to do:\n%s", made)
	}
}
