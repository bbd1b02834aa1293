//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// rollOut changes the spec of a ring while a client is there, and waits until every node has taken
// it over.
func rollOut(t *testing.T, ring *scene.Ring, what string, change func(*v1alpha1.CassandraClusterSpec)) {
	t.Helper()
	while(t, ring, servedThroughout, what, func() error {
		if err := ring.Edit(t.Context(), change); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
}

// setYAML sets a setting of cassandra.yaml beside those that there are.
func setYAML(name, value string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		if s.Node.CassandraYaml == nil {
			s.Node.CassandraYaml = v1alpha1.Settings{}
		}
		s.Node.CassandraYaml[name] = v1alpha1.Value{Raw: []byte(value)}
	}
}

// settingOf is a setting of the running Cassandra of a node.
func settingOf(t *testing.T, ring *scene.Ring, node, name string) string {
	t.Helper()
	session, err := ring.Session(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var value string
	if err := session.Query("SELECT value FROM system_views.settings WHERE name = ?", name).
		ScanContext(t.Context(), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// jvms of the nodes: by what a start of them is known.
func jvms(t *testing.T, ring *scene.Ring) map[string]scene.Process {
	t.Helper()
	out := map[string]scene.Process{}
	for _, name := range ring.NodeNames(t.Context()) {
		p, err := ring.JVM(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = p
	}
	return out
}

// TestRollOutSettings: a setting that needs a restart reaches one node after the other, in its pod,
// and one that needs none reaches all without a restart of any JVM, as do labels of the pods.
func TestRollOutSettings(t *testing.T) {
	ring := threeRacks(t)
	before, started := identities(t, ring), jvms(t, ring)
	rollOut(t, ring, "a setting that needs a restart", setYAML("concurrent_reads", "24"))
	wantAsBefore(t, before, identities(t, ring))
	restarted := jvms(t, ring)
	for name, p := range restarted {
		if p == started[name] {
			t.Errorf("the JVM of node %s was not restarted", name)
		}
		if got := settingOf(t, ring, name, "concurrent_reads"); got != "24" {
			t.Errorf("node %s has concurrent_reads %s", name, got)
		}
	}
	rollOut(t, ring, "a setting that needs no restart", setYAML("compaction_throughput", `"48MiB/s"`))
	for name, p := range jvms(t, ring) {
		if p != restarted[name] {
			t.Errorf("the JVM of node %s was restarted for a setting that needs none", name)
		}
		if got := settingOf(t, ring, name, "compaction_throughput"); !strings.HasPrefix(got, "48") {
			t.Errorf("node %s has compaction_throughput %s", name, got)
		}
	}
	for _, label := range []string{"shop", ""} {
		rollOut(t, ring, "labels and annotations of the pods", labelPods(label))
		wantLabelled(t, ring, label)
	}
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if p != restarted[name] {
			t.Errorf("the JVM of node %s was restarted for a label", name)
		}
	}
	wantRingSeen(t, ring)
}

// labelPods has the pods get a label and an annotation, or lose them.
func labelPods(value string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Metadata = nil
		if value != "" {
			s.Node.Metadata = &v1alpha1.Metadata{Labels: map[string]string{"example.com/team": value},
				Annotations: map[string]string{"example.com/team": value}}
		}
	}
}

func wantLabelled(t *testing.T, ring *scene.Ring, value string) {
	t.Helper()
	for _, name := range ring.NodeNames(t.Context()) {
		pod := podOf(t, ring, name)
		if pod.Labels["example.com/team"] != value || pod.Annotations["example.com/team"] != value {
			t.Errorf("pod %s has labels %v and annotations %v", name, pod.Labels, pod.Annotations)
		}
	}
}

// TestRollOutReverted: an option that no JVM takes reaches the first node alone, and is taken back
// without a hand on the node.
func TestRollOutReverted(t *testing.T) {
	ring := threeRacks(t)
	before, started := identities(t, ring), jvms(t, ring)
	first := ring.NodeNames(t.Context())[0]
	ring.Invariants.ExpectRestart(first)
	var options []string
	while(t, ring, servedThroughout, "an option that no JVM takes, and back", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			options = slices.Clone(s.Node.JVM.Options)
			s.Node.JVM.Options = append(s.Node.JVM.Options, "-XX:+ThereIsNoSuchOption")
		}); err != nil {
			return err
		}
		err := ring.Until(t.Context(), 3*time.Minute, "the cluster says which node does not come up",
			func(now follow.Sight) error {
				c, _ := now.Cluster(ring.Name)
				for _, b := range c.Status.Blocked {
					if b.Reason == v1alpha1.BlockedChangedNodeDown && slices.Equal(b.Nodes, []string{first}) {
						return nil
					}
				}
				return fmt.Errorf("blocked: %+v", c.Status.Blocked)
			})
		if err != nil {
			return err
		}
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.JVM.Options = options
		}); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), 5*time.Minute)
	})
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if (p == started[name]) != (name != first) {
			t.Errorf("node %s: its JVM was %+v, and is %+v", name, started[name], p)
		}
	}
}

// TestRollOutResized: other CPU and memory reach the pods that run, one after the other. The
// JVMs restart in them where their memory follows, and then only.
func TestRollOutResized(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before, started := identities(t, ring), jvms(t, ring)
	amount := func(of corev1.ResourceList, name corev1.ResourceName, more string) {
		now := of[name]
		now.Add(resource.MustParse(more))
		of[name] = now
	}
	rollOut(t, ring, "more memory", func(s *v1alpha1.CassandraClusterSpec) {
		amount(s.Node.Resources.Limits, corev1.ResourceMemory, "64Mi")
		if _, set := s.Node.Resources.Requests[corev1.ResourceMemory]; set {
			amount(s.Node.Resources.Requests, corev1.ResourceMemory, "64Mi")
		}
	})
	wantAsBefore(t, before, identities(t, ring))
	restarted := jvms(t, ring)
	for name, p := range restarted {
		if p == started[name] {
			t.Errorf("node %s: its JVM was not restarted, and has the direct memory of before", name)
		}
	}
	rollOut(t, ring, "more CPU", func(s *v1alpha1.CassandraClusterSpec) {
		amount(s.Node.Resources.Requests, corev1.ResourceCPU, "10m")
	})
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if p != restarted[name] {
			t.Errorf("node %s: its JVM was %+v, and is %+v", name, restarted[name], p)
		}
	}
}

// TestRollOutNewPods: a change of the pod makes new ones, one after the other, with the same disks:
// another grace period, a side container and more memory, and both taken back.
func TestRollOutNewPods(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	was := ring.Spec.Node.Resources.DeepCopy()
	memory := was.Limits[corev1.ResourceMemory]
	image := containerOf(podOf(t, ring, ring.NodeNames(t.Context())[0]), layout.CassandraContainer).Image
	for _, name := range ring.NodeNames(t.Context()) {
		ring.Invariants.ExpectOtherPods(name)
	}
	const side = "side"
	more := memory.DeepCopy()
	more.Add(resource.MustParse("64Mi"))
	for _, c := range []struct {
		what   string
		change func(*v1alpha1.NodeTemplate)
		is     func(*corev1.Pod) bool
	}{
		{"another grace period of the pods",
			func(n *v1alpha1.NodeTemplate) { n.TerminationGracePeriodSeconds = ptr(int64(200)) },
			func(p *corev1.Pod) bool { return *p.Spec.TerminationGracePeriodSeconds == 200 }},
		{"a side container and more memory",
			func(n *v1alpha1.NodeTemplate) {
				n.Overlay = &runtime.RawExtension{Raw: fmt.Appendf(nil, sideContainer, side, image)}
				n.Resources.Limits[corev1.ResourceMemory] = more
			},
			func(p *corev1.Pod) bool {
				return containerOf(p, side).Image == image &&
					containerOf(p, layout.CassandraContainer).Resources.Limits[corev1.ResourceMemory].Equal(more)
			}},
		{"both taken back",
			func(n *v1alpha1.NodeTemplate) { n.Overlay, n.Resources = nil, was },
			func(p *corev1.Pod) bool {
				return containerOf(p, side).Image == "" &&
					containerOf(p, layout.CassandraContainer).Resources.Limits[corev1.ResourceMemory].Equal(memory)
			}},
	} {
		before := identities(t, ring)
		rollOut(t, ring, c.what, func(s *v1alpha1.CassandraClusterSpec) { c.change(s.Node) })
		now := identities(t, ring)
		wantSameMembers(t, before, now)
		for name := range before {
			if now[name].podUID == before[name].podUID || !c.is(podOf(t, ring, name)) {
				t.Errorf("%s: node %s has the same pod, or one without it", c.what, name)
			}
		}
		wantRingSeen(t, ring)
	}
}

// sideContainer ends when it is told to: the first process of a container ignores that by default.
const sideContainer = `{"spec": {"containers": [{"name": %q, "image": %q,
	"command": ["sh", "-c", "trap exit TERM; while sleep 1; do :; done"],
	"resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "64Mi"}},
	"securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}`

// containerOf is a container of a pod; without image if it has none of the name.
func containerOf(pod *corev1.Pod, name string) corev1.Container {
	for _, c := range pod.Spec.Containers {
		if c.Name == name {
			return c
		}
	}
	return corev1.Container{}
}
