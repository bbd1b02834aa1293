package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// prepareResize takes nothing of a request but the resources of containers and the identity of the
// pod (podResizeStrategy#PrepareForUpdate, dropNonResizeUpdates, 1.33).
func prepareResize(pod, before *corev1.Pod) {
	out := before.DeepCopy()
	out.UID, out.ResourceVersion = pod.UID, pod.ResourceVersion
	for _, lists := range [][2][]corev1.Container{{out.Spec.Containers, pod.Spec.Containers},
		{out.Spec.InitContainers, pod.Spec.InitContainers}} {
		for i := range lists[0] {
			for _, asked := range lists[1] {
				if asked.Name == lists[0][i].Name {
					lists[0][i].Resources = asked.Resources
				}
			}
		}
	}
	if !equality.Semantic.DeepEqual(out.Spec, before.Spec) {
		out.Generation++
	}
	*pod = *out
}

// validResize is what a resize is refused for (ValidatePodResize, 1.33), as far as pods of Helenus
// have it.
func validResize(object, old client.Object) (errs field.ErrorList) {
	pod, before, at := object.(*corev1.Pod), old.(*corev1.Pod), field.NewPath("spec")
	if qualityOf(pod) != before.Status.QOSClass {
		errs = append(errs, field.Invalid(at, qualityOf(pod), "Pod QOS Class may not change as a result of resizing"))
	}
	for name, lists := range map[string][2][]corev1.Container{
		"containers":     {pod.Spec.Containers, before.Spec.Containers},
		"initContainers": {pod.Spec.InitContainers, before.Spec.InitContainers},
	} {
		for i, c := range lists[0] {
			was, at := lists[1][i].Resources, at.Child(name).Index(i).Child("resources")
			for kind, amounts := range map[string][2]corev1.ResourceList{"limits": {c.Resources.Limits, was.Limits},
				"requests": {c.Resources.Requests, was.Requests}} {
				for resource, amount := range amounts[1] {
					now, there := amounts[0][resource]
					switch {
					case !there:
						errs = append(errs, field.Forbidden(at.Child(kind), "resource "+kind+" cannot be removed"))
					case resource != corev1.ResourceCPU && resource != corev1.ResourceMemory && now.Cmp(amount) != 0:
						errs = append(errs, field.Forbidden(at, "only cpu and memory resources are mutable"))
					case kind == "limits" && resource == corev1.ResourceMemory && now.Cmp(amount) < 0:
						errs = append(errs, field.Forbidden(at, "memory limits cannot be decreased unless "+
							"resizePolicy is RestartContainer"))
					}
				}
			}
		}
	}
	return errs
}
