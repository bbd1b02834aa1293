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

// Of two copies none may be missing at LOCAL_QUORUM, so that no range can be protected and none is
// at risk; but a ring that lets nobody in is not available.
func TestARingThatServesNobodyIsNotAvailable(t *testing.T) {
	for _, ready := range []bool{false, true} {
		nodes := map[string]*facts.Node{}
		for name, hostID := range map[string]string{"n1": "h1", "n2": "h2"} {
			n := &facts.Node{
				Name: name,
				Record: &v1alpha1.CassandraNode{
					ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec: v1alpha1.CassandraNodeSpec{Datacenter: "dc1", Rack: "r1",
						Member: &v1alpha1.Member{HostID: hostID}},
					Status: v1alpha1.CassandraNodeStatus{Ready: ready && name == "n1", PodUID: "pod",
						Phase: v1alpha1.PhaseNormal},
				},
				Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "pod"},
					Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
						Status: corev1.ConditionTrue}}}},
				Agent: &facts.Agent{PodUID: "pod", Phase: v1alpha1.PhaseNormal, Ring: &facts.Ring{
					Mode: facts.ModeNormal, HostID: hostID, Keyspaces: map[string]string{
						"shop": "NetworkTopologyStrategy {dc1=2}",
					},
					Endpoints: []facts.Endpoint{
						{HostID: "h1", Datacenter: "dc1", Rack: "r1", Status: facts.StatusNormal, Live: true,
							Tokens: []int64{1}},
						{HostID: "h2", Datacenter: "dc1", Rack: "r1", Status: facts.StatusNormal, Live: true,
							Tokens: []int64{2}},
					},
				}},
			}
			nodes[name] = n
		}
		got := status.Of(&facts.Snapshot{
			Cluster: &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{
				Datacenters: []v1alpha1.Datacenter{{Name: "dc1", NodesPerRack: 2,
					Racks: []v1alpha1.Rack{{Name: "r1"}}}}, Disruption: v1alpha1.DisruptionPolicy{
					Consistency: v1alpha1.ConsistencyLocalQuorum,
				},
			}},
			Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"},
				Members: map[string]string{"n1": "h1", "n2": "h2"}}}, Nodes: nodes,
		}, plan.Plan{}, nil, nil, time.Unix(0, 0))
		is := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionAvailable)
		if is == nil || (is.Status == metav1.ConditionTrue) != ready ||
			!ready && is.Reason != v1alpha1.ReasonNodesNotReady {
			t.Errorf("a node serves: %v, Available is %+v", ready, is)
		}
	}
}
