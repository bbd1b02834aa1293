package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/inspectapi"
)

// leaseDoubt is how old the leader's lease may look before nobody is believed to lead. It is
// renewed every two seconds; the rest is for clocks that differ.
const leaseDoubt = time.Minute

// operatorHealth is what is seen of the operator from outside.
type operatorHealth struct {
	namespace string
	pods      int
	ready     int
	// leader is the pod that holds the lease; empty if none does.
	leader string
	// renewed is how long ago it did so; 0 if that is not known.
	renewed time.Duration
	// unknown says why nothing of the above is known.
	unknown string
}

// health looks for the operator's pods and for who leads. A user who may not is told so, and no
// more: it is beside what was asked.
func (s *settings) health(ctx context.Context, c *connection) operatorHealth {
	h := operatorHealth{namespace: s.operatorNamespace}
	pods, err := c.operatorPods(ctx, s.operatorNamespace)
	if err != nil {
		h.unknown = reasonOf(err, s.operatorNamespace)
		return h
	}
	for _, pod := range pods {
		h.pods++
		if podReady(pod) {
			h.ready++
		}
	}
	lease := &coordinationv1.Lease{}
	err = c.client.Get(ctx, client.ObjectKey{Namespace: s.operatorNamespace, Name: inspectapi.LeaseName}, lease)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		h.unknown = reasonOf(err, s.operatorNamespace)
	default:
		h.leader = inspectapi.LeaderOf(lease)
		if lease.Spec.RenewTime != nil {
			h.renewed = max(0, s.now().Sub(lease.Spec.RenewTime.Time))
		}
	}
	return h
}

func reasonOf(err error, namespace string) string {
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("you may not look into namespace %q", namespace)
	}
	return err.Error()
}

// String says whether what the operator wrote can be taken for the present.
func (h operatorHealth) String() string {
	const old = "what follows is the last that was written; see kubectl get pods --namespace "
	switch {
	case h.unknown != "":
		return "not known whether it runs: " + h.unknown
	case h.pods == 0:
		return fmt.Sprintf("NOT RUNNING, no pod of it is in namespace %q (name another one by --operator-namespace): "+
			"what follows is the last that was written", h.namespace)
	case h.ready == 0:
		return fmt.Sprintf("NOT RUNNING, 0 of %s ready: %s%s", plural(h.pods, "pod"), old, h.namespace)
	case h.leader == "":
		return fmt.Sprintf("NO LEADER, nobody works: %s%s", old, h.namespace)
	case h.renewed > leaseDoubt:
		return fmt.Sprintf("NO LEADER, pod %s was that %s ago: %s%s", h.leader,
			age(time.Unix(0, 0).Add(h.renewed), time.Unix(0, 0)), old, h.namespace)
	default:
		return fmt.Sprintf("pod %s leads, %d of %s ready", h.leader, h.ready, plural(h.pods, "pod"))
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

// candidate is a pod that may be asked for a plan, and where.
type candidate struct {
	pod  string
	port int32
}

// candidates are the operator's pods that can be asked, the one that leads first. What is sent to
// them are the user's own credentials, so a pod that only carries the labels is not enough: it must
// run as the operator's service account, whose rights go at least as far as most users' anyway.
func (s *settings) candidates(ctx context.Context, c *connection) ([]candidate, error) {
	pods, err := c.operatorPods(ctx, s.operatorNamespace)
	switch {
	case apierrors.IsForbidden(err):
		return nil, s.mayNotReach(err)
	case err != nil:
		return nil, fmt.Errorf("look for the operator: %w", err)
	}
	leader := ""
	lease := &coordinationv1.Lease{}
	// Without the lease every pod is asked, and the first answers who leads.
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: s.operatorNamespace, Name: inspectapi.LeaseName},
		lease); err == nil {
		leader = inspectapi.LeaderOf(lease)
	}
	var found []candidate
	for _, pod := range pods {
		port := inspectPort(pod)
		if pod.Spec.ServiceAccountName != inspectapi.ServiceAccountName || pod.Status.Phase != corev1.PodRunning ||
			port == 0 {
			continue
		}
		found = append(found, candidate{pod: pod.Name, port: port})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if (a.pod == leader) != (b.pod == leader) {
			if a.pod == leader {
				return -1
			}
			return 1
		}
		return strings.Compare(a.pod, b.pod)
	})
	switch {
	case len(pods) == 0:
		return nil, fmt.Errorf("the operator does not run: no pod of it is in namespace %q: apply Helenus' "+
			"install.yaml, or name its namespace by --operator-namespace; kubectl helenus status works without it",
			s.operatorNamespace)
	case len(found) == 0:
		return nil, fmt.Errorf("the operator does not run: %s of it in namespace %q, none of which runs as service "+
			"account %q with a port named %q: see kubectl get pods --namespace %s; kubectl helenus status works "+
			"without it", plural(len(pods), "pod"), s.operatorNamespace, inspectapi.ServiceAccountName,
			inspectapi.PortName, s.operatorNamespace)
	}
	return found, nil
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
