package status_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
)

// A ring serves while a datacenter is added to it, whose nodes are closed to clients: nothing is at
// risk by that, and it is not being formed.
func TestARingServesWhileADatacenterIsAdded(t *testing.T) {
	endpoints := []facts.Endpoint{
		{HostID: "h1", Datacenter: "dc1", Rack: "r1", Status: facts.StatusNormal, Live: true, Tokens: []int64{1}},
		{HostID: "h2", Datacenter: "dc2", Rack: "r1", Status: facts.StatusNormal, Live: true, Tokens: []int64{2}},
		{HostID: "h3", Datacenter: "dc2", Rack: "r2", Status: facts.StatusNormal, Live: true, Tokens: []int64{3}},
	}
	node := func(name, hostID, dc string, ready bool) *facts.Node {
		is := corev1.ConditionFalse
		if ready {
			is = corev1.ConditionTrue
		}
		uid := types.UID("pod-" + name)
		return &facts.Node{
			Name: name,
			Record: &v1alpha1.CassandraNode{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: v1alpha1.CassandraNodeSpec{Datacenter: dc, Rack: "r1",
					Member: &v1alpha1.Member{HostID: hostID}},
				Status: v1alpha1.CassandraNodeStatus{Ready: ready, PodUID: uid, Phase: v1alpha1.PhaseNormal},
			},
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}}},
			Agent: &facts.Agent{PodUID: uid, Phase: v1alpha1.PhaseNormal, Ready: ready, Ring: &facts.Ring{
				Mode: facts.ModeNormal, HostID: hostID, Endpoints: endpoints,
				Keyspaces: map[string]string{"shop": "NetworkTopologyStrategy {dc1=1, dc2=2}"},
			}},
		}
	}
	datacenter := func(name string) v1alpha1.Datacenter {
		return v1alpha1.Datacenter{Name: name, NodesPerRack: 1, Racks: []v1alpha1.Rack{{Name: "r1"}}}
	}
	for name, c := range map[string]struct {
		formed    []string
		step      *ledger.Step
		available metav1.ConditionStatus
	}{
		"its nodes join": {[]string{"dc1"},
			&ledger.Step{Kind: ledger.AddDatacenter, Stage: ledger.StageTickets, Datacenters: []string{"dc2"}},
			metav1.ConditionTrue},
		"its nodes copy": {[]string{"dc1", "dc2"},
			&ledger.Step{Kind: ledger.AddDatacenter, Stage: ledger.StageRebuild, Datacenters: []string{"dc2"}},
			metav1.ConditionTrue},
		"not when it is there": {[]string{"dc1", "dc2"}, nil, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			members := map[string]string{"n1": "h1"}
			if len(c.formed) > 1 {
				members["n2"], members["n3"] = "h2", "h3"
			}
			got := status.Of(&facts.Snapshot{
				Cluster: &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{
					Datacenters: []v1alpha1.Datacenter{datacenter("dc1"), datacenter("dc2")},
					Disruption:  v1alpha1.DisruptionPolicy{Consistency: v1alpha1.ConsistencyLocalOne},
				}},
				Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: c.formed, Members: members}, Step: c.step},
				Nodes: map[string]*facts.Node{"n1": node("n1", "h1", "dc1", true),
					"n2": node("n2", "h2", "dc2", false), "n3": node("n3", "h3", "dc2", false)},
			}, plan.Plan{}, nil, nil, time.Unix(0, 0))
			if is := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionAvailable); is == nil ||
				is.Status != c.available {
				t.Errorf("Available is %+v, want %s", is, c.available)
			}
			if is := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady); is == nil ||
				is.Reason != v1alpha1.ReasonNodesNotReady {
				t.Errorf("Ready is %+v, want %s", is, v1alpha1.ReasonNodesNotReady)
			}
		})
	}
}
