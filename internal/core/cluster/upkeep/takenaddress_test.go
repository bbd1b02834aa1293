package upkeep

import (
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// withTakenAddress is a node whose agent starts no JVM at the address of its pod.
func withTakenAddress() *facts.Node {
	n := recorded(second)
	n.Agent = &facts.Agent{PodUID: n.Pod.UID, Phase: v1alpha1.PhaseAddressTaken, Process: facts.ProcessAbsent}
	return n
}

// The pause is over when it is over, and only another pod that goes at the same time, looked at
// live, is waited for.
func TestWhatAPodWithATakenAddressWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		since  time.Duration
		others []plan.Write
		goes   bool
	}{
		"nothing":                     {firstPodPause, nil, true},
		"its pause":                   {firstPodPause - time.Second, nil, false},
		"another pod that goes":       {firstPodPause, []plan.Write{{Verb: plan.Delete, Live: true}}, false},
		"no object that nobody needs": {firstPodPause, []plan.Write{{Verb: plan.Delete}}, true},
		"no record":                   {firstPodPause, []plan.Write{{Verb: plan.Apply, Live: true}}, true},
	} {
		n := withTakenAddress()
		noted := fmt.Sprintf(`{"count":1,"pod":%q,"at":%q}`, n.Pod.UID, now.Add(-c.since).Format(time.RFC3339))
		n.Record.Annotations = map[string]string{v1alpha1.AnnotationPodFailures: noted}
		k := keeper(n)
		k.draft.Write(c.others...)
		k.takenAddress(n)
		if goes := len(k.draft.Writes) > len(c.others); goes != c.goes {
			t.Errorf("%s: goes %v\n%s", name, goes, k.draft.Plan)
		}
	}
}

func TestWhoseAddressIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *facts.Node)
		want   bool
	}{
		"one that starts no JVM at it":         {func(*facts.Node) {}, true},
		"not one whose JVM runs all the same":  {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, false},
		"not one of whose JVM nobody knows":    {func(n *facts.Node) { n.Agent.Process = facts.ProcessUnknown }, false},
		"not one that says something else":     {func(n *facts.Node) { n.Agent.Phase = v1alpha1.PhaseWaiting }, false},
		"not one that said it in a pod before": {func(n *facts.Node) { n.Agent.PodUID = "before" }, false},
		"not one that is silent":               {func(n *facts.Node) { n.Agent = nil }, false},
	} {
		n := withTakenAddress()
		c.change(n)
		if got := hasTakenAddress(n); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
