package procedure

import (
	"slices"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// A budget refuses evictions once the disruption controller has seen that it is to.
func TestWhichBudgetsAreOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Snapshot, *policyv1.PodDisruptionBudget)
		open   bool
	}{
		"closed": {func(*facts.Snapshot, *policyv1.PodDisruptionBudget) {}, false},
		"it is not there": {func(s *facts.Snapshot, b *policyv1.PodDisruptionBudget) {
			delete(s.Shared.Budgets, b.Name)
		}, true},
		"it wants something else": {func(_ *facts.Snapshot, b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable = new(intstr.FromInt32(1))
		}, true},
		"one that is not ready may go": {func(_ *facts.Snapshot, b *policyv1.PodDisruptionBudget) {
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
		}, true},
		"nobody has looked yet": {func(_ *facts.Snapshot, b *policyv1.PodDisruptionBudget) { b.Generation++ }, true},
		"a pod may go": {func(_ *facts.Snapshot, b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptionsAllowed = 1
		}, true},
	} {
		s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
			Ledger: &ledger.Ledger{
				Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{}},
				Step: &ledger.Step{Kind: ledger.JoinNode},
			}}
		s.Cluster.Name = "orders"
		for _, name := range []string{"orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"} {
			s.Nodes[name] = &facts.Node{
				Name: name, Record: &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{Datacenter: "dc1"}},
			}
			s.Ledger.Members[name] = "host-" + name
		}
		v := assess.NewView(s, time.Time{})
		budget := render.Budget(v.Owner(), "dc1", 3, policyv1.IfHealthyBudget)
		s.Shared.Budgets = map[string]*policyv1.PodDisruptionBudget{budget.Name: budget}
		c.change(s, budget)
		e := NewEngine(v, &plan.Draft{}, []Procedure{{Kind: ledger.JoinNode, MovesRanges: true}}, guard.Rules{}, nil)
		if got := e.openBudgets(); slices.Equal(got, []string{budget.Name}) != c.open || !c.open && len(got) > 0 {
			t.Errorf("%s: open are %v", name, got)
		}
	}
}
