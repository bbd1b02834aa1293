package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
)

type resizedPod = v1alpha1.ResizedPod

const gibibyte = 1 << 30

// The environment of an agent is as old as the agent: what its pod was resized to since, it learns
// from the record, and of that nothing that is not there yet.
func TestTheMemoryLimitOfAPodThatIsResized(t *testing.T) {
	four, six := resource.MustParse("4Gi"), resource.MustParse("6Gi")
	for name, c := range map[string]struct {
		record      *resource.Quantity
		resized     *resizedPod
		environment int64
		want        int64
	}{
		"made so":                         {&four, nil, 4 * gibibyte, 4},
		"the record is ahead":             {&six, nil, 4 * gibibyte, 4},
		"the pod is ahead":                {&four, nil, 6 * gibibyte, 4},
		"resized":                         {&six, &resizedPod{PodUID: "mine", MemoryLimit: &six}, 4 * gibibyte, 6},
		"another pod was":                 {&six, &resizedPod{PodUID: "former", MemoryLimit: &six}, 4 * gibibyte, 4},
		"resized, and corrected to less":  {&four, &resizedPod{PodUID: "mine", MemoryLimit: &six}, 4 * gibibyte, 6},
		"no limit":                        {nil, nil, 0, 0},
		"resized, and has no limit":       {nil, &resizedPod{PodUID: "mine"}, 0, 0},
		"the record has one, the pod not": {&four, nil, 0, 0},
	} {
		f := &Facts{Self: Self{PodUID: "mine"}, Record: &v1alpha1.CassandraNode{}}
		f.Record.Spec.Resized = c.resized
		if c.record != nil {
			limits := corev1.ResourceList{corev1.ResourceMemory: *c.record}
			f.Record.Spec.Pod.Resources = &v1alpha1.Resources{Limits: limits}
		}
		if got := f.MemoryLimit(c.environment); got != c.want*gibibyte {
			t.Errorf("%s: %d, want %d Gi", name, got, c.want)
		}
	}
	if got := (&Facts{}).MemoryLimit(gibibyte); got != gibibyte {
		t.Errorf("without a record: %d", got)
	}
}

// What a node is proven with follows a resize while its JVM runs on, and one that needs a restart
// when that is over: else a node that is down would take over a new spec out of turn, or a heap
// that does not work could not be corrected.
func TestANodeIsProvenWithWhatItsPodWasResizedTo(t *testing.T) {
	finished := time.Unix(1, 0)
	for name, c := range map[string]struct {
		resized *resizedPod
		restart *RestartMemory
		want    string
	}{
		"made so":         {nil, nil, "made"},
		"resized":         {&resizedPod{PodUID: "mine", PodTemplate: "resized"}, nil, "resized"},
		"another pod was": {&resizedPod{PodUID: "former", PodTemplate: "resized"}, nil, "made"},
		"to be restarted": {&resizedPod{PodUID: "mine", PodTemplate: "resized", Restart: "2"}, nil, "before"},
		"the restart of before": {&resizedPod{PodUID: "mine", PodTemplate: "resized", Restart: "2"},
			&RestartMemory{IntentMemory: IntentMemory{ID: "1", FinishedAt: &finished}}, "before"},
		"a restart that was taken back": {&resizedPod{PodUID: "mine", PodTemplate: "resized", Restart: "2"},
			&RestartMemory{IntentMemory: IntentMemory{ID: "2", WithdrawnAt: &finished}}, "before"},
		"restarted": {&resizedPod{PodUID: "mine", PodTemplate: "resized", Restart: "2"},
			&RestartMemory{IntentMemory: IntentMemory{ID: "2", FinishedAt: &finished}}, "resized"},
	} {
		f := &Facts{Self: Self{PodUID: "mine", PodTemplate: "made"}, Record: &v1alpha1.CassandraNode{}}
		f.Record.Spec.Resized = c.resized
		m := &Memory{Proven: &ProvenMemory{PodTemplate: "before"}, Restart: c.restart}
		if got := f.podTemplate(m); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
