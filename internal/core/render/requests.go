package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Requests is how much of a resource a host must have for a pod, as the scheduler counts it:
// containers and sidecars run together; any other init container runs with the sidecars before it.
func Requests(pod *corev1.Pod, of corev1.ResourceName) resource.Quantity {
	asks := func(r corev1.ResourceRequirements) resource.Quantity {
		if q, set := r.Requests[of]; set {
			return q
		}
		return r.Limits[of] // as the API server has it
	}
	if pod.Spec.Resources != nil {
		if q := asks(*pod.Spec.Resources); !q.IsZero() {
			return q
		}
	}
	var together, most resource.Quantity
	for _, c := range pod.Spec.InitContainers {
		now := together.DeepCopy()
		now.Add(asks(c.Resources))
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			together = now
		}
		if now.Cmp(most) > 0 {
			most = now
		}
	}
	for _, c := range pod.Spec.Containers {
		together.Add(asks(c.Resources))
	}
	if most.Cmp(together) > 0 {
		return most
	}
	return together
}
