package status_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
)

// Whoever has only just begun to ask knows nothing worse than was known before.
func TestConditionsStayWhileAgentsAreFirstAsked(t *testing.T) {
	said := []metav1.Condition{
		{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConsistencyKept},
		{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllNodesHealthy},
	}
	for name, c := range map[string]struct {
		asking bool
		before []metav1.Condition
		want   metav1.ConditionStatus
	}{
		"asked just now":           {true, said, metav1.ConditionTrue},
		"asked, and silent":        {false, said, metav1.ConditionFalse},
		"nothing was said before":  {true, nil, metav1.ConditionFalse},
		"silent, and nothing said": {false, nil, metav1.ConditionFalse},
	} {
		record := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: "n"},
			Spec: v1alpha1.CassandraNodeSpec{Datacenter: "dc1", Member: &v1alpha1.Member{HostID: "h"}}}
		s := &facts.Snapshot{
			Cluster: &v1alpha1.CassandraCluster{
				Spec: v1alpha1.CassandraClusterSpec{Datacenters: []v1alpha1.Datacenter{{Name: "dc1", NodesPerRack: 1,
					Racks: []v1alpha1.Rack{{Name: "r1"}}}}},
				Status: v1alpha1.CassandraClusterStatus{Conditions: c.before},
			},
			Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{"n": "h"}}},
			Nodes:  map[string]*facts.Node{"n": {Name: "n", Record: record, Asking: c.asking}},
		}
		got := status.Of(s, plan.Plan{}, nil, nil, time.Unix(0, 0))
		for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy} {
			if condition := meta.FindStatusCondition(got.Conditions, kind); condition == nil ||
				condition.Status != c.want {
				t.Errorf("%s: %s is %+v, want %s", name, kind, condition, c.want)
			}
		}
	}
}

// A member of which no record is there is in doubt, whatever the others say.
func TestAMemberWithoutARecordIsInDoubt(t *testing.T) {
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{Datacenters: []v1alpha1.Datacenter{
			{Name: "dc1", NodesPerRack: 1, Racks: []v1alpha1.Rack{{Name: "r1"}}}}}},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{"n": "h"}}},
		Nodes: map[string]*facts.Node{"n": {Name: "n", Record: &v1alpha1.CassandraNode{}, Pod: &corev1.Pod{},
			Agent: &facts.Agent{Ring: &facts.Ring{Mode: facts.ModeNormal}}}},
	}
	for _, want := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		got := status.Of(s, plan.Plan{}, nil, nil, time.Unix(0, 0))
		if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionHealthy); c == nil || c.Status != want {
			t.Errorf("members %v: %+v, want %s", s.Ledger.Members, c, want)
		}
		s.Ledger.Members["gone"] = "other"
	}
}
