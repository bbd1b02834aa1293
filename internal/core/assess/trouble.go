package assess

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// WhyNoAnswer says in words why the agent of a node has not answered.
func WhyNoAnswer(n *facts.Node) string {
	switch {
	case n == nil || n.Record == nil:
		return "it has no record yet"
	case n.Pod == nil:
		return "it has no pod yet"
	case n.Pod.DeletionTimestamp != nil:
		return "its pod is being deleted"
	}
	if trouble := Trouble(n); trouble != "" {
		return trouble
	}
	if n.Unreachable != "" {
		return "its agent does not answer: " + n.Unreachable
	}
	return "its pod is starting"
}

// WhyDown says in words why a node does not serve.
func WhyDown(n *facts.Node) string {
	if agent := n.CurrentAgent(); agent != nil {
		return strings.TrimSuffix(fmt.Sprintf("it is %s: %s", agent.Phase, agent.Message), ": ")
	}
	return WhyNoAnswer(n)
}

// NeedsUser says that a node in this phase waits for the user.
func NeedsUser(phase v1alpha1.NodePhase) bool {
	return slices.Contains([]v1alpha1.NodePhase{v1alpha1.PhaseFailed, v1alpha1.PhaseDataLost, v1alpha1.PhaseDownTooLong,
		v1alpha1.PhaseAddressTaken}, phase)
}

// Trouble says in words why the pod of a node does not run, if that is known: that it cannot be
// scheduled, or what keeps a container from starting; and what of the spec to look at.
func Trouble(n *facts.Node) string {
	pod := n.Pod
	if pod == nil {
		return ""
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return WithFields("its pod cannot be scheduled: " + c.Message + unboundClaims(n, c.Message))
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if w := list[i].State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" &&
				w.Reason != "ContainerCreating" {
				words := strings.TrimSpace(fmt.Sprintf("container %s: %s %s", list[i].Name, w.Reason, w.Message))
				if list[i].Name != layout.CassandraContainer {
					return words // its image is the operator's choice
				}
				return WithFields(words)
			}
		}
	}
	return ""
}

// unboundClaims names the claims without a volume, if they are what the scheduler waits for: it
// does not say which, nor that their class does not exist.
func unboundClaims(n *facts.Node, message string) string {
	if !strings.Contains(message, "unbound immediate PersistentVolumeClaims") {
		return ""
	}
	var out strings.Builder
	for _, volume := range slices.Sorted(maps.Keys(n.Claims)) {
		c := n.Claims[volume]
		if !c.Unbound() {
			continue
		}
		class := "of the default class"
		if name := c.Claim.Spec.StorageClassName; name != nil {
			class = "of class " + *name
		}
		fmt.Fprintf(&out, "; claim %s %s has no volume", c.Claim.Name, class)
	}
	return out.String()
}

// fields of a CassandraCluster, or else what of the hosts, that what Kubernetes and Cassandra say
// may come from, by what they say: the likeliest first. The scheduler's words are those of its
// plugins' ErrReason constants, the kubelet's of pkg/kubelet/images, and the JVM's those of
// hotspot's arguments.cpp.
var fields = []struct{ word, field string }{
	{"node(s) were unschedulable", "hosts that are cordoned"},
	{"untolerated taint {node.kubernetes.io/", "the conditions of the hosts"},
	{"storageclass", "node.storage storageClassName"},
	{"persistent volumes to bind", "node.storage"},
	{"unbound immediate PersistentVolumeClaims", "node.storage storageClassName"},
	{"Insufficient ", "node.resources.requests"},
	{"node affinity/selector", "node.placement"},
	{"untolerated taint", "node.placement.tolerations"},
	{"pod anti-affinity", "node.placement.hostAntiAffinity"},
	{"topology spread constraints", "node.placement.topologySpreadConstraints"},
	{"ErrImagePull", "image, imagePullSecrets"},
	{"ImagePullBackOff", "image, imagePullSecrets"},
	{"InvalidImageName", "image"},
	{"VM option", "node.jvm.options"},
	{"Cassandra refused its configuration", "node.cassandraYaml, node.jvm"},
}

// WithFields adds to a message what it may come from, where that is known: fields of the spec, or
// hosts.
func WithFields(message string) string {
	var at []string
	for _, f := range fields {
		if strings.Contains(message, f.word) && !strings.Contains(strings.Join(at, ", "), f.field) {
			at = append(at, f.field)
		}
	}
	if len(at) == 0 {
		return message
	}
	return fmt.Sprintf("%s (see %s)", message, strings.Join(at, ", "))
}
