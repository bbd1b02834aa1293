package api

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestResize: the operator may resize a pod, of the uid that it names alone, and changes nothing
// else by that.
func TestResize(t *testing.T) {
	namespace := namespace(t)
	made, err := typedClient(t, server).CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cassandra", Image: "cassandra",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceMemory: resource.MustParse("2Gi")}}}}},
	}, metav1.CreateOptions{})
	must(t, err)
	pods := typedClient(t, withToken(tokenOf(t, "helenus-system", "helenus", nil))).CoreV1().Pods(namespace)
	patch := func(uid types.UID) (*corev1.Pod, error) {
		return pods.Patch(t.Context(), made.Name, types.StrategicMergePatchType, fmt.Appendf(nil,
			`{"metadata":{"uid":%q,"labels":{"a":"b"}},"spec":{"containers":[{"name":"cassandra","image":"other",`+
				`"resources":{"requests":{"memory":"3Gi"},"limits":{"memory":"3Gi"}}}]}}`, uid),
			metav1.PatchOptions{}, "resize")
	}
	_, err = patch("11111111-1111-1111-1111-111111111111")
	if answer, ok := err.(apierrors.APIStatus); !ok || answer.Status().Code != http.StatusUnprocessableEntity &&
		answer.Status().Code != http.StatusConflict {
		t.Fatalf("a pod of another uid is resized: %v", err)
	}
	now, err := patch(made.UID)
	must(t, err)
	c := now.Spec.Containers[0]
	if c.Resources.Limits.Memory().String() != "3Gi" || c.Resources.Requests.Memory().String() != "3Gi" ||
		c.Image != made.Spec.Containers[0].Image || len(now.Labels) != len(made.Labels) {
		t.Errorf("resized to %+v, with labels %v", c, now.Labels)
	}
}
