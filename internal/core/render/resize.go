package render

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// Resizable says that a pod which runs can become another one by a resize in place, as far as
// Kubernetes allows it for any: nothing but amounts of CPU and memory differs, and the quality of
// service stays. A memory limit is never lowered under a JVM that may use the memory.
func Resizable(have, want v1alpha1.PodSettings) bool {
	a, b := have, want
	a.Resources, a.AgentResources, b.Resources, b.AgentResources = nil, nil, nil, nil
	return PodHash(a) == PodHash(b) && guaranteed(have) == guaranteed(want) &&
		amountsDiffer(effective(have.Resources), effective(want.Resources)) &&
		amountsDiffer(effective(have.AgentResources), effective(want.AgentResources))
}

// amountsDiffer says that two requirements differ in nothing but amounts that can be changed.
func amountsDiffer(have, want corev1.ResourceRequirements) bool {
	same := func(have, want corev1.ResourceList) bool {
		for name, amount := range want {
			was, had := have[name]
			if !had || name != corev1.ResourceCPU && name != corev1.ResourceMemory && was.Cmp(amount) != 0 {
				return false
			}
		}
		return len(have) == len(want)
	}
	return same(have.Requests, want.Requests) && same(have.Limits, want.Limits) &&
		have.Limits.Memory().Cmp(*want.Limits.Memory()) <= 0
}

// effective are requirements as the API server keeps them: what is not requested is the limit.
func effective(r *v1alpha1.Resources) corev1.ResourceRequirements {
	out := requirements(r)
	if len(out.Limits) > 0 {
		requests := out.Limits.DeepCopy()
		maps.Copy(requests, out.Requests)
		out.Requests = requests
	}
	return out
}

// guaranteed says that our containers do not keep a pod from the quality of service Guaranteed.
func guaranteed(settings v1alpha1.PodSettings) bool {
	for _, r := range []corev1.ResourceRequirements{effective(settings.Resources), effective(settings.AgentResources)} {
		if r.Limits.Cpu().IsZero() || r.Limits.Memory().IsZero() ||
			!equality.Semantic.DeepEqual(r.Limits, r.Requests) {
			return false
		}
	}
	return true
}

// Resize is what is written to a pod so that its containers have the resources of some settings.
func Resize(pod *corev1.Pod, settings v1alpha1.PodSettings) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace,
			Annotations: map[string]string{v1alpha1.AnnotationResize: PodHash(settings)}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: layout.AgentContainer,
				Resources: effective(settings.AgentResources)}},
			Containers: []corev1.Container{{Name: layout.CassandraContainer,
				Resources: effective(settings.Resources)}},
		},
	}
}

// ResizeAsked is the hash of what a pod was last asked to become by a resize, and says whether the
// API server has refused that; empty if it never was.
func ResizeAsked(pod *corev1.Pod) (template string, refused bool) {
	template, word, _ := strings.Cut(pod.Annotations[v1alpha1.AnnotationResize], " ")
	return template, word == refusedWord
}

const refusedWord = "refused"

// ResizeRefused is the note of a pod for a resize that the API server has refused.
func ResizeRefused(template string) string { return template + " " + refusedWord }

// WasResized says that a pod is to have the resources of some settings, and was asked to.
func WasResized(pod *corev1.Pod, settings v1alpha1.PodSettings) bool {
	to, refused := ResizeAsked(pod)
	return to == PodHash(settings) && !refused && HasResources(pod, settings)
}

// HasResources says that the containers of a pod are to have the resources of some settings.
func HasResources(pod *corev1.Pod, settings v1alpha1.PodSettings) bool {
	of := func(in []corev1.Container, name string) corev1.ResourceRequirements {
		for _, c := range in {
			if c.Name == name {
				return c.Resources
			}
		}
		return corev1.ResourceRequirements{}
	}
	return covers(of(pod.Spec.Containers, layout.CassandraContainer), effective(settings.Resources), same) &&
		covers(of(pod.Spec.InitContainers, layout.AgentContainer), effective(settings.AgentResources), same)
}

// ResizedTo is what a record says of a pod that was resized to some settings.
func ResizedTo(pod *corev1.Pod, settings v1alpha1.PodSettings) *v1alpha1.ResizedPod {
	out := &v1alpha1.ResizedPod{PodUID: pod.UID, PodTemplate: PodHash(settings)}
	if limit, set := effective(settings.Resources).Limits[corev1.ResourceMemory]; set {
		out.MemoryLimit = &limit
	}
	return out
}

// HalfResized says that a pod was asked to become something else than its record describes.
func HalfResized(record *v1alpha1.CassandraNode, pod *corev1.Pod) bool {
	asked, _ := ResizeAsked(pod)
	return asked != "" && !HasResources(pod, record.Spec.Pod)
}

// NotResized says why the kubelet has not given the containers of a pod what the pod asks for;
// empty if it has. Held says that it does not do so by itself.
func NotResized(pod *corev1.Pod, settings v1alpha1.PodSettings) (why string, held bool) {
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == corev1.PodResizePending {
			return c.Reason + ": " + c.Message, true
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == corev1.PodResizeInProgress {
			said := strings.Fields("in progress: " + c.Reason + " " + c.Message)
			return strings.Join(said, " "), c.Reason == corev1.PodReasonError
		}
	}
	of := func(in []corev1.ContainerStatus, name string) corev1.ResourceRequirements {
		for _, c := range in {
			if c.Name == name && c.Resources != nil {
				return *c.Resources
			}
		}
		return corev1.ResourceRequirements{}
	}
	if !covers(of(pod.Status.ContainerStatuses, layout.CassandraContainer), effective(settings.Resources), near) ||
		!covers(of(pod.Status.InitContainerStatuses, layout.AgentContainer), effective(settings.AgentResources), near) {
		return "the kubelet has not resized it yet", false
	}
	return "", false
}

// covers says that everything which is wanted is there.
func covers(has, want corev1.ResourceRequirements, alike func(a, b resource.Quantity) bool) bool {
	all := func(has, want corev1.ResourceList) bool {
		for name, amount := range want {
			if is, there := has[name]; !there || !alike(is, amount) {
				return false
			}
		}
		return true
	}
	return all(has.Requests, want.Requests) && all(has.Limits, want.Limits)
}

func same(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// near: the kubelet tells what the cgroup has, which keeps CPU in shares and memory in pages.
func near(a, b resource.Quantity) bool {
	x, y := a.AsApproximateFloat64(), b.AsApproximateFloat64()
	return max(x-y, y-x) <= max(y/100, 0.002)
}
