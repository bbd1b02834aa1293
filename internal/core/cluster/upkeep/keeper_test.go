package upkeep

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// keeper of a cluster of two racks that has these nodes and an empty ledger.
func keeper(nodes ...*facts.Node) *Keeper {
	one := int32(1)
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: "orders", UID: "cluster-uid"}}
	cluster.Spec.Datacenters = []v1alpha1.Datacenter{{
		Name: "dc1", Racks: []v1alpha1.Rack{{Name: "r1", Nodes: &one}, {Name: "r2", Nodes: &one}},
	}}
	s := &facts.Snapshot{Cluster: cluster, Ledger: &ledger.Ledger{}, Nodes: map[string]*facts.Node{}}
	for _, n := range nodes {
		s.Nodes[n.Name] = n
	}
	return New(assess.NewView(s, now), &plan.Draft{Plan: plan.Plan{Wake: time.Hour}})
}

// recorded is a node that has a record and a pod of it.
func recorded(name string) *facts.Node {
	is := true
	return &facts.Node{
		Name: name,
		Record: &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("record-" + name), Finalizers: []string{v1alpha1.FinalizerNode},
		}},
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("pod-" + name),
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID("record-" + name), Controller: &is}},
		}},
	}
}

// claimOf is a claim that carries the uid of a cluster.
func claimOf(name, cluster string) *facts.Claim {
	return &facts.Claim{Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelClusterUID: cluster},
	}}}
}

// writesOn are the writes of a draft on an object, in words: verb and kind.
func writesOn(k *Keeper, name string) []string {
	var out []string
	for _, w := range k.draft.Writes {
		if w.Object != nil && w.Object.GetName() == name {
			out = append(out, string(w.Verb)+" "+plan.KindOf(w.Object))
		}
	}
	return out
}

// What follows in the same pass sees the ledger that is written.
func TestTheViewHasTheLedgerThatIsWritten(t *testing.T) {
	k := keeper()
	before := k.View
	k.putLedger(true, "one", func(l *ledger.Ledger) { l.Steps++ })
	k.putLedger(false, "two", func(l *ledger.Ledger) { l.Steps++ })
	if len(k.draft.Writes) != 1 || k.draft.Writes[0].Ledger.Steps != 2 || k.Ledger.Steps != 2 {
		t.Errorf("%d steps, writes %+v", k.Ledger.Steps, k.draft.Writes)
	}
	if before.Ledger.Steps != 0 {
		t.Error("the view that others have was changed")
	}
}
