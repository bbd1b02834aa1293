package status

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// A pass that lost a race says what the next one says again, of a step that began between two
// seconds: the status keeps whole ones.
func TestAStepIsInTheHistoryOnce(t *testing.T) {
	began := time.Unix(1, 0)
	step := func(name, message string, after time.Duration) v1alpha1.StepRecord {
		return v1alpha1.StepRecord{Step: name, Message: message, StartedAt: metav1.NewTime(began.Add(after))}
	}
	old := []v1alpha1.StepRecord{step("JoinNode", "node a", 0), step("FormRing", "3 nodes", 0)}
	for name, c := range map[string]struct {
		finished v1alpha1.StepRecord
		want     int
	}{
		"in its second":   {step("JoinNode", "node a", 300*time.Millisecond), 2},
		"the same":        {step("JoinNode", "node a", 0), 2},
		"another kind":    {step("Cleanup", "node a", 0), 3},
		"of another node": {step("JoinNode", "node b", 0), 3},
		"a later one":     {step("JoinNode", "node a", time.Hour), 3},
	} {
		got := history(old, []v1alpha1.StepRecord{c.finished}, nil)
		first := c.finished
		first.StartedAt = first.StartedAt.Rfc3339Copy()
		if len(got) != c.want || got[0] != first || len(old) != 2 {
			t.Errorf("%s: %v", name, got)
		}
		if kept := history(old, []v1alpha1.StepRecord{c.finished}, fmt.Errorf("refused")); len(kept) != 2 {
			t.Errorf("%s, of a pass that failed: %v", name, kept)
		}
	}
}
