package upkeep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// A pod that has failed is never run again: kubelet evicted it, or refused it, since its host has
// no room for it or no longer is what the pod asks for. Another one may fail the same way, at once
// and for ever, so each failure doubles the time until the next is made. The failed pod stays for
// as long, for people to look at.
const (
	firstPodPause   = 10 * time.Second
	longestPodPause = 5 * time.Minute
)

// podFailures are the failures in a row of a node's pods. They are kept in an annotation of its
// record: the pods come and go, and an operator that starts again must not start over.
type podFailures struct {
	Count int `json:"count"`
	// Pod that failed last, and when that was seen.
	Pod types.UID `json:"pod"`
	At  time.Time `json:"at"`
}

// failuresOf reads the annotation of a record. One that nobody can read is none: it costs no more
// than a try.
func failuresOf(record *v1alpha1.CassandraNode) podFailures {
	var f podFailures
	if err := json.Unmarshal([]byte(record.Annotations[v1alpha1.AnnotationPodFailures]), &f); err != nil ||
		f.Count < 1 {
		return podFailures{}
	}
	return f
}

// pause is how long the last pod that failed is left.
func (f podFailures) pause() time.Duration {
	const doublings = 5 // 320 s, more than the longest
	return min(firstPodPause<<min(f.Count-1, doublings), longestPodPause)
}

func (f podFailures) due() time.Time { return f.At.Add(f.pause()) }

// left of the pause. A clock that was set back does not make it longer.
func (f podFailures) left(now time.Time) time.Duration { return min(f.due().Sub(now), f.pause()) }

// countFailure of a pod, once.
func (k *Keeper) countFailure(n *facts.Node, event, what string) podFailures {
	f := failuresOf(n.Record)
	if f.Pod != n.Pod.UID {
		f = podFailures{Count: f.Count + 1, Pod: n.Pod.UID, At: k.Now.UTC().Truncate(time.Second)}
		k.noteFailures(n, &f)
		k.draft.Event(corev1.EventTypeWarning, event, "pod %s %s", n.Name, what)
	}
	return f
}

// failedPod counts the failure of a node's pod, and deletes the pod when its time is over, or at
// once if the spec has changed since it was made: another is made in its place.
func (k *Keeper) failedPod(n *facts.Node) {
	if k.MadeForAnother(n) {
		k.draft.Write(plan.DeletePod(n.Pod, "it has ended, and the spec has changed"))
		return
	}
	why := whyFailed(n.Pod)
	f := k.countFailure(n, "PodFailed", "has failed: "+why)
	left := f.left(k.Now)
	if left <= 0 {
		k.draft.Write(plan.DeletePod(n.Pod, "it has ended: "+why))
		return
	}
	k.draft.WakeIn(left)
	k.draft.Notice(v1alpha1.NoticePodBackoff, []string{n.Name},
		"pod %s has failed, for the %s time since its node was last ready: %s; it is recreated after %s",
		n.Name, words.Ordinal(f.Count), why, f.due().Format(time.RFC3339))
}

// forgetFailures of a node whose pod has become ready.
func (k *Keeper) forgetFailures(n *facts.Node) {
	if _, noted := n.Record.Annotations[v1alpha1.AnnotationPodFailures]; noted && facts.PodReady(n.Pod) {
		k.noteFailures(n, nil)
	}
}

// noteFailures writes the failures into a node's record; nil for none.
func (k *Keeper) noteFailures(n *facts.Node, f *podFailures) {
	record, why := render.ForApply(k.Owner(), n.Record), "its pod is ready again"
	delete(record.Annotations, v1alpha1.AnnotationPodFailures)
	if f != nil {
		text, err := json.Marshal(f)
		if err != nil {
			panic(fmt.Sprintf("encode failures of a pod: %v", err)) // plain data
		}
		if record.Annotations == nil {
			record.Annotations = map[string]string{}
		}
		record.Annotations[v1alpha1.AnnotationPodFailures] = string(text)
		why = fmt.Sprintf("pods of it that failed in a row: %d", f.Count)
	}
	k.apply(n, record, why)
}

// whyFailed is kubelet's word, or that of whoever ended the pod.
func whyFailed(pod *corev1.Pod) string {
	parts := slices.DeleteFunc([]string{pod.Status.Reason, pod.Status.Message}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return "it ended as " + string(pod.Status.Phase) + ", without a reason"
	}
	return strings.Join(parts, ": ")
}
