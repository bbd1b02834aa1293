package node

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// One error is none, one write that went well neither, and the first words stay. In the sequence of
// probes F is one that failed, and . one that did not.
func TestADiskFailsByMoreThanOneProbe(t *testing.T) {
	for probes, c := range map[string]struct{ known, fails, doubt bool }{
		"":                {},
		".":               {},
		"F":               {doubt: true},
		"F.F.F.":          {},
		"FF":              {known: true, fails: true},
		".....":           {known: true},
		".....F":          {known: true, doubt: true},
		"FF.":             {known: true, fails: true},
		"FF....F":         {known: true, fails: true, doubt: true},
		"FF....":          {known: true, fails: true},
		"FF.....":         {known: true},
		"FF.....F":        {known: true, doubt: true},
		"FF.....F.F.....": {known: true},
	} {
		var h DiskHealth
		for i, probe := range probes {
			found := DiskProblem{}
			if probe == 'F' {
				found = DiskProblem{v1alpha1.ReasonDiskIOError, string(rune('0' + i))}
			}
			h = h.After(found)
		}
		if h.Known != c.known || (h.Problem.Reason != "") != c.fails || h.InDoubt() != c.doubt {
			t.Errorf("%s: %+v, in doubt: %v", probes, h, h.InDoubt())
		}
		if c.fails && h.Problem.Message != "1" {
			t.Errorf("%s: the words become %q", probes, h.Problem.Message)
		}
	}
}

// What an agent has said stands while the next one of the pod does not know better.
func TestAFailingDiskIsReported(t *testing.T) {
	fails := DiskHealth{Known: true, Problem: DiskProblem{v1alpha1.ReasonDiskReadOnly, "read-only"}}
	said := func(pod *Facts) *Facts {
		pod.Record.Status.PodUID = pod.Self.PodUID
		pod.Record.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDiskFailing,
			Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDiskHangs, Message: "hangs",
			LastTransitionTime: *metaTime(0)}}
		return pod
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		reason string
	}{
		"it works":                        {func(*Facts) {}, ""},
		"it fails":                        {func(f *Facts) { f.Probed = fails }, v1alpha1.ReasonDiskReadOnly},
		"the agent has started again":     {func(f *Facts) { said(f) }, v1alpha1.ReasonDiskHangs},
		"and finds that it works":         {func(f *Facts) { said(f).Probed.Known = true }, ""},
		"the pod is another":              {func(f *Facts) { said(f).Record.Status.PodUID = "another" }, ""},
		"it fails otherwise after a time": {func(f *Facts) { said(f).Probed = fails }, v1alpha1.ReasonDiskReadOnly},
	} {
		got := meta.FindStatusCondition(reported(with1(serving(), c.change)).Conditions, v1alpha1.ConditionDiskFailing)
		if (got != nil) != (c.reason != "") || got != nil && (got.Reason != c.reason || got.Message == "" ||
			got.Status != metav1.ConditionTrue) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
