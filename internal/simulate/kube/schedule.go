package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/apiserver"
)

// place has pods without a host looked at soon.
func (k *Cluster) place() {
	if k.placing == nil {
		k.placing = k.line.After(k.soon(), "scheduler", func() {
			k.placing = nil
			for _, p := range slices.Clone(k.order) {
				if p.hostName() == "" && p.seen.DeletionTimestamp == nil {
					k.placeOne(p)
				}
			}
		})
	}
}

func (k *Cluster) placeOne(p *pod) {
	claims, err := k.claimsOf(p.seen)
	if err != nil {
		k.unplaceable(p, err.Error())
		return
	}
	var best *Host
	var reasons []string
	for _, m := range k.hosts {
		if reason := k.unfit(p.seen, claims, m); reason != "" {
			if !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
			continue
		}
		if best == nil || k.podsOn(m.Name) < k.podsOn(best.Name) {
			best = m
		}
	}
	if best == nil {
		k.unplaceable(p, fmt.Sprintf("0/%d nodes are available: %v", len(k.hosts), reasons))
		return
	}
	for _, claim := range claims {
		if claim.Spec.VolumeName == "" {
			k.provision(claim, best)
		}
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: best.Name}}
	if err := k.client.SubResource("binding").Create(context.Background(), p.seen.DeepCopy(), binding); err != nil {
		panic(fmt.Sprintf("bind pod %s: %v", p.seen.Name, err))
	}
	p.assumed = best.Name
}

func (k *Cluster) unplaceable(p *pod, message string) {
	updateStatus(k, p.object(), p.seen.UID, func(o *corev1.Pod) bool {
		return setCondition(o, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, message,
			k.now())
	})
}

func (k *Cluster) podsOn(host string) int {
	n := 0
	for _, p := range k.order {
		if p.hostName() == host && p.failed == nil {
			n++
		}
	}
	return n
}

// unfit says why a host cannot take a pod; empty if it can.
func (k *Cluster) unfit(pod *corev1.Pod, claims []*corev1.PersistentVolumeClaim, m *Host) string {
	if !m.ready || m.out {
		return "node(s) had untolerated taint {node.kubernetes.io/unreachable: }"
	}
	if m.cordoned {
		return "node(s) were unschedulable"
	}
	has := labels.Set(m.object().Labels)
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(has) || !matchesAffinity(pod, has) {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	if free := k.freeMemory(m); free < requestedMemory(pod) {
		return "Insufficient memory"
	}
	for _, claim := range claims {
		if name := claim.Spec.VolumeName; name != "" && (k.volumes[name] == nil || k.volumes[name].Host != m.Name) {
			return "node(s) didn't match PersistentVolume's node affinity"
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				return err.Error()
			}
			for _, other := range k.order {
				if other.seen.UID != pod.UID && other.failed == nil && other.hostName() == m.Name &&
					other.seen.Namespace == pod.Namespace && selector.Matches(labels.Set(other.seen.Labels)) {
					return "node(s) didn't match pod anti-affinity rules"
				}
			}
		}
	}
	return ""
}

// hostMemory is what each host has for pods, in bytes.
const hostMemory = 64 << 30

func (k *Cluster) freeMemory(m *Host) int64 {
	free := int64(hostMemory)
	for _, p := range k.order {
		if p.hostName() == m.Name && p.failed == nil {
			free -= requestedMemory(p.seen)
		}
	}
	return free
}

// requestedMemory of a pod is what its containers request that run at once: sidecars among the init
// containers, and the others.
func requestedMemory(pod *corev1.Pod) int64 {
	sum := int64(0)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		sum += c.Resources.Requests.Memory().Value()
	}
	return sum
}

func matchesAffinity(pod *corev1.Pod, has labels.Set) bool {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		all := true
		for _, e := range term.MatchExpressions {
			value, found := has[e.Key]
			switch e.Operator {
			case corev1.NodeSelectorOpIn:
				all = all && found && slices.Contains(e.Values, value)
			case corev1.NodeSelectorOpNotIn:
				all = all && !slices.Contains(e.Values, value)
			case corev1.NodeSelectorOpExists:
				all = all && found
			case corev1.NodeSelectorOpDoesNotExist:
				all = all && !found
			default:
				all = false
			}
		}
		if all {
			return true
		}
	}
	return false
}

// claimsOf are the claims of a pod; an error says which is missing.
func (k *Cluster) claimsOf(pod *corev1.Pod) ([]*corev1.PersistentVolumeClaim, error) {
	var out []*corev1.PersistentVolumeClaim
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		if err := k.client.Get(context.Background(),
			client.ObjectKey{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}, claim); err != nil {
			return nil, fmt.Errorf("persistentvolumeclaim %q not found", v.PersistentVolumeClaim.ClaimName)
		}
		if claim.DeletionTimestamp != nil {
			return nil, fmt.Errorf("persistentvolumeclaim %q is being deleted", claim.Name)
		}
		if claim.Spec.VolumeName == "" && claim.Spec.StorageClassName != nil &&
			*claim.Spec.StorageClassName != apiserver.StorageClass &&
			*claim.Spec.StorageClassName != apiserver.GrowingStorageClass {
			// as kube-scheduler 1.35 has it
			return nil, errors.New("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not " +
				"found")
		}
		if claim.Status.Phase == corev1.ClaimLost {
			return nil, fmt.Errorf("persistentvolumeclaim %q bound to non-existing persistentvolume %q", claim.Name,
				claim.Spec.VolumeName)
		}
		out = append(out, claim)
	}
	return out, nil
}
