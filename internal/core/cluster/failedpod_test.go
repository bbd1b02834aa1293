package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// firstPause is how long the first pod is left that has failed.
const firstPause = 10 * time.Second

// fail has the pod of a node fail as kubelet lets it.
func (w *world) fail(name, reason, message string) {
	s := &w.snapshot.Nodes[name].Pod.Status
	s.Phase, s.Reason, s.Message = corev1.PodFailed, reason, message
	s.Conditions = nil
}

func (w *world) ready(name string, status corev1.ConditionStatus) {
	w.snapshot.Nodes[name].Pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status},
	}
}

// failAndReplace has the node's pod fail and returns how long it took until another was there.
func (w *world) failAndReplace(t *testing.T, name string) time.Duration {
	t.Helper()
	failed := w.snapshot.Nodes[name].Pod.UID
	w.fail(name, "OutOfcpu", "no room")
	since := w.now
	for range 1000 {
		w.pass()
		if pod := w.snapshot.Nodes[name].Pod; pod != nil && pod.UID != failed {
			return w.now.Sub(since)
		}
	}
	t.Fatalf("pod %s was not replaced", name)
	return 0
}

func TestPodsThatFailInARowAreMadeSlowerAndSlower(t *testing.T) {
	w := formed(t)
	for i, seconds := range []int{10, 20, 40, 80, 160, 300, 300} {
		want := time.Duration(seconds) * time.Second
		// Two passes for the deletion and the creation, and a second that was begun.
		if took := w.failAndReplace(t, second); took < want || took > want+3*time.Second {
			t.Errorf("failure %d: another pod after %s, want %s", i+1, took, want)
		}
		w.ready(second, corev1.ConditionFalse)
	}
	w.ready(second, corev1.ConditionTrue)
	made := w.pass()
	wantWrites(t, made, second, "Apply CassandraNode")
	if made := w.pass(); len(made.Writes) > 0 {
		t.Errorf("nothing has failed since:\n%s", made)
	}
	if took := w.failAndReplace(t, second); took > 13*time.Second {
		t.Errorf("after it was ready: another pod after %s", took)
	}
}

func TestAPodThatHasFailedIsSpokenOf(t *testing.T) {
	w := formed(t)
	w.fail(second, "Evicted", "The node was low on resource: memory.")
	made := w.pass()
	wantWrites(t, made, second, "Apply CassandraNode")
	if want := "PodFailed"; !slices.Contains(w.events, want) {
		t.Errorf("events %v, want %s", w.events, want)
	}
	due := w.now.Add(-time.Second + firstPause).Format(time.RFC3339)
	if len(made.Notices) != 1 || made.Notices[0].Reason != "PodBackoff" || made.Notices[0].Message != "pod "+second+
		" has failed, for the first time since its node was last ready: Evicted: The node was low on resource: "+
		"memory.; it is recreated after "+due {
		t.Errorf("blocked %+v", made.Notices)
	}
	// It says the same until then, and writes nothing.
	again := w.pass()
	if len(again.Writes) > 0 || again.Notices[0].Message != made.Notices[0].Message ||
		again.Wake != firstPause-time.Second {
		t.Errorf("blocked %+v, wakes in %s:\n%s", again.Notices, again.Wake, again)
	}
}

func TestWhatAFailedPodWaitsFor(t *testing.T) {
	at := func(w *world, count int, when time.Time) {
		annotate(w, fmt.Sprintf(`{"count":%d,"pod":%q,"at":%q}`, count, w.snapshot.Nodes[second].Pod.UID,
			when.Format(time.RFC3339)))
	}
	for name, c := range map[string]struct {
		change func(w *world)
		want   []string
		wake   time.Duration
	}{
		"it has not been counted":  {func(*world) {}, []string{"Apply CassandraNode"}, 10 * time.Second},
		"it has just been counted": {func(w *world) { at(w, 1, w.now) }, nil, 10 * time.Second},
		"half of its time is over": {func(w *world) {
			at(w, 2, w.now.Add(-10*time.Second))
		}, nil, 10 * time.Second},
		"its time is over": {func(w *world) {
			at(w, 2, w.now.Add(-20*time.Second))
		}, []string{"Delete Pod"}, interval},
		"the clock was set back by a day": {func(w *world) { at(w, 2, w.now.Add(24*time.Hour)) }, nil,
			20 * time.Second},
		"it has failed more than often": {func(w *world) { at(w, 1<<40, w.now) }, nil, 5 * time.Minute},
		"another failed before": {func(w *world) {
			at(w, 1, w.now)
			w.snapshot.Nodes[second].Pod.UID = "another"
		}, []string{"Apply CassandraNode"}, 20 * time.Second},
		"somebody wrote something": {func(w *world) {
			annotate(w, "twice")
		}, []string{"Apply CassandraNode"}, 10 * time.Second},
		"somebody wrote what cannot be": {func(w *world) {
			annotate(w, `{"count":-3}`)
		}, []string{"Apply CassandraNode"}, 10 * time.Second},
		"it has succeeded": {func(w *world) {
			w.snapshot.Nodes[second].Pod.Status.Phase = corev1.PodSucceeded
		}, []string{"Apply CassandraNode"}, 10 * time.Second},
		"it was made by another spec": {func(w *world) {
			w.snapshot.Nodes[second].Pod.Annotations[v1alpha1.AnnotationTemplateHash] = "x"
		}, []string{"Delete Pod"}, interval},
		"somebody deletes it already": {func(w *world) {
			now := metav1.NewTime(w.now)
			w.snapshot.Nodes[second].Pod.DeletionTimestamp = &now
		}, nil, interval},
		"it runs, and was counted by another": {func(w *world) {
			at(w, 1, w.now)
			w.snapshot.Nodes[second].Pod.Status.Phase = corev1.PodRunning
		}, nil, interval},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.fail(second, "OutOfmemory", "")
			c.change(w)
			made := next(w)
			wantWrites(t, made, second, c.want...)
			if made.Wake != c.wake {
				t.Errorf("wakes in %s, want %s", made.Wake, c.wake)
			}
		})
	}
}

func annotate(w *world, text string) {
	w.snapshot.Nodes[second].Record.Annotations = map[string]string{v1alpha1.AnnotationPodFailures: text}
}

func TestOtherAnnotationsOfARecordStay(t *testing.T) {
	w := formed(t)
	w.snapshot.Nodes[second].Record.Annotations = map[string]string{"team": "shop"}
	w.fail(second, "Evicted", "")
	w.pass()
	has := w.snapshot.Nodes[second].Record.Annotations
	if has["team"] != "shop" || !strings.Contains(has[v1alpha1.AnnotationPodFailures], `"count":1`) {
		t.Errorf("annotations %v", has)
	}
	w.snapshot.Nodes[second].Pod.Status.Phase = corev1.PodRunning
	w.ready(second, corev1.ConditionTrue)
	w.pass()
	if has := w.snapshot.Nodes[second].Record.Annotations; len(has) != 1 || has["team"] != "shop" {
		t.Errorf("annotations %v", has)
	}
}
