package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// The ConfigMap of the namespace counts until the ring is made, and then what the ledger has: none
// in a ring that was made without, or by an earlier release.
func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	grace := func(seconds int64) *v1alpha1.NodeSettings {
		return &v1alpha1.NodeSettings{TerminationGracePeriodSeconds: &seconds}
	}
	formed := func(with *ledger.MadeWith) *ledger.Ledger {
		return &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, MadeWith: with}}
	}
	for name, c := range map[string]struct {
		given   string
		ledger  *ledger.Ledger
		want    int64
		problem bool
	}{
		"a new ring":              {given: "60", want: 60},
		"a ledger without a ring": {given: "60", ledger: &ledger.Ledger{}, want: 60},
		"there are none":          {},
		"made with others":        {given: "60", ledger: formed(&ledger.MadeWith{Defaults: grace(90)}), want: 90},
		"made without":            {given: "60", ledger: formed(&ledger.MadeWith{})},
		"an earlier release":      {given: "60", ledger: formed(nil)},
		"no number":               {given: "soon", problem: true},
		"no number, and made":     {given: "soon", ledger: formed(&ledger.MadeWith{Defaults: grace(90)}), want: 90},
	} {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder().WithScheme(scheme)
			if c.given != "" {
				live = live.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
					Name: v1alpha1.DefaultsName}, Data: map[string]string{"terminationGracePeriodSeconds": c.given}})
			}
			user := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
			s := &facts.Snapshot{Cluster: user, Ledger: c.ledger}
			if err := (&Reader{Live: live.Build()}).defaults(t.Context(), s, user); err != nil {
				t.Fatal(err)
			}
			var got int64
			if node := s.Cluster.Spec.Node; node != nil {
				got = *node.TerminationGracePeriodSeconds
			}
			if got != c.want || (s.Defaults.Problem != "") != c.problem || user.Spec.Node != nil {
				t.Errorf("%d, want %d; %+v", got, c.want, s.Defaults)
			}
		})
	}
}
