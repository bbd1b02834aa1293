package status_test

import (
	"fmt"
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

// The same facts give the same words: each word that is another is a write, for ever.
func TestOfSeveralNodesThatTheSpecLacksTheSameIsNamedEachTime(t *testing.T) {
	nodes := map[string]*facts.Node{}
	for i := range 8 {
		name := fmt.Sprintf("n%d", i)
		nodes[name] = &facts.Node{
			Name: name, Record: &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: name}},
		}
	}
	for range 20 {
		got := status.Of(&facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}, Ledger: &ledger.Ledger{}, Nodes: nodes},
			plan.Plan{}, nil, nil, time.Unix(0, 0))
		is := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionUpToDate)
		if is == nil || is.Status != metav1.ConditionFalse || is.Reason != v1alpha1.ReasonChangePending ||
			is.Message != "node n0 is not in the spec" {
			t.Fatalf("UpToDate is %+v", is)
		}
	}
}
