package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
	"helenus.io/helenus/internal/inspectapi"
)

// leaseDoubt is how old the leader's lease may look before nobody is believed to lead. It is
// renewed every two seconds; the rest is for clocks that differ.
const leaseDoubt = time.Minute

// operatorHealth is what is seen of the operator from outside.
type operatorHealth struct {
	namespace string
	pods      []corev1.Pod
	ready     int
	// leader is the pod that holds the lease, and fingerprint that of its certificate; empty if
	// none does.
	leader, fingerprint string
	// renewed is how long ago it did so; 0 if that is not known.
	renewed time.Duration
	// err says why nothing of the above is known.
	err error
}

// health looks for the operator's pods and for who leads.
func (s *settings) health(ctx context.Context, c *connection) operatorHealth {
	h := operatorHealth{namespace: s.operatorNamespace}
	if h.pods, h.err = c.operatorPods(ctx, s.operatorNamespace); h.err != nil {
		return h
	}
	for _, pod := range h.pods {
		if facts.PodReady(&pod) {
			h.ready++
		}
	}
	lease := &coordinationv1.Lease{}
	h.err = c.client.Get(ctx, client.ObjectKey{Namespace: s.operatorNamespace, Name: inspectapi.LeaseName}, lease)
	if h.err != nil {
		h.err = client.IgnoreNotFound(h.err)
		return h
	}
	h.leader, h.fingerprint = inspectapi.LeaderOf(lease), lease.Labels[inspectapi.FingerprintLabel]
	if lease.Spec.RenewTime != nil {
		h.renewed = max(0, s.now().Sub(lease.Spec.RenewTime.Time))
	}
	return h
}

// problem says why the operator does not work; empty if it does.
func (h *operatorHealth) problem() string {
	switch {
	case len(h.pods) == 0:
		return fmt.Sprintf("NOT RUNNING, no pod of it is in namespace %q (name another one by --operator-namespace)",
			h.namespace)
	case h.ready == 0:
		return fmt.Sprintf("NOT RUNNING, 0 of %s ready", words.Plural(len(h.pods), "pod"))
	case h.leader == "":
		return "NO LEADER, no replica works"
	case h.renewed > leaseDoubt:
		return fmt.Sprintf("NO LEADER, pod %s was that %s ago", h.leader,
			age(time.Unix(0, 0).Add(h.renewed), time.Unix(0, 0)))
	}
	return ""
}

// String says whether what the operator wrote can be taken for the present. A user who may not know
// is told so, and no more: it is beside what was asked.
func (h *operatorHealth) String() string {
	switch problem := h.problem(); {
	case apierrors.IsForbidden(h.err):
		return fmt.Sprintf("not known whether it runs: you may not look into namespace %q", h.namespace)
	case h.err != nil:
		return fmt.Sprintf("not known whether it runs: %v", h.err)
	case problem != "":
		return fmt.Sprintf("%s: what follows is the last that was written; see kubectl get pods --namespace %s",
			problem, h.namespace)
	default:
		return fmt.Sprintf("pod %s leads, %d of %s ready", h.leader, h.ready, words.Plural(len(h.pods), "pod"))
	}
}

// operatorPods are the pods of the operator that are neither over nor on their way out.
func (c *connection) operatorPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	of := client.MatchingLabels{v1alpha1.LabelComponent: inspectapi.ComponentOperator, v1alpha1.LabelName: "helenus"}
	if err := c.client.List(ctx, list, client.InNamespace(namespace), of); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	}), nil
}

// leader is the pod that is asked for a plan, where, and the fingerprint of its certificate.
type leader struct {
	pod         string
	port        int32
	fingerprint string
}

// leader is the operator's pod that holds its Lease. What is sent to it are the user's own
// credentials: anyone who can write that Lease is trusted with them: that is the operator.
func (s *settings) leader(ctx context.Context, c *connection) (leader, error) {
	h := s.health(ctx, c)
	switch {
	case apierrors.IsForbidden(h.err):
		return leader{}, s.mayNotReach(h.err)
	case h.err != nil:
		return leader{}, fmt.Errorf("look for the operator: %w", h.err)
	}
	for _, pod := range h.pods {
		if port := inspectPort(pod); pod.Name == h.leader && port != 0 && h.fingerprint != "" {
			return leader{pod: pod.Name, port: port, fingerprint: h.fingerprint}, nil
		}
	}
	problem := h.problem()
	if problem == "" {
		problem = fmt.Sprintf("pod %s leads, and is gone, has no port named %q, or did not write label %s to Lease %s",
			h.leader, inspectapi.PortName, inspectapi.FingerprintLabel, inspectapi.LeaseName)
	}
	return leader{}, fmt.Errorf("the operator cannot be asked: %s, see kubectl get pods --namespace %s; kubectl "+
		"helenus status works without it", problem, h.namespace)
}

func inspectPort(pod corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == inspectapi.PortName {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// mayNotReach says which right is missing and how it is given.
func (s *settings) mayNotReach(err error) error {
	return fmt.Errorf("you may not reach the operator: ask an administrator for \"kubectl create rolebinding "+
		"--namespace %s NAME --role=helenus-plan --user=YOU\"; kubectl helenus status works without it (%w)",
		s.operatorNamespace, err)
}
