package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const podKind = "Pod"

func podRules() rules {
	r := counted(specAndStatus())
	r.scopedToStatus = []string{"deletionTimestamp", "ownerReferences"}
	r.fields = func(object client.Object) map[string]string {
		p := object.(*corev1.Pod)
		return map[string]string{
			"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy),
			"spec.schedulerName":      p.Spec.SchedulerName,
			"spec.serviceAccountName": p.Spec.ServiceAccountName, "spec.hostNetwork": fmt.Sprint(p.Spec.HostNetwork),
			"status.phase": string(p.Status.Phase), "status.podIP": p.Status.PodIP,
			"status.nominatedNodeName": p.Status.NominatedNodeName,
		}
	}
	r.defaults = func(object client.Object) { defaultPod(object.(*corev1.Pod)) }
	r.admit = admitPod
	r.admitUpdate = func(_ *Server, object, old client.Object) error {
		pod, before := object.(*corev1.Pod), old.(*corev1.Pod)
		if pod.Spec.Priority == nil && pod.Spec.PriorityClassName == before.Spec.PriorityClassName {
			pod.Spec.Priority = before.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = before.Spec.PreemptionPolicy
		}
		tolerateLoss(&pod.Spec)
		return nil
	}
	r.prepareCreate = func(object client.Object) {
		pod := object.(*corev1.Pod)
		pod.Generation = 1
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qualityOf(pod)}
		if len(pod.Spec.SchedulingGates) > 0 {
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
				Message:            "Scheduling is blocked due to non-empty scheduling gates",
				LastTransitionTime: pod.CreationTimestamp,
			}}
		}
	}
	prepare := r.prepareStatus
	r.prepareStatus = func(object, old client.Object, now metav1.Time) {
		prepare(object, old, now)
		pod, before := object.(*corev1.Pod), old.(*corev1.Pod)
		pod.DeletionTimestamp, pod.OwnerReferences = nil, before.OwnerReferences
		if pod.Status.QOSClass == "" {
			pod.Status.QOSClass = before.Status.QOSClass
		}
		if pod.Status.ObservedGeneration == 0 {
			pod.Status.ObservedGeneration = before.Status.ObservedGeneration
		}
	}
	r.validate, r.validateCreate, r.validateUpdate, r.validateStatus = validPod, validNewPod, validPodUpdate,
		validPodStatus
	// A pod without a host, or that has ended, is gone at once: there is no kubelet to stop
	// anything.
	r.grace = func(object client.Object, asked *int64) int64 {
		pod := object.(*corev1.Pod)
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		switch grace := pod.Spec.TerminationGracePeriodSeconds; {
		case pod.Spec.NodeName == "" || ended:
			return 0
		case asked != nil:
			return max(*asked, -1)
		case grace == nil:
			return 0
		case *grace < 0:
			return 1
		default:
			return *grace
		}
	}
	return r
}

// admitPod does what the admission plugins do that are on by default. Tokens are not mounted, and
// classes of priority are not looked up: pods of Helenus want neither.
func admitPod(s *Server, object client.Object) error {
	pod := object.(*corev1.Pod)
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
		pod.Spec.DeprecatedServiceAccount = "default"
	}
	k := s.kinds.named["ServiceAccount"]
	account := s.find(k, Key{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName})
	if account == nil {
		return forbidden(pod, "error looking up service account %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName,
			apierrors.NewNotFound(k.resource, pod.Spec.ServiceAccountName))
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets,
			account.object.(*corev1.ServiceAccount).ImagePullSecrets...)
	}
	priority, policy := int32(0), corev1.PreemptLowerPriority
	if pod.Spec.Priority != nil && *pod.Spec.Priority != priority {
		return forbidden(pod, "the integer value of priority (%d) must not be provided in pod spec; priority "+
			"admission controller computed %d from the given PriorityClass name", *pod.Spec.Priority, priority)
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &priority, &policy
	tolerateLoss(&pod.Spec)
	return nil
}

func forbidden(pod *corev1.Pod, format string, args ...any) error {
	return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf(format, args...))
}

// tolerateLoss has a pod that does not say otherwise leave a lost host after five minutes.
func tolerateLoss(spec *corev1.PodSpec) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := false
		for _, t := range spec.Tolerations {
			tolerated = tolerated || (t.Key == taint || t.Key == "") &&
				(t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !tolerated {
			seconds := int64(300)
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: &seconds,
			})
		}
	}
}

// qualityOf is the class that kubelet evicts pods by.
func qualityOf(pod *corev1.Pod) corev1.PodQOSClass {
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	guaranteed := true
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			addComputed(requests, list[i].Resources.Requests)
			if addComputed(limits, list[i].Resources.Limits) < 2 {
				guaranteed = false
			}
		}
	}
	if len(requests) == 0 && len(limits) == 0 {
		return corev1.PodQOSBestEffort
	}
	for name, request := range requests {
		if limit, has := limits[name]; !has || limit.Cmp(request) != 0 {
			guaranteed = false
		}
	}
	if guaranteed && len(requests) == len(limits) {
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// addComputed adds what counts of a list, and says how many that is.
func addComputed(sum, list corev1.ResourceList) int {
	found := 0
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if size := list[name]; size.Sign() > 0 {
			found++
			total := sum[name].DeepCopy()
			total.Add(size)
			sum[name] = total
		}
	}
	return found
}
