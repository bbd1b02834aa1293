package upkeep

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// runs is a node of a rack whose agent answers from a pod with this image of it, on a host of its
// own.
func runs(name, rack, image string) *facts.Node {
	n := recorded(name)
	n.Record.Spec.Rack = rack
	n.Pod.Spec.NodeName = "host-" + name
	n.Pod.Spec.InitContainers = []corev1.Container{{Name: layout.AgentContainer, Image: image}}
	n.Pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: layout.AgentContainer, ContainerID: "first"}}
	n.Agent = &facts.Agent{PodUID: n.Pod.UID, Phase: v1alpha1.PhaseNormal, Process: facts.ProcessRunning}
	return n
}

// replaced marks a node as one whose agent was replaced, and has the container that it has now.
func replaced(n *facts.Node, container string) *facts.Node {
	asked := n.Pod.Spec.InitContainers[0].Image + " first"
	n.Pod.Annotations = map[string]string{v1alpha1.AnnotationReplacedAgent: asked}
	n.Pod.Status.InitContainerStatuses[0].ContainerID = container
	return n
}

func silent(n *facts.Node) *facts.Node {
	n.Agent = nil
	return n
}

func TestWhichAgentsAreReplaced(t *testing.T) {
	const was, is, broken = "agent:1", "agent:2", "agent:broken"
	for name, c := range map[string]struct {
		nodes  []*facts.Node
		change func(*Keeper)
		want   []string
	}{
		"none that is of this release": {nodes: []*facts.Node{runs("a", "r1", is), runs("b", "r1", is)}},
		"the first one alone": {nodes: []*facts.Node{runs("a", "r1", was), runs("b", "r1", was)},
			want: []string{"a"}},
		"the others of its rack when it answers": {nodes: []*facts.Node{replaced(runs("a", "r1", is), "second"),
			runs("b", "r1", was), runs("c", "r1", was), runs("d", "r2", was)}, want: []string{"b", "c"}},
		"one after the other where there is one rack": {nodes: []*facts.Node{replaced(runs("a", "r1", is), "second"),
			runs("b", "r1", was), runs("c", "r1", was)}, want: []string{"b"}},
		"none beside a roll-out": {nodes: []*facts.Node{runs("a", "r1", was)},
			change: func(k *Keeper) { k.Ledger.Step = &ledger.Step{Kind: ledger.RollOut} }},
		"none again whose image somebody takes back": {nodes: []*facts.Node{runs("a", "r1", was), runs("b", "r1", was)},
			change: func(k *Keeper) {
				k.Nodes["a"].Pod.Annotations = map[string]string{v1alpha1.AnnotationReplacedAgent: is + " first"}
			}, want: []string{"b"}},
		"the next rack": {nodes: []*facts.Node{replaced(runs("a", "r1", is), "second"), runs("b", "r2", was),
			runs("c", "r2", was)}, want: []string{"b", "c"}},
		"none while kubelet has not restarted one": {nodes: []*facts.Node{replaced(runs("a", "r1", is), "first"),
			runs("b", "r1", was)}},
		"none while one does not answer": {nodes: []*facts.Node{silent(replaced(runs("a", "r1", is), "second")),
			runs("b", "r1", was)}},
		"others while one is on a host that is not ready": {
			nodes: []*facts.Node{silent(replaced(runs("a", "r1", is), "second")), runs("b", "r1", was)},
			change: func(k *Keeper) {
				k.Hosts["host-a"].Status.Conditions[0].Status = corev1.ConditionUnknown
			}, want: []string{"b"}},
		"one that does not start with another image first": {nodes: []*facts.Node{runs("a", "r1", was),
			silent(replaced(runs("b", "r1", broken), "second"))}, want: []string{"b"}},
		"none while the cluster is paused": {nodes: []*facts.Node{runs("a", "r1", was)},
			change: func(k *Keeper) { k.Cluster.Spec.Paused = true }},
		"one that its kubelet keeps, too": {nodes: []*facts.Node{runs("a", "r1", was), runs("b", "r1", was)},
			change: func(k *Keeper) { k.Hosts["host-a"].Status.NodeInfo.KubeletVersion = "v1.31.9+k3s1" },
			want:   []string{"a"}},
	} {
		k := keeper(c.nodes...)
		k.Install.AgentImage = is
		k.Hosts = map[string]*corev1.Node{}
		for _, n := range c.nodes {
			host := &corev1.Node{}
			host.Status.NodeInfo.KubeletVersion = "v1.32.0"
			host.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			k.Hosts["host-"+n.Name] = host
		}
		if c.change != nil {
			c.change(k)
		}
		k.Agents()
		var got []string
		for _, w := range k.draft.Writes {
			if w.Object == nil {
				continue
			}
			pod := w.Object.(*corev1.Pod)
			got = append(got, pod.Name)
			if !w.Live || render.ImageOf(pod, layout.AgentContainer) != is ||
				pod.Annotations[v1alpha1.AnnotationReplacedAgent] != is+" "+agentStatus(k.Nodes[pod.Name]).ContainerID {
				t.Errorf("%s: writes %+v", name, w)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhichAgentsAreAskedToEnd(t *testing.T) {
	const older, newer = "v1.31.9+k3s1", "v1.32.0"
	asked := func(n *facts.Node, before time.Duration) *facts.Node {
		n.Record.Spec.AgentStartedAfter = &metav1.Time{Time: now.Add(-before)}
		return n
	}
	for name, c := range map[string]struct {
		node    *facts.Node
		kubelet string
		want    string
	}{
		"one whose pod has its image still": {runs("a", "r1", "agent:1"), older, ""},
		"one whose pod has the new image":   {replaced(runs("a", "r1", "agent:2"), "first"), older, "asked"},
		"one that a newer kubelet restarts": {replaced(runs("a", "r1", "agent:2"), "first"), newer, ""},
		"one that was restarted":            {replaced(runs("a", "r1", "agent:2"), "second"), older, ""},
		"one that has ended": {
			asked(replaced(runs("a", "r1", "agent:2"), "second"), time.Second), older, "taken back"},
		"one that does not answer": {silent(replaced(runs("a", "r1", "agent:2"), "first")), older, ""},
		"one that was asked just now": {
			asked(replaced(runs("a", "r1", "agent:2"), "first"), askAgain-1), older, ""},
		"one that was asked and did not end": {
			asked(replaced(runs("a", "r1", "agent:2"), "first"), askAgain), older, "asked"},
	} {
		k := keeper(c.node)
		k.Install.AgentImage = "agent:2"
		host := &corev1.Node{}
		host.Status.NodeInfo.KubeletVersion = c.kubelet
		host.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		k.Hosts = map[string]*corev1.Node{"host-a": host}
		if c.node.Agent != nil {
			c.node.Agent.ObservedAt = now
		}
		k.Agents()
		got := ""
		for _, w := range k.draft.Writes {
			if record, is := w.Object.(*v1alpha1.CassandraNode); is {
				if got = "taken back"; record.Spec.AgentStartedAfter.Equal(&metav1.Time{Time: now}) {
					got = "asked"
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
