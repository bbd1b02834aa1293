package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

func amounts(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func asking(requests, limits corev1.ResourceList) v1alpha1.PodSettings {
	return v1alpha1.PodSettings{Image: "cassandra:5.0.6", Resources: &v1alpha1.Resources{Requests: requests,
		Limits: limits}}
}

func TestWhatCanBeResized(t *testing.T) {
	cpu, memory := amounts("cpu", "1"), amounts("memory", "4Gi")
	have := asking(cpu, memory)
	other := func(change func(*v1alpha1.PodSettings)) v1alpha1.PodSettings {
		out := *have.DeepCopy()
		change(&out)
		return out
	}
	for name, c := range map[string]struct {
		want      v1alpha1.PodSettings
		resizable bool
	}{
		"more CPU":                  {asking(amounts("cpu", "2"), memory), true},
		"less CPU":                  {asking(amounts("cpu", "500m"), memory), true},
		"more memory":               {asking(cpu, amounts("memory", "6Gi")), true},
		"less memory":               {asking(cpu, amounts("memory", "3Gi")), false},
		"another request of memory": {asking(amounts("cpu", "1", "memory", "2Gi"), memory), true},
		"a limit of CPU more":       {asking(cpu, amounts("memory", "4Gi", "cpu", "2")), false},
		"no limit":                  {asking(amounts("cpu", "1", "memory", "4Gi"), nil), false},
		"no request":                {asking(nil, memory), false},
		"another image":             {other(func(p *v1alpha1.PodSettings) { p.Image = "other" }), false},
		"the rules of a newer pod":  {other(func(p *v1alpha1.PodSettings) { p.Revision = 7 }), false},
		"labels, which change anyway": {other(func(p *v1alpha1.PodSettings) {
			p.Metadata = &v1alpha1.Metadata{}
		}), true},
	} {
		if got := Resizable(have, c.want); got != c.resizable {
			t.Errorf("%s: resizable %v", name, got)
		}
	}
	disk := asking(amounts("cpu", "1", "ephemeral-storage", "1Gi"), memory)
	more := asking(amounts("cpu", "1", "ephemeral-storage", "2Gi"), memory)
	if Resizable(disk, more) {
		t.Error("something else than CPU and memory can be resized")
	}
	alike := amounts("cpu", "1", "memory", "4Gi")
	guaranteed := asking(alike, alike)
	guaranteed.AgentResources = &v1alpha1.Resources{Limits: alike}
	burstable := *guaranteed.DeepCopy()
	burstable.Resources.Requests = amounts("cpu", "1", "memory", "3Gi")
	if Resizable(guaranteed, burstable) || Resizable(burstable, guaranteed) {
		t.Error("the quality of service would change")
	}
}

func TestWhetherAPodIsResized(t *testing.T) {
	settings := asking(amounts("cpu", "333m"), amounts("memory", "3Gi"))
	pod := func(has corev1.ResourceRequirements, conditions ...corev1.PodCondition) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Conditions: conditions}}
		p.Spec.Containers = []corev1.Container{{Name: layout.CassandraContainer,
			Resources: effective(settings.Resources)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: layout.CassandraContainer, Resources: &has}}
		return p
	}
	done := corev1.ResourceRequirements{Requests: amounts("cpu", "332m", "memory", "3Gi"),
		Limits: amounts("memory", "3Gi")}
	before := corev1.ResourceRequirements{Requests: amounts("cpu", "332m", "memory", "2Gi"),
		Limits: amounts("memory", "2Gi")}
	condition := func(kind corev1.PodConditionType, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "words"}
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		why  string
		held bool
	}{
		"done":      {pod(done), "", false},
		"not begun": {pod(before), "the kubelet has not resized it yet", false},
		"put off": {pod(before, condition(corev1.PodResizePending, corev1.PodReasonDeferred)),
			"Deferred: words", true},
		"under way": {pod(before, condition(corev1.PodResizeInProgress, "")), "in progress: words", false},
		"has failed": {pod(before, condition(corev1.PodResizeInProgress, corev1.PodReasonError)),
			"in progress: Error words", true},
		"of old word": {pod(done, corev1.PodCondition{Type: corev1.PodResizePending,
			Status: corev1.ConditionFalse}), "", false},
	} {
		if why, held := NotResized(c.pod, settings); why != c.why || held != c.held {
			t.Errorf("%s: %q %v", name, why, held)
		}
		if !HasResources(c.pod, settings) {
			t.Errorf("%s: it is to have other resources", name)
		}
	}
	if other := asking(amounts("cpu", "1"), amounts("memory", "3Gi")); HasResources(pod(done), other) {
		t.Error("another request counts as the same")
	}
}
