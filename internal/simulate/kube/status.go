package kube

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report has kubelet write the pod's status soon.
func (p *pod) report() {
	if p.reporting == nil {
		p.reporting = p.line.After(p.soon(), "status "+p.seen.Name, func() {
			p.reporting = nil
			if p.gone || p.host == nil || !p.host.up || !p.host.linked {
				return
			}
			write := p.writeStatus
			if p.failed != nil && p.sandbox == nil {
				write = p.writeFailure
			}
			updateStatus(p.Cluster, p.object(), p.seen.UID, write)
		})
	}
}

// writeStatus says whether it changed anything.
func (p *pod) writeStatus(o *corev1.Pod) bool {
	before := o.Status.DeepCopy()
	s := &o.Status
	if p.address.IsValid() && p.sandbox != nil {
		s.PodIP, s.PodIPs = p.address.String(), []corev1.PodIP{{IP: p.address.String()}}
	}
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	initialized, ready, begun := true, true, false
	for _, c := range p.containers {
		if c.sidecar {
			s.InitContainerStatuses = append(s.InitContainerStatuses, p.statusOf(c))
			initialized = initialized && c.started
			ready = ready && c.started
		} else {
			s.ContainerStatuses = append(s.ContainerStatuses, p.statusOf(c))
			ready = ready && c.ready
			begun = begun || c.begun
		}
	}
	p.tellResize(o)
	s.Phase = corev1.PodPending
	if begun {
		s.Phase = corev1.PodRunning
	}
	if s.StartTime == nil {
		now := p.now()
		s.StartTime = &now
	}
	setCondition(o, corev1.PodInitialized, truth(initialized), "", "", p.now())
	reason := ""
	if !ready {
		reason = "ContainersNotReady"
	}
	setCondition(o, corev1.ContainersReady, truth(ready), reason, "", p.now())
	setCondition(o, corev1.PodReady, truth(ready), reason, "", p.now())
	setCondition(o, corev1.PodScheduled, corev1.ConditionTrue, "", "", p.now())
	return !reflect.DeepEqual(before, s)
}

func (c *container) status() corev1.ContainerStatus {
	out := corev1.ContainerStatus{
		Name: c.name, Image: c.image, ImageID: c.imageID, ContainerID: c.id(), RestartCount: c.restarts,
		Ready: c.ready || c.sidecar && c.started, Started: &c.started,
	}
	switch {
	case c.running:
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.startedAt)}
	case c.waiting != "":
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.waiting, Message: c.message}
	case c.exit != nil:
		out.State.Terminated = c.exit
	default:
		out.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	if c.exit != nil && out.State.Terminated == nil {
		out.LastTerminationState.Terminated = c.exit
	}
	return out
}

// id is another one for each start.
func (c *container) id() string {
	if c.starts == 0 {
		return ""
	}
	return fmt.Sprintf("simulated://%s-%d", c.name, c.starts)
}

func truth(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// setCondition says whether it changed anything.
func setCondition(o *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string,
	now metav1.Time) bool {
	i := slices.IndexFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: kind})
		i = len(o.Status.Conditions) - 1
	}
	c := &o.Status.Conditions[i]
	if c.Status == status && c.Reason == reason && c.Message == message {
		return false
	}
	if c.Status != status {
		c.LastTransitionTime = now
	}
	c.Status, c.Reason, c.Message = status, reason, message
	return true
}
