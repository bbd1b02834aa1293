package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// late is how long the disruption controller may take, which has much else to do: longer than an
// operator waits between two passes.
const late = 3 * time.Second

// reviewBudgets has the disruption controller compute what every budget allows.
func (k *Cluster) reviewBudgets() {
	if k.budgets == nil {
		k.budgets = k.line.After(k.line.Between(10*time.Millisecond, late), "disruption controller", func() {
			k.budgets = nil
			for _, b := range k.allBudgets() {
				k.reviewBudget(&b)
			}
		})
	}
}

func (k *Cluster) allBudgets() []policyv1.PodDisruptionBudget {
	var list policyv1.PodDisruptionBudgetList
	if err := k.client.List(context.Background(), &list); err != nil {
		panic(fmt.Sprintf("list budgets: %v", err))
	}
	return list.Items
}

func (k *Cluster) reviewBudget(b *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil || b.Spec.MinAvailable == nil {
		return
	}
	var healthy, expected int32
	for _, p := range k.order {
		if p.seen.Namespace != b.Namespace || !selector.Matches(labels.Set(p.seen.Labels)) ||
			p.seen.DeletionTimestamp != nil {
			continue
		}
		expected++
		if PodReady(p.seen) {
			healthy++
		}
	}
	desired := b.Spec.MinAvailable.IntVal
	at := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}}
	updateStatus(k, at, b.UID, func(o *policyv1.PodDisruptionBudget) bool {
		next := policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: o.Generation, DisruptionsAllowed: max(healthy-desired, 0), CurrentHealthy: healthy,
			DesiredHealthy: desired, ExpectedPods: expected,
		}
		s := &o.Status
		if s.ObservedGeneration == next.ObservedGeneration && s.DisruptionsAllowed == next.DisruptionsAllowed &&
			s.CurrentHealthy == next.CurrentHealthy &&
			s.DesiredHealthy == next.DesiredHealthy && s.ExpectedPods == next.ExpectedPods {
			return false
		}
		*s = next
		return true
	})
}

// PodReady says that a pod passes its probes, by its conditions.
func PodReady(o *corev1.Pod) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Evict asks for the eviction of a pod.
func (k *Cluster) Evict(key types.NamespacedName) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return k.client.SubResource("eviction").Create(context.Background(), pod, &policyv1.Eviction{})
}

// uidOf is the uid of the object of that name; empty if there is none.
func (k *Cluster) uidOf(object client.Object) types.UID {
	if err := k.client.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return ""
	}
	return object.GetUID()
}
