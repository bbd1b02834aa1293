package render_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/internal/core/render"
)

func TestRequests(t *testing.T) {
	list := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
	}
	asks := func(text string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(text), Limits: list("99Gi")}}
	}
	limited := corev1.Container{Resources: corev1.ResourceRequirements{Limits: list("2Gi")}}
	sidecar := asks("1Gi")
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"nothing":        {corev1.PodSpec{Containers: []corev1.Container{{}}}, "0"},
		"containers":     {corev1.PodSpec{Containers: []corev1.Container{asks("4Gi"), asks("1Gi")}}, "5Gi"},
		"a limit alone":  {corev1.PodSpec{Containers: []corev1.Container{limited}}, "2Gi"},
		"a sidecar":      {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{limited}}, "3Gi"},
		"a small init":   {corev1.PodSpec{InitContainers: []corev1.Container{asks("1Gi")}, Containers: []corev1.Container{limited}}, "2Gi"},
		"a great init":   {corev1.PodSpec{InitContainers: []corev1.Container{asks("8Gi"), sidecar}, Containers: []corev1.Container{limited}}, "8Gi"},
		"behind sidecar": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar, asks("8Gi")}, Containers: []corev1.Container{limited}}, "9Gi"},
		"of the pod": {corev1.PodSpec{Containers: []corev1.Container{limited},
			Resources: &corev1.ResourceRequirements{Requests: list("6Gi")}}, "6Gi"},
	} {
		if got := render.Requests(&corev1.Pod{Spec: c.spec}, corev1.ResourceMemory); got.Cmp(resource.MustParse(c.want)) != 0 {
			t.Errorf("%s: %s, want %s", name, got.String(), c.want)
		}
	}
}
