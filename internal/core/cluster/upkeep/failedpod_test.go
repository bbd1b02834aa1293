package upkeep

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhyAPodHasFailed(t *testing.T) {
	for want, status := range map[string]corev1.PodStatus{
		"Evicted: low on memory": {Reason: "Evicted", Message: "low on memory"},
		"OutOfcpu":               {Reason: "OutOfcpu"},
		"was terminated":         {Message: "was terminated"},
		"it ended as Succeeded, without a reason": {Phase: corev1.PodSucceeded},
	} {
		if got := whyFailed(&corev1.Pod{Status: status}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
