package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
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

// When a backup of a schedule is due is exported as long as one is.
func TestMetricsOfASchedule(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	c := newClockwork(t)
	s := &v1alpha1.CassandraBackupSchedule{}
	s.Namespace, s.Name, s.CreationTimestamp = "shop", "nightly", metav1.NewTime(at())
	s.Spec.Cluster.Name, s.Spec.Schedule, s.Spec.TimeZone = "orders", "0 3 * * *", "UTC"
	next := metav1.NewTime(at().Add(time.Hour))
	s.Status.NextScheduleTime = &next
	if err := c.client.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	o := &Schedules{Reader: c.Reader, Writer: c.Writer, Now: at, Backups: true, Metrics: NewMetrics(registry)}
	due := func() (float64, bool) {
		t.Helper()
		key := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)}
		if _, err := o.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		is, found := exported(t, registry)[metrics.BackupDue.Name+" cluster=orders namespace=shop schedule=nightly"]
		return is, found
	}
	if is, found := due(); !found || is != float64(next.Unix()) {
		t.Errorf("due at %v (exported: %v), want %d", is, found, next.Unix())
	}
	if err := c.client.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if is, found := due(); found {
		t.Errorf("still due at %v", is)
	}
}
