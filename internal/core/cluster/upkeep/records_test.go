package upkeep

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

func TestWhichClaimsGoWithANodeThatTheSpecNoLongerHas(t *testing.T) {
	when := metav1.Now()
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		goes   bool
	}{
		"one without a volume": {func(*corev1.PersistentVolumeClaim) {}, true},
		"not one that is bound": {func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimBound
		}, false},
		"not one that lost its volume": {func(c *corev1.PersistentVolumeClaim) {
			c.Status.Phase = corev1.ClaimLost
		}, false},
		"not one whose volume is chosen": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }, false},
		"not one that goes already": {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &when },
			false},
		"not one of another cluster": {func(c *corev1.PersistentVolumeClaim) {
			c.Labels[v1alpha1.LabelClusterUID] = "x"
		}, false},
	} {
		// One that holds nothing up, one after it that goes in any case, and one that is to stay.
		n := &facts.Node{Name: second, Claims: map[string]*facts.Claim{
			"a": {}, "b": claimOf("b", "cluster-uid"), "c": claimOf("c", "cluster-uid"),
			"d": claimOf("d", "cluster-uid"),
		}}
		c.change(n.Claims["b"].Claim)
		k := keeper(n)
		k.deleteUnbound(n, map[string]bool{"d": true}, "test")
		if got := len(writesOn(k, "b")) > 0; got != c.goes {
			t.Errorf("%s: goes %v, want %v", name, got, c.goes)
		}
		if len(writesOn(k, "c")) != 1 || len(writesOn(k, "d")) != 0 {
			t.Errorf("%s: beside it %v", name, k.draft.Writes)
		}
	}
}

func TestARecordIsReleasedWithItsPodTakenFromIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   []string
	}{
		"with its pod":  {func(*facts.Node) {}, []string{"SetOwners Pod", "Release CassandraNode"}},
		"without a pod": {func(n *facts.Node) { n.Pod = nil }, []string{"Release CassandraNode"}},
		"with another's pod": {func(n *facts.Node) {
			n.Pod.OwnerReferences[0].UID = "x"
		}, []string{"Release CassandraNode"}},
		"held by others alone": {func(n *facts.Node) { n.Record.Finalizers = []string{"others"} },
			[]string{"SetOwners Pod"}},
		"held by others as well": {func(n *facts.Node) {
			n.Record.Finalizers = append([]string{"others"}, n.Record.Finalizers...)
		}, []string{"SetOwners Pod", "Release CassandraNode"}},
	} {
		n := recorded(second)
		c.change(n)
		k := keeper(n)
		k.releaseRecord(n)
		if got := writesOn(k, second); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, w := range k.draft.Writes {
			if w.Verb == plan.SetOwners && len(w.Object.GetOwnerReferences()) > 0 {
				t.Errorf("%s: the pod still has an owner", name)
			}
		}
	}
}
