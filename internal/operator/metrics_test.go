package operator

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"helenus.io/helenus/internal/core/metrics"
)

// exported are the values of gauges and counters by name and labels.
func exported(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			switch {
			case m.GetGauge() != nil:
				out[name] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				out[name] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// What a pass knows is exported, 0 included, and nothing of it outlives the next pass or the
// cluster.
func TestMetricsAreThoseOfTheLastPass(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	c := newClockwork(t)
	c.Metrics = NewMetrics(registry)
	pass := func() map[string]float64 {
		t.Helper()
		if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: orders}); err != nil {
			t.Fatal(err)
		}
		c.now = c.now.Add(passInterval)
		return exported(t, registry)
	}
	const of = " cluster=orders namespace=shop"
	first := pass()
	for name, want := range map[string]float64{
		"helenus_cluster_last_pass_timestamp_seconds" + of:                            float64(at().Unix()),
		"helenus_cluster_condition cluster=orders condition=Available namespace=shop": 0,
		"helenus_cluster_nodes cluster=orders datacenter=dc1 namespace=shop":          0,
		"helenus_failed_passes_total" + of:                                            0,
	} {
		if got, found := first[name]; !found || got != want {
			t.Errorf("%s is %v (exported: %v), want %v", name, got, found, want)
		}
	}
	c.Metrics.Observe(orders, []metrics.Sample{{Family: metrics.BlockedBy, Values: []string{"MemberDown"}, Value: 1}},
		nil, 0)
	const blocked = "helenus_cluster_blocked_steps_by_reason cluster=orders namespace=shop reason=MemberDown"
	if exported(t, registry)[blocked] != 1 {
		t.Error("what is blocked is not exported")
	}
	if _, found := pass()[blocked]; found {
		t.Error("what is blocked no more is exported still")
	}
	c.reads = apierrors.NewInternalError(errors.New("etcd has no leader"))
	if got := pass()["helenus_failed_passes_total"+of]; got != 1 {
		t.Errorf("%v passes failed, want 1", got)
	}
	c.reads = nil
	gone := someCluster()
	if err := c.client.Get(t.Context(), orders, gone); err != nil {
		t.Fatal(err)
	}
	gone.Finalizers = nil
	if err := c.client.Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	for name := range pass() {
		if strings.Contains(name, "cluster=orders") {
			t.Errorf("%s is left of a cluster that is gone", name)
		}
	}
}
