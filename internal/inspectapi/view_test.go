package inspectapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

func twoMembers(at time.Time) *facts.Snapshot {
	s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Members: map[string]string{"a": "id-a", "b": "id-b"}}},
		Tasks:  []*v1alpha1.CassandraTask{{}, {}}}
	for i, t := range s.Tasks {
		t.Name = []string{"old", "new"}[i]
		t.Status.Nodes = []v1alpha1.TaskNode{{Node: "a", Phase: v1alpha1.TaskSucceeded}, {Node: "b", Phase: v1alpha1.TaskFailed}}
	}
	endpoints := []facts.Endpoint{
		{HostID: "id-a", Datacenter: "dc1", Rack: "r1", Status: facts.StatusNormal, Tokens: []int64{-1 << 63, 0}, Load: 7},
		{HostID: "id-b", Datacenter: "dc1", Rack: "r2", Status: facts.StatusNormal, Tokens: []int64{1 << 62}, Load: 9},
	}
	for name, id := range s.Ledger.Members {
		r := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec.Member = &v1alpha1.Member{HostID: id}
		r.Spec.Configuration.Environment = []v1alpha1.EnvironmentVariable{{Name: "PASSWORD", Value: "secret"}}
		r.Spec.Configuration.RackName = "of " + name
		r.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "o"}, Type: "Cleanup"}}
		r.Status.Tokens = []string{"4711"}
		s.Nodes[name] = &facts.Node{Name: name, Record: r, Pod: &corev1.Pod{}}
	}
	s.Nodes["a"].Agent = &facts.Agent{ObservedAt: at, Ring: &facts.Ring{Mode: facts.ModeNormal, Endpoints: endpoints,
		Keyspaces: map[string]string{"shop": "NetworkTopologyStrategy {dc1=1}"}}}
	return s
}

func view(t *testing.T, at time.Time) (*View, string) {
	t.Helper()
	v := ViewOf(twoMembers(at), plan.Plan{Wake: at.Sub(time.Unix(0, 0))}, nil, v1alpha1.CassandraClusterStatus{},
		Operator{}, func(n *facts.Node) bool { return n.Name == "a" })
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return v, string(text)
}

func TestAView(t *testing.T) {
	v, text := view(t, time.Unix(1000, 0))
	a, b := v.Nodes[0], v.Nodes[1]
	if !a.Serves || b.Serves || a.Owns != 0.75 || b.Owns != 0.25 || b.Load != 9 || len(a.Tokens) != 2 ||
		a.Tokens[0] != 0 || a.Tokens[1] != 1<<15 || b.Tokens[0] != 3<<14 {
		t.Errorf("nodes %+v", v.Nodes)
	}
	if len(v.Configurations) != 1 || len(v.Configurations[0].Nodes) != 2 || a.Record.Wanted["o"] != "Cleanup" {
		t.Errorf("configurations %+v", v.Configurations)
	}
	if len(v.Tasks) != 2 || v.Tasks[0].Name != "new" || len(v.Tasks[0].Status.Nodes) != 1 {
		t.Errorf("tasks %+v", v.Tasks)
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "4711") {
		t.Errorf("it has too much: %s", text)
	}
	// Time that goes by is no change.
	if _, later := view(t, time.Unix(2000, 0)); later != text {
		t.Errorf("%s\nlater %s", text, later)
	}
}
