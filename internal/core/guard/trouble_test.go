package guard

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/internal/core/facts"
)

// The messages are those of kube-scheduler and kubelet 1.35, shortened.
func TestTroubleNamesTheFieldsToLookAt(t *testing.T) {
	unscheduled := func(message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}}}
	}
	waiting := func(container, reason, message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}}
	}
	for _, c := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{&corev1.Pod{}, ""},
		{waiting("cassandra", "ContainerCreating", ""), ""},
		{
			unscheduled("0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available"),
			"its pod cannot be scheduled: 0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available (see node.resources.requests)",
		},
		{
			unscheduled("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector"),
			"its pod cannot be scheduled: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector (see node.resources.requests, node.placement)",
		},
		{
			unscheduled("0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector"),
			"its pod cannot be scheduled: 0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector (see hosts that are cordoned, node.placement)",
		},
		{
			unscheduled("0/3 nodes are available: 3 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }"),
			"its pod cannot be scheduled: 0/3 nodes are available: 3 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: } (see the conditions of the hosts, node.placement.tolerations)",
		},
		{
			unscheduled(`storageclass.storage.k8s.io "fast" not found`),
			`its pod cannot be scheduled: storageclass.storage.k8s.io "fast" not found (see node.storage storageClassName)`,
		},
		{
			unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
			"its pod cannot be scheduled: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found; claim data-n of class fast has no volume (see node.storage storageClassName)",
		},
		{unscheduled("something new"), "its pod cannot be scheduled: something new"},
		{waiting("cassandra", "ErrImagePull", "not found"), "container cassandra: ErrImagePull not found (see image, imagePullSecrets)"},
		{waiting("agent", "ErrImagePull", "not found"), "container agent: ErrImagePull not found"},
		{waiting("cassandra", "CrashLoopBackOff", "back-off 10s"), "container cassandra: CrashLoopBackOff back-off 10s"},
	} {
		class := "fast"
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
		claim.Name = "data-n"
		bound := claim.DeepCopy()
		bound.Name, bound.Spec.VolumeName = "commitlog-n", "volume"
		if got := Trouble(&facts.Node{Pod: c.pod, Claims: map[string]*facts.Claim{"commitlog": {Claim: bound}, "data": {Claim: claim}}}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
