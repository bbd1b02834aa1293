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

// A datacenter that is stopped alone does not make the others unavailable or unhealthy at a local
// level; at one that counts it, the ring is what it is.
func TestConditionsBesideAStoppedDatacenter(t *testing.T) {
	for level, available := range map[v1alpha1.ConsistencyLevel]bool{
		v1alpha1.ConsistencyLocalQuorum: true, v1alpha1.ConsistencyEachQuorum: false,
	} {
		t.Run(string(level), func(t *testing.T) {
			s := twoNodes(func(n1, n2 *facts.Node, s *facts.Snapshot) {
				n2.Record.Spec.Datacenter, n2.Pod, n2.Agent = "dc2", nil, nil
				n1.Agent.Ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=1, dc2=1}"
				n1.Agent.Ring.Endpoints[1].Datacenter, n1.Agent.Ring.Endpoints[1].Live = "dc2", false
				spec := &s.Cluster.Spec
				spec.Disruption.Consistency, spec.Datacenters[0].NodesPerRack = level, 1
				spec.Datacenters = append(spec.Datacenters, *spec.Datacenters[0].DeepCopy())
				spec.Datacenters[1].Name, spec.Datacenters[1].Stopped = "dc2", true
				s.Ledger.Formed = []string{"dc1", "dc2"}
				s.Ledger.StoppedDatacenters = []ledger.StoppedDatacenter{{Name: "dc2"}}
			})
			got := status.Of(s, plan.Plan{}, nil, nil, time.Unix(0, 0)).Conditions
			for kind, yes := range map[string]bool{v1alpha1.ConditionReady: false,
				v1alpha1.ConditionAvailable: available, v1alpha1.ConditionHealthy: true, v1alpha1.ConditionReconciling: false} {
				if meta.IsStatusConditionTrue(got, kind) != yes {
					t.Errorf("%s is %+v", kind, meta.FindStatusCondition(got, kind))
				}
			}
			if c := meta.FindStatusCondition(got, v1alpha1.ConditionReady); c.Reason != v1alpha1.ReasonStopped {
				t.Errorf("Ready is %+v", c)
			}
		})
	}
}
