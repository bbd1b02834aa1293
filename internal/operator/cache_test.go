package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheOutlineOfAHostHasWhatIsDecidedOn(t *testing.T) {
	m := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "one", ResourceVersion: "7",
			Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"long": "text"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}, ProviderID: "x",
			Unschedulable: true},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: {}}, Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	}
	got := Outline(m).(*corev1.Node)
	if got.Name != "m1" || got.UID != "one" || got.ResourceVersion != "7" || got.Labels["zone"] != "a" ||
		len(got.Spec.Taints) != 1 || !got.Spec.Unschedulable || len(got.Status.Conditions) != 1 ||
		len(got.Status.Allocatable) != 1 {
		t.Errorf("%+v lacks something", got)
	}
	if got.Annotations != nil || got.Status.Images != nil || got.Spec.ProviderID != "" {
		t.Errorf("%+v has more than is needed", got)
	}
	if m.Annotations == nil {
		t.Error("the object of the watch was changed")
	}
}

func TestTheOutlineOfAPodHasWhatIsDecidedOn(t *testing.T) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p1", UID: "one", ResourceVersion: "7",
			Annotations: map[string]string{"hash": "h"}},
		Spec: corev1.PodSpec{NodeName: "m1", InitContainers: []corev1.Container{{Name: "agent", Image: "agent:1",
			Command: []string{"run"}}}, Containers: []corev1.Container{{Name: "exporter"},
			{Name: "cassandra", Image: "cassandra:5.0.6", Command: []string{"run"}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
	got := Outline(p).(*corev1.Pod)
	if got.UID != "one" || got.ResourceVersion != "7" || got.Annotations["hash"] != "h" || got.Spec.NodeName != "m1" ||
		got.Status.PodIP != "10.0.0.1" {
		t.Errorf("%+v lacks something", got)
	}
	if c := got.Spec.Containers; len(c) != 1 || c[0].Image != "cassandra:5.0.6" || c[0].Command != nil {
		t.Errorf("%+v has more than is needed", got)
	}
	if c := got.Spec.InitContainers; len(c) != 1 || c[0].Image != "agent:1" || c[0].Command != nil {
		t.Errorf("%+v has more than is needed", got)
	}
	if len(p.Spec.Containers) != 2 {
		t.Error("the object of the watch was changed")
	}
}

func TestTheCacheKeepsOutlines(t *testing.T) {
	keep := cacheOptions(nil).DefaultTransform
	got, err := keep(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cassandra"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if pod := got.(*corev1.Pod); pod.Name != "p1" || pod.ManagedFields != nil || pod.Spec.Containers != nil {
		t.Errorf("kept %+v", pod)
	}
}
