package status_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
)

// A ring that is stopped serves nobody, and is as the user wants it; on its way there, and back,
// the operator works.
func TestConditionsOfAStoppedRing(t *testing.T) {
	for stage, want := range map[ledger.Stage]struct {
		stopped, healthy, reconciling bool
	}{
		ledger.StageClose:   {stopped: true, healthy: true, reconciling: true},
		ledger.StageDrain:   {stopped: true, healthy: true, reconciling: true},
		ledger.StageStopped: {stopped: true, healthy: true},
		ledger.StageStart:   {reconciling: true},
		ledger.StageOpen:    {reconciling: true},
	} {
		t.Run(string(stage), func(t *testing.T) {
			s := twoNodes(func(n1, n2 *facts.Node, s *facts.Snapshot) {
				for _, n := range []*facts.Node{n1, n2} {
					if stage != ledger.StageClose {
						n.Pod, n.Agent = nil, nil
					}
				}
				s.Cluster.Spec.Stopped = want.stopped
				s.Ledger.Step = &ledger.Step{Kind: ledger.StopRing, Stage: stage, Nodes: []string{"n1", "n2"}}
			})
			got := status.Of(s, plan.Plan{Current: &v1alpha1.StepStatus{Name: "StopRing"}}, nil, nil, time.Unix(0, 0))
			for kind, yes := range map[string]bool{v1alpha1.ConditionReady: false, v1alpha1.ConditionAvailable: false,
				v1alpha1.ConditionHealthy: want.healthy} {
				c := meta.FindStatusCondition(got.Conditions, kind)
				if c == nil || (c.Status == metav1.ConditionTrue) != yes ||
					kind != v1alpha1.ConditionHealthy && (c.Reason == v1alpha1.ReasonStopped) != want.stopped {
					t.Errorf("%s is %+v", kind, c)
				}
			}
			if is := meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionReconciling); is != want.reconciling {
				t.Errorf("Reconciling is %v", is)
			}
		})
	}
}
