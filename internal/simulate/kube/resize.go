package kube

import (
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Resizer is a sandbox that is told what its containers have been resized to.
type Resizer interface{ Resize(pod *corev1.Pod) }

// ResizePods has a host a kubelet that resizes pods in place.
func (k *Cluster) ResizePods(name string) { k.setKubelet(name, resizesPods) }

// Fill has a host put off what makes its pods larger, as one does whose other pods need the rest,
// or no longer.
func (k *Cluster) Fill(name string, full bool) {
	m := k.host(name)
	m.full = full
	for _, p := range k.onHost(m) {
		p.sync()
	}
}

func resourcesOf(o *corev1.Pod) map[string]corev1.ResourceRequirements {
	out := map[string]corev1.ResourceRequirements{}
	for _, c := range slices.Concat(o.Spec.InitContainers, o.Spec.Containers) {
		out[c.Name] = *c.Resources.DeepCopy()
	}
	return out
}

// resize gives the containers what the pod asks for now, a moment later.
func (p *pod) resize() {
	if p.host.kubelet != resizesPods || p.resources == nil || p.sandbox == nil || p.resizing != nil {
		return
	}
	want := resourcesOf(p.known)
	before := p.putOff
	p.putOff = ""
	switch {
	case equality.Semantic.DeepEqual(want, p.resources):
		if before != "" {
			p.report()
		}
		return
	case p.host.full && p.larger(want):
		if p.putOff = corev1.PodReasonDeferred; before == "" {
			p.report()
		}
		return
	}
	sandbox := p.sandbox
	p.resizing = p.line.After(p.line.Between(200*time.Millisecond, 2*time.Second), "resize "+p.seen.Name, func() {
		p.resizing = nil
		if p.sandbox != sandbox || p.stopping {
			return
		}
		p.resources = want
		if r, is := sandbox.(Resizer); is {
			r.Resize(p.known)
		}
		p.report()
		p.resize()
	})
	p.report()
}

func (p *pod) larger(want map[string]corev1.ResourceRequirements) bool {
	for name, r := range want {
		for resource, amount := range r.Requests {
			if has := p.resources[name].Requests[resource]; amount.Cmp(has) > 0 {
				return true
			}
		}
	}
	return false
}

// statusOf a container, with what it has, by a kubelet that tells it.
func (p *pod) statusOf(c *container) corev1.ContainerStatus {
	out := c.status()
	if r, known := p.resources[c.name]; known && c.running && p.host.kubelet == resizesPods &&
		!reflect.DeepEqual(r, corev1.ResourceRequirements{}) {
		out.Resources = r.DeepCopy()
	}
	return out
}

// tellResize has the conditions say what becomes of a resize; they are missing where there is none.
func (p *pod) tellResize(o *corev1.Pod) {
	o.Status.Conditions = slices.DeleteFunc(o.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && p.putOff == "" ||
			c.Type == corev1.PodResizeInProgress && p.resizing == nil
	})
	if p.putOff != "" {
		setCondition(o, corev1.PodResizePending, corev1.ConditionTrue, p.putOff, "Node didn't have enough resource",
			p.now())
	}
	if p.resizing != nil {
		setCondition(o, corev1.PodResizeInProgress, corev1.ConditionTrue, "", "", p.now())
	}
}
