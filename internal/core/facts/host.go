package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Unplaced says that a node has no pod on any host.
func (n *Node) Unplaced() bool { return n.Pod == nil || n.Pod.Spec.NodeName == "" }

// HostGone says why a host is gone for certain: in words that follow "its host", or nothing if it
// is not, or nobody knows. That a host is silent proves nothing, however long: what runs on it may
// run on. Only a user, or what manages hosts, knows more, and says so in one of two ways: by
// deleting its Node object, or by the taint node.kubernetes.io/out-of-service. The taint counts as
// it does for Kubernetes itself: on a host that is not ready.
func (s *Snapshot) HostGone(name string) string {
	host := s.Hosts[name]
	switch {
	case host == nil:
		return "is gone: it has no Node object"
	case OutOfService(host):
		return "is out of service, as the taint of its Node object says"
	}
	return ""
}

// OutOfService says that a host was declared to be off, and does not say otherwise.
func OutOfService(host *corev1.Node) bool {
	ready := HostReady(host)
	return (ready == nil || ready.Status != corev1.ConditionTrue) &&
		slices.ContainsFunc(host.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeOutOfService
		})
}

// PodReady says that kubelet counts a pod as ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// HostReady is the condition of that name; nil if a host has none.
func HostReady(host *corev1.Node) *corev1.NodeCondition {
	for i := range host.Status.Conditions {
		if c := &host.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// Reaches says that a volume can be used on a host, as its node affinity has it: one of the terms
// holds, and of a term everything.
func Reaches(volume *corev1.PersistentVolume, host *corev1.Node) bool {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return true
	}
	return slices.ContainsFunc(volume.Spec.NodeAffinity.Required.NodeSelectorTerms,
		func(term corev1.NodeSelectorTerm) bool {
			return len(term.MatchExpressions)+len(term.MatchFields) > 0 &&
				matches(term.MatchExpressions, host.Labels) &&
				matches(term.MatchFields, labels.Set{"metadata.name": host.Name})
		})
}

// OnlyOn says that a volume which is used on a host can be used on no other: every term of its node
// affinity names that one.
func OnlyOn(volume *corev1.PersistentVolume, host *corev1.Node) bool {
	affinity := volume.Spec.NodeAffinity
	return affinity != nil && affinity.Required != nil && !slices.ContainsFunc(affinity.Required.NodeSelectorTerms,
		func(term corev1.NodeSelectorTerm) bool {
			return !slices.ContainsFunc(slices.Concat(term.MatchExpressions, term.MatchFields),
				func(r corev1.NodeSelectorRequirement) bool {
					return r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 &&
						(r.Values[0] == host.Name || r.Values[0] == host.Labels[corev1.LabelHostname])
				})
		})
}

// operators of a node affinity as those of a selector.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan,
	corev1.NodeSelectorOpLt: selection.LessThan,
}

func matches(all []corev1.NodeSelectorRequirement, has labels.Set) bool {
	for _, one := range all {
		r, err := labels.NewRequirement(one.Key, operators[one.Operator], one.Values)
		if err != nil || !r.Matches(has) {
			return false
		}
	}
	return true
}

// Places are the values that a volume's node affinity names, in their order: usually the one host
// that a local disk is in. They are for people.
func Places(volume *corev1.PersistentVolume) []string {
	var out []string
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, r := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			for _, value := range r.Values {
				if r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(out, value) {
					out = append(out, value)
				}
			}
		}
	}
	return out
}
