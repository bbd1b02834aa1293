package assess

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// The messages are those of kube-scheduler and kubelet 1.35, shortened.
func TestTroubleNamesTheFieldsToLookAt(t *testing.T) {
	unscheduled := func(message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Message: message}}}}
	}
	waiting := func(container, reason, message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason,
				Message: message}},
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
			"its pod cannot be scheduled: 0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are " +
				"available (see node.resources.requests)",
		},
		{
			unscheduled("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node " +
				"affinity/selector"),
			"its pod cannot be scheduled: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's " +
				"node affinity/selector (see node.resources.requests, node.placement)",
		},
		{
			unscheduled("0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node " +
				"affinity/selector"),
			"its pod cannot be scheduled: 0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't " +
				"match Pod's node affinity/selector (see hosts that are cordoned, node.placement)",
		},
		{
			unscheduled("0/3 nodes are available: 3 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: " +
				"}"),
			"its pod cannot be scheduled: 0/3 nodes are available: 3 node(s) had untolerated taint " +
				"{node.kubernetes.io/disk-pressure: } (see the conditions of the hosts, node.placement.tolerations)",
		},
		{
			unscheduled(`storageclass.storage.k8s.io "fast" not found`),
			`its pod cannot be scheduled: storageclass.storage.k8s.io "fast" not found (see node.storage storageClassName)`,
		},
		{
			unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
			"its pod cannot be scheduled: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. " +
				"not found; claim data-n of class fast has no volume (see node.storage storageClassName)",
		},
		{unscheduled("something new"), "its pod cannot be scheduled: something new"},
		{waiting("cassandra", "ErrImagePull", "not found"),
			"container cassandra: ErrImagePull not found (see image, imagePullSecrets)"},
		{waiting("agent", "ErrImagePull", "not found"), "container agent: ErrImagePull not found"},
		{waiting("cassandra", "CrashLoopBackOff", "back-off 10s"),
			"container cassandra: CrashLoopBackOff back-off 10s"},
	} {
		class := "fast"
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
		claim.Name = "data-n"
		bound := claim.DeepCopy()
		bound.Name, bound.Spec.VolumeName = "commitlog-n", "volume"
		if got := Trouble(&facts.Node{Pod: c.pod,
			Claims: map[string]*facts.Claim{"commitlog": {Claim: bound}, "data": {Claim: claim}}}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestItIsSaidWhyAnAgentDoesNotAnswer(t *testing.T) {
	when := metav1.Now()
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "cassandra",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	running := corev1.ContainerStatus{Name: "init",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for want, n := range map[string]*facts.Node{
		"it has no record yet": {Pod: &corev1.Pod{}},
		"it has no pod yet":    {Record: &v1alpha1.CassandraNode{}, Unreachable: "no pod"},
		"its pod is being deleted": {Record: &v1alpha1.CassandraNode{},
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &when}}},
		"its pod cannot be scheduled: no host in zone b": pod(func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "not ready"},
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no host in zone b"},
			}
		}),
		"container cassandra: ImagePullBackOff no such image (see image, imagePullSecrets)": pod(func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
				Message: "placed"}}
			s.InitContainerStatuses = []corev1.ContainerStatus{running, waiting("PodInitializing", ""),
				waiting("ContainerCreating", ""), waiting("", "soon")}
			s.ContainerStatuses = []corev1.ContainerStatus{waiting("ImagePullBackOff", "no such image")}
		}),
		"container cassandra: CrashLoopBackOff": pod(func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{waiting("CrashLoopBackOff", "")}
		}),
		"its agent does not answer: connection refused": pod(func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{running}
		}),
	} {
		if n.Pod != nil && strings.HasPrefix(want, "its agent") {
			n.Unreachable = "connection refused"
		}
		if got := WhyNoAnswer(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, want := WhyNoAnswer(nil), "it has no record yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := WhyNoAnswer(pod(func(*corev1.PodStatus) {})), "its pod is starting"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func pod(change func(*corev1.PodStatus)) *facts.Node {
	n := &facts.Node{Record: &v1alpha1.CassandraNode{}, Pod: &corev1.Pod{}}
	change(&n.Pod.Status)
	return n
}
