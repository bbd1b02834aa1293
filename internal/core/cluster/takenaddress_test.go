package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// takes has the pods of nodes get addresses that are taken, whenever they are made.
func (w *world) takes(names ...string) {
	for _, name := range names {
		n := w.snapshot.Nodes[name]
		if n.Pod == nil {
			continue
		}
		w.ready(name, corev1.ConditionFalse)
		n.Agent = &facts.Agent{
			PodUID: n.Pod.UID, Disk: v1alpha1.DiskMember, Phase: v1alpha1.PhaseAddressTaken,
			Process: facts.ProcessAbsent,
			Message: "node " + third + " knows the address 10.0.0.9 as that of the member with host id x",
		}
	}
}

func TestAPodWithATakenAddressGivesWay(t *testing.T) {
	w := formed(t)
	pods := map[string]bool{}
	begun := w.now
	var times []time.Duration
	for range 200 {
		w.takes(second)
		made := w.pass()
		if n := w.snapshot.Nodes[second]; n.Pod != nil && !pods[string(n.Pod.UID)] {
			pods[string(n.Pod.UID)] = true
			times = append(times, w.now.Sub(begun))
		}
		for _, write := range made.Writes {
			if write.Verb == plan.Delete && !write.Live {
				t.Fatalf("not looked at live: %s", write)
			}
		}
	}
	if len(times) != 4 {
		t.Fatalf("%d pods, at %v; want one and three tries", len(times), times)
	}
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		if took := times[i+1] - times[i]; took < want || took > want+4*time.Second {
			t.Errorf("try %d after %s, want %s", i+1, took, want)
		}
	}
	w.takes(second)
	made := w.pass()
	wantBlocked(t, made, "AddressConflict", "as the 4th one in a row", "knows the address 10.0.0.9",
		"delete the pod to get another")
	if !slices.Contains(w.events, "AddressTaken") {
		t.Errorf("events %v", w.events)
	}
	// Ready, and it is forgotten.
	w.snapshot.Nodes[second].Agent = nil
	w.agents()
	w.ready(second, corev1.ConditionTrue)
	w.pass()
	if f, noted := w.snapshot.Nodes[second].Record.Annotations[v1alpha1.AnnotationPodFailures]; noted {
		t.Errorf("still noted: %s", f)
	}
}

func TestOfSeveralPodsWithTakenAddressesOneGoesAtATime(t *testing.T) {
	w := formed(t)
	w.takes(first, second)
	made := w.pass()
	for _, name := range []string{first, second} {
		wantWrites(t, made, name, "Apply CassandraNode")
	}
	w.now = w.now.Add(firstPause)
	w.takes(first, second)
	made = next(w)
	wantWrites(t, made, first, "Delete Pod")
	wantWrites(t, made, second)
}
