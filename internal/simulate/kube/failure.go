package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// failure is why a pod has failed. One that has is never run again: only its deletion makes room
// for another.
type failure struct {
	reason, message string
}

// Reject has the kubelet of a host refuse every pod that comes to it, as one does that has no room
// for it or that no longer matches what the pod wants of its host. Without a reason it takes them
// again.
func (k *Cluster) Reject(host, reason, message string) {
	k.host(host).rejects = failure{reason, "Pod was rejected: " + message}
}

// Press has the kubelet of a host evict its pods, as one does that runs out of memory or disk:
// their containers get no time to stop, and the pods stay as failed ones.
func (k *Cluster) Press(host, message string) {
	for _, p := range k.onHost(k.host(host)) {
		if p.gone || p.stopping || p.failed != nil || p.sandbox == nil {
			continue
		}
		p.failed = &failure{"Evicted", message}
		p.stopWithin(time.Second)
	}
}

// fail ends a pod for good, and says why.
func (p *pod) fail(f failure) {
	p.failed = &f
	p.report()
}

// writeFailure says whether it changed anything.
func (p *pod) writeFailure(o *corev1.Pod) bool {
	s := &o.Status
	if s.Phase == corev1.PodFailed {
		return false
	}
	s.Phase, s.Reason, s.Message = corev1.PodFailed, p.failed.reason, p.failed.message
	if s.StartTime == nil {
		now := p.now()
		s.StartTime = &now
	}
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].Ready, s.ContainerStatuses[i].State = false, ended(p.containers, s.ContainerStatuses[i])
	}
	for i := range s.InitContainerStatuses {
		s.InitContainerStatuses[i].Ready, s.InitContainerStatuses[i].State = false,
			ended(p.containers, s.InitContainerStatuses[i])
	}
	setCondition(o, corev1.PodReady, corev1.ConditionFalse, "PodFailed", "", p.now())
	setCondition(o, corev1.ContainersReady, corev1.ConditionFalse, "PodFailed", "", p.now())
	return true
}

// ended is the last state of a container of a failed pod.
func ended(containers []*container, status corev1.ContainerStatus) corev1.ContainerState {
	for _, c := range containers {
		if c.name == status.Name && c.exit != nil {
			return corev1.ContainerState{Terminated: c.exit}
		}
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
		Reason: "ContainerStatusUnknown"}}
}
