package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unknownAfter is how long Kubernetes waits for a host's word before it calls it unknown.
const unknownAfter = 40 * time.Second

// Lose ends a host: everything on it stops at once and nobody is told. Its disks keep what they
// have.
func (k *Cluster) Lose(name string) {
	m := k.host(name)
	m.up, m.lost = false, true
	for _, p := range k.onHost(m) {
		p.crash()
	}
	k.line.After(unknownAfter, "silence of "+name, func() { k.judge(m) })
}

// WasLost says whether a host was ever lost.
func (k *Cluster) WasLost(name string) bool { return k.host(name).lost }

// Scrap loses a host for good: whoever has it return finds nothing.
func (k *Cluster) Scrap(name string) {
	k.Lose(name)
	k.host(name).scrapped = true
}

// crash ends what runs of a pod as the loss of its host does.
func (p *pod) crash() {
	if p.sandbox == nil {
		return
	}
	sandbox := p.sandbox
	p.sandbox = nil // so that nobody restarts or reports anything
	for _, c := range p.containers {
		p.line.Cancel(c.again)
		c.again = nil
		if c.running {
			c.running, c.started, c.ready = false, false, false
			sandbox.Kill(c.name)
		}
	}
	sandbox.Remove()
}

// KeepSidecars has a host a kubelet of before 1.32: it restarts no sidecar whose image has changed,
// and starts the new one when the old one ends.
func (k *Cluster) KeepSidecars(name string) {
	k.setKubelet(name, keepsSidecars)
}

const (
	keepsSidecars = "v1.31.14"
	resizesPods   = "v1.33.1"
)

func (k *Cluster) setKubelet(name, release string) {
	m := k.host(name)
	m.kubelet = release
	node := m.object()
	updateStatus(k, node, k.uidOf(node), func(n *corev1.Node) bool {
		n.Status.NodeInfo.KubeletVersion = m.kubelet
		return true
	})
}

// Zone of a host.
func (k *Cluster) Zone(name string) string { return k.host(name).Zone }

// Return brings a host back: kubelet starts the pods again that the API server still binds to it.
// Without its disks all volumes on it are empty.
func (k *Cluster) Return(name string, withDisks bool) {
	m := k.host(name)
	if m.scrapped {
		return
	}
	m.up = true
	if !withDisks {
		for _, v := range k.volumes {
			if v.Host == name {
				k.runtime.Destroy(v)
			}
		}
		for _, p := range k.onHost(m) {
			clear(p.pulled)
			for _, v := range p.own {
				k.runtime.Destroy(v)
			}
		}
	}
	k.resume(m)
}

// Partition cuts kubelet off from the API server; containers run on. Whether their own traffic is
// cut is the world's business.
func (k *Cluster) Partition(name string) {
	m := k.host(name)
	m.linked = false
	k.line.After(unknownAfter, "silence of "+name, func() { k.judge(m) })
}

// Heal ends a partition.
func (k *Cluster) Heal(name string) {
	m := k.host(name)
	m.linked = true
	k.resume(m)
}

// Outage cuts every kubelet off from the API server, or ends that. Nobody is there who would call
// the hosts silent.
func (k *Cluster) Outage(away bool) {
	for _, m := range k.hosts {
		if m.linked = !away; !away {
			k.resume(m)
		}
	}
}

// Linger keeps the kubelet of a host for some time from ending pods that were deleted by force, or
// no longer: they run on beside those that come after them.
func (k *Cluster) Linger(name string, d time.Duration) {
	m := k.host(name)
	m.lingers = k.line.Now().Add(d)
	for _, p := range k.onHost(m) {
		if p.gone {
			p.sync()
		}
	}
}

// resume has kubelet look at every pod again.
func (k *Cluster) resume(m *Host) {
	k.line.After(k.line.Between(time.Second, 5*time.Second), "kubelet of "+m.Name, func() {
		if !m.up || !m.linked {
			return
		}
		k.register(m)
		k.judge(m)
		for _, p := range k.onHost(m) {
			if p.stopping && p.sandbox == nil && (p.failed == nil || p.seen.DeletionTimestamp != nil) {
				p.remove()
				continue
			}
			p.sync()
			p.report()
		}
		k.place()
	})
}

// onHost are the pods on a host: also those that the API server has no more and that it has not
// been told of.
func (k *Cluster) onHost(m *Host) []*pod {
	var out []*pod
	for _, p := range k.pods {
		if p.host == m {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *pod) int {
		if a.seen.Name != b.seen.Name {
			if a.seen.Name < b.seen.Name {
				return -1
			}
			return 1
		}
		return a.seen.CreationTimestamp.Compare(b.seen.CreationTimestamp.Time)
	})
	return out
}

// judge is the node controller: it says whether a host is heard, and marks the pods of one that is
// not as not ready.
func (k *Cluster) judge(m *Host) {
	heard := m.up && m.linked
	if heard == m.ready {
		return
	}
	m.ready = heard
	status, reason := corev1.ConditionTrue, "KubeletReady"
	if !heard {
		status, reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	updateStatus(k, node, k.uidOf(node), func(n *corev1.Node) bool {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: reason,
			LastTransitionTime: k.now()}}
		return true
	})
	update(k, node, k.uidOf(node), func(n *corev1.Node) bool {
		n.Spec.Taints = without(n.Spec.Taints, corev1.TaintNodeUnreachable)
		if !heard {
			n.Spec.Taints = append(n.Spec.Taints,
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule})
		}
		return true
	})
	if heard {
		return
	}
	for _, p := range k.onHost(m) {
		if !p.gone {
			updateStatus(k, p.object(), p.seen.UID, func(o *corev1.Pod) bool {
				return setCondition(o, corev1.PodReady, corev1.ConditionFalse, "NodeNotReady", "Node is not ready",
					k.now())
			})
		}
	}
}
