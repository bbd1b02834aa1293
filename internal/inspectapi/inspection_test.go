package inspectapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

var now = time.Date(2026, 3, 1, 13, 0, 0, 5, time.FixedZone("CET", 3600))

func pod(uid types.UID, host string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: host}}
}

func record(rack string) *v1alpha1.CassandraNode {
	return &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{Datacenter: "dc1", Rack: rack}}
}

func TestOf(t *testing.T) {
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "c-1",
			Generation: 4}},
		Nodes: map[string]*facts.Node{
			"orders-dc1-r1-0": {
				Name: "orders-dc1-r1-0", Record: record("r1"), Pod: pod("p-1", "m1"),
				Agent: &facts.Agent{PodUID: "p-1", ObservedAt: now, Address: "10.0.0.1", Phase: v1alpha1.PhaseNormal,
					Ready: true, Ring: &facts.Ring{Mode: facts.ModeNormal}},
			},
			// The answer of an earlier pod counts for nothing.
			"orders-dc1-r2-0": {Name: "orders-dc1-r2-0", Record: record("r2"), Pod: pod("p-1", "m2"),
				Agent: &facts.Agent{PodUID: "p-0"}},
			"orders-dc1-r3-0": {Name: "orders-dc1-r3-0", Record: record("r3"),
				Claims: map[string]*facts.Claim{"data": {}}},
			"orders-dc1-r3-1": {Name: "orders-dc1-r3-1", Pod: pod("p-1", ""), Unreachable: "it was not asked yet"},
			"orders-dc1-r3-2": {Name: "orders-dc1-r3-2", Pod: pod("p-1", "")},
		},
		Ledger: &ledger.Ledger{
			Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{"a": "1", "b": "2"}},
			Step: &ledger.Step{ID: "s2", Kind: ledger.FormRing, Stage: ledger.StageTickets, StageSince: now,
				Nodes: []string{"a", "b", "c"}, Withdrawn: []string{"c"}},
		},
		Foreign:     []facts.ObjectName{{Kind: "Service", Name: "orders"}},
		Predecessor: []facts.ObjectName{{Kind: "ConfigMap", Name: "orders-ledger"}},
	}
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: corev1.ServiceSpec{ExternalName: "content"}}
	made := plan.Plan{
		Steps: []plan.Report{{Step: "SharedObjects", Outcome: plan.Act, Message: "makes 1 object"}},
		Writes: []plan.Write{
			{Verb: plan.Create, Object: service, Why: "it is missing"},
			{Verb: plan.PutLedger, Ledger: s.Ledger, Live: true},
			{Verb: plan.IssueCertificate, Node: "orders-dc1-r1-0"},
		},
		Stalled: &plan.Stall{Reason: "NameTaken", Message: "Service/orders"},
		Wake:    1500 * time.Millisecond,
	}
	got := Of(s, made, Operator{Pod: "helenus-a", Version: "v1"}, now)

	utc := metav1.NewTime(now.UTC())
	want := &Inspection{
		Operator:   Operator{Pod: "helenus-a", Version: "v1"},
		ObservedAt: metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Snapshot: Snapshot{
			Namespace: "shop", Cluster: "orders", UID: "c-1", Generation: 4,
			Nodes: []Node{
				{
					Name: "orders-dc1-r1-0", Datacenter: "dc1", Rack: "r1", Record: true, Pod: true, Host: "m1",
					Agent: &Agent{ObservedAt: utc, Address: "10.0.0.1", Phase: v1alpha1.PhaseNormal, Ready: true,
						Mode: facts.ModeNormal},
				},
				{Name: "orders-dc1-r2-0", Datacenter: "dc1", Rack: "r2", Record: true, Pod: true, Host: "m2",
					Unreachable: "what answered was an earlier pod"},
				{Name: "orders-dc1-r3-0", Datacenter: "dc1", Rack: "r3", Record: true, Claims: 1},
				{Name: "orders-dc1-r3-1", Pod: true, Unreachable: "it was not asked yet"},
				{Name: "orders-dc1-r3-2", Pod: true, Unreachable: "the pod has no address yet"},
			},
			Ledger: &Ledger{Formed: []string{"dc1"}, Members: 2,
				Steps: []Step{{ID: "s2", Kind: ledger.FormRing, Stage: ledger.StageTickets, StageSince: utc,
					Nodes: []string{"a", "b"}}}},
			Foreign:     []string{"Service/orders"},
			Predecessor: []string{"ConfigMap/orders-ledger"},
		},
		Plan: Plan{
			Steps: made.Steps,
			Writes: []Write{
				{Verb: plan.Create, Kind: "Service", Name: "orders", Text: "Create Service orders: it is missing"},
				{Verb: plan.PutLedger, Live: true, Text: "PutLedger ledger"},
				{Verb: plan.IssueCertificate, Name: "orders-dc1-r1-0", Text: "IssueCertificate orders-dc1-r1-0"},
			},
			Stalled:     made.Stalled,
			WakeSeconds: 1.5,
		},
	}
	if !reflect.DeepEqual(got, want) {
		a, b := text(t, got), text(t, want)
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	if strings.Contains(text(t, got), "content") {
		t.Error("objects are shown, not named")
	}
}

func text(t *testing.T, i *Inspection) string {
	t.Helper()
	out, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestPath(t *testing.T) {
	if got := Path("shop", "a/../b?x"); got != "/v1/namespaces/shop/clusters/a%2F..%2Fb%3Fx" {
		t.Errorf("got %s", got)
	}
}

func TestLeaderOf(t *testing.T) {
	for holder, want := range map[string]string{"": "", "helenus-a_1-2": "helenus-a", "alone": "alone"} {
		if got := LeaderOf(&coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}); got != want {
			t.Errorf("%q: got %q, want %q", holder, got, want)
		}
	}
}
