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

// twoNodes are a formed ring of two nodes with two replicas of each row, which serve clients.
func twoNodes(change func(n1, n2 *facts.Node, s *facts.Snapshot)) *facts.Snapshot {
	nodes := map[string]*facts.Node{}
	for name, hostID := range map[string]string{"n1": "h1", "n2": "h2"} {
		nodes[name] = &facts.Node{
			Name: name,
			Record: &v1alpha1.CassandraNode{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: v1alpha1.CassandraNodeSpec{Datacenter: "dc1", Rack: "r1",
					Member: &v1alpha1.Member{HostID: hostID}},
				Status: v1alpha1.CassandraNodeStatus{Ready: true, PodUID: "pod", Phase: v1alpha1.PhaseNormal},
			},
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "pod"},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady,
					Status: corev1.ConditionTrue}}}},
			Agent: &facts.Agent{PodUID: "pod", Phase: v1alpha1.PhaseNormal, Ready: true, Ring: &facts.Ring{
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
	}
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{
			Datacenters: []v1alpha1.Datacenter{{Name: "dc1", NodesPerRack: 2,
				Racks: []v1alpha1.Rack{{Name: "r1"}}}}, Disruption: v1alpha1.DisruptionPolicy{
				Consistency: v1alpha1.ConsistencyLocalQuorum,
			},
		}},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"},
			Members: map[string]string{"n1": "h1", "n2": "h2"}}}, Nodes: nodes,
	}
	if change != nil {
		change(nodes["n1"], nodes["n2"], s)
	}
	return s
}

func TestWhatIsSaidOfTwoNodes(t *testing.T) {
	closed := func(n *facts.Node) { n.Agent.Ready, n.Record.Status.Ready = false, false }
	silent := func(n *facts.Node) { n.Agent = nil }
	type said struct {
		available, healthy string // reasons
		ready              int32
	}
	const kept, well = v1alpha1.ReasonConsistencyKept, v1alpha1.ReasonAllNodesHealthy
	for name, c := range map[string]struct {
		change func(n1, n2 *facts.Node, s *facts.Snapshot)
		want   said
	}{
		"both serve":    {nil, said{kept, well, 2}},
		"one is closed": {func(_, n2 *facts.Node, _ *facts.Snapshot) { closed(n2) }, said{kept, well, 1}},
		"nobody serves": {func(n1, n2 *facts.Node, _ *facts.Snapshot) { closed(n1); closed(n2) },
			said{v1alpha1.ReasonNodesNotReady, well, 0}},
		"one agent is silent": {func(_, n2 *facts.Node, _ *facts.Snapshot) { silent(n2) },
			said{kept, v1alpha1.ReasonNodeUnreachable, 1}},
		"one agent is silent, and its JVM is not seen": {func(n1, n2 *facts.Node, _ *facts.Snapshot) {
			silent(n2)
			n1.Agent.Ring.Endpoints[1].Live = false
		}, said{v1alpha1.ReasonRangesAtRisk, v1alpha1.ReasonNodeUnreachable, 1}},
		"QUORUM of two is two": {func(_, n2 *facts.Node, _ *facts.Snapshot) {
			closed(n2)
			n2.Agent.Ring = nil
		}, said{v1alpha1.ReasonRangesAtRisk, v1alpha1.ReasonNodesDown, 1}},
		"ONE of two is enough": {func(_, n2 *facts.Node, s *facts.Snapshot) {
			closed(n2)
			n2.Agent.Ring = nil
			s.Cluster.Spec.Disruption.Consistency = v1alpha1.ConsistencyOne
		}, said{kept, v1alpha1.ReasonNodesDown, 1}},
		"one is only just being asked": {func(_, n2 *facts.Node, _ *facts.Snapshot) {
			silent(n2)
			n2.Asking = true
		}, said{kept, v1alpha1.ReasonNodeUnreachable, 2}},
		"the ring is being formed": {func(_, n2 *facts.Node, s *facts.Snapshot) {
			s.Ledger.Formed = nil
			closed(n2)
			n2.Agent.Ring = nil
		}, said{v1alpha1.ReasonForming, v1alpha1.ReasonForming, 1}},
		"all have joined the ring that is being formed": {func(_, _ *facts.Node, s *facts.Snapshot) {
			s.Ledger.Formed = nil
		}, said{v1alpha1.ReasonForming, v1alpha1.ReasonAllNodesHealthy, 2}},
	} {
		got := status.Of(twoNodes(c.change), plan.Plan{}, nil, nil, time.Unix(0, 0))
		reason := func(kind string) string { return meta.FindStatusCondition(got.Conditions, kind).Reason }
		is := said{reason(v1alpha1.ConditionAvailable), reason(v1alpha1.ConditionHealthy), got.ReadyNodes}
		if is != c.want {
			t.Errorf("%s: %+v, want %+v", name, is, c.want)
		}
	}
}
