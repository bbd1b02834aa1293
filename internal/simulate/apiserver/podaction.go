package apiserver

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// bind gives a pod its host.
func (w *writing) bind(b *corev1.Binding) error {
	if b.Name != w.key.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if err := w.admitInto(w.key.Namespace); err != nil {
		return err
	}
	live := w.find(w.kind, w.key)
	if live == nil {
		return apierrors.NewNotFound(w.kind.resource, w.key.Name)
	}
	if b.UID != "" && b.UID != live.uid() {
		return w.unmet(fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", b.UID,
			live.uid()))
	}
	if at := live.typed.GetResourceVersion(); b.ResourceVersion != "" && b.ResourceVersion != at {
		return w.unmet(fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in "+
			"object meta: %v", b.ResourceVersion, at))
	}
	pod := live.object.DeepCopyObject().(*corev1.Pod)
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, w.key.Name,
			fmt.Errorf(format, args...))
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return refuse("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return refuse("pod %s has non-empty .spec.schedulingGates", pod.Name)
	case b.Target.Name == "":
		return errors.New("target.name: Required value")
	}
	pod.Spec.NodeName = b.Target.Name
	if pod.Annotations == nil && len(b.Annotations) > 0 {
		pod.Annotations = map[string]string{}
	}
	for key, value := range b.Annotations {
		pod.Annotations[key] = value
	}
	if pod.Labels == nil && len(b.Labels) > 0 {
		pod.Labels = map[string]string{}
	}
	for key, value := range b.Labels {
		pod.Labels[key] = value
	}
	setPodCondition(pod, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, w.now())
	if w.dryRun {
		return nil
	}
	// No manager comes to own what the binding sets, as on the real server.
	_, err := w.commit(w.request, w.kind, w.key, live, pod, live.owned)
	return err
}

// setPodCondition sets a condition; its time is when its status changed.
func setPodCondition(pod *corev1.Pod, c corev1.PodCondition, now metav1.Time) {
	c.LastTransitionTime = now
	i := slices.IndexFunc(pod.Status.Conditions, func(has corev1.PodCondition) bool { return has.Type == c.Type })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	}
	if has := pod.Status.Conditions[i]; has.Status == c.Status {
		c.LastTransitionTime = has.LastTransitionTime
	}
	pod.Status.Conditions[i] = c
}

// evict deletes a pod if the disruption budget that it is under allows it.
func (w *writing) evict(e *policyv1.Eviction) error {
	if e.Name != w.key.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if err := w.admitInto(w.key.Namespace); err != nil {
		return err
	}
	live := w.find(w.kind, w.key)
	if live == nil {
		return apierrors.NewNotFound(w.kind.resource, w.key.Name)
	}
	o := &metav1.DeleteOptions{}
	if e.DeleteOptions != nil {
		o = e.DeleteOptions.DeepCopy()
	}
	w.dryRun = w.dryRun || len(o.DryRun) > 0
	pod := live.object.(*corev1.Pod)
	// What has ended, has not begun or is being deleted is no disruption.
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed &&
		pod.Status.Phase != corev1.PodPending && pod.DeletionTimestamp == nil {
		if err := w.disrupt(pod); err != nil {
			return err
		}
	}
	return w.deleteEvicted(live, o)
}

// deleteEvicted marks a pod as evicted and deletes it.
func (w *writing) deleteEvicted(live *version, o *metav1.DeleteOptions) error {
	if w.dryRun {
		return w.delete(o)
	}
	if err := w.preconditions(live, o.Preconditions); err != nil {
		return err
	}
	pod := live.object.DeepCopyObject().(*corev1.Pod)
	setPodCondition(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
		Message: "Eviction API: evicting",
	}, w.now())
	marked, err := w.commit(w.request, w.kind, w.key, live, pod, live.owned)
	if err != nil {
		return err
	}
	if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
		now := marked.typed.GetResourceVersion()
		o.Preconditions.ResourceVersion = &now
	}
	return w.delete(o)
}

// disrupt asks the budget of a pod, and takes one from what it allows.
func (w *writing) disrupt(pod *corev1.Pod) error {
	k := w.kinds.named["PodDisruptionBudget"]
	var budgets []*version
	t := w.table(k)
	for _, key := range t.keys {
		if key.Namespace != pod.Namespace {
			continue
		}
		b := t.objects[key].object.(*policyv1.PodDisruptionBudget)
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil &&
			selector.Matches(labels.Set(pod.Labels)) {
			budgets = append(budgets, t.objects[key])
		}
	}
	switch len(budgets) {
	case 0:
		return nil
	case 1:
	default:
		return errors.New("this pod has more than one PodDisruptionBudget, which the eviction subresource does not " +
			"support")
	}
	budget := budgets[0].object.(*policyv1.PodDisruptionBudget).DeepCopy()
	if !podIsReady(pod) {
		if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
			return nil
		}
		if budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0 {
			return nil
		}
	}
	switch s := &budget.Status; {
	case s.ObservedGeneration < budget.Generation:
		return tooManyDisruptions(10, "The disruption budget %s is still being processed by the server.", budget.Name)
	case s.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(schema.GroupResource{Group: k.Group, Resource: "poddisruptionbudget"},
			budget.Name, errors.New("pdb disruptions allowed is negative"))
	case s.DisruptionsAllowed == 0:
		return tooManyDisruptions(0, "The disruption budget %s needs %d healthy pods and has %d currently", budget.Name,
			s.DesiredHealthy, s.CurrentHealthy)
	}
	budget.Status.DisruptionsAllowed--
	if budget.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&budget.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.InsufficientPodsReason,
			Status: metav1.ConditionFalse, ObservedGeneration: budget.Status.ObservedGeneration,
			LastTransitionTime: w.now(),
		})
	}
	if w.dryRun {
		return nil
	}
	if budget.Status.DisruptedPods == nil {
		budget.Status.DisruptedPods = map[string]metav1.Time{}
	}
	budget.Status.DisruptedPods[pod.Name] = w.now()
	key := types.NamespacedName{Namespace: budget.Namespace, Name: budget.Name}
	r := &Request{User: w.request.User, Verb: Update, Kind: k.Kind, Subresource: subresourceStatus,
		Namespace: key.Namespace, Name: key.Name, resource: k.resource}
	_, err := w.commit(r, k, key, budgets[0], budget, budgets[0].owned)
	return err
}

func tooManyDisruptions(seconds int, format string, args ...any) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf(format, args...)})
	return err
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
