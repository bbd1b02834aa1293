package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
)

// Metrics of the operator, beside those of controller-runtime.
type Metrics struct {
	nodes   *prometheus.GaugeVec
	ready   *prometheus.GaugeVec
	blocked *prometheus.GaugeVec
	notices *prometheus.GaugeVec
	stalled *prometheus.GaugeVec
	open    *prometheus.GaugeVec
	writes  *prometheus.CounterVec
	failed  *prometheus.CounterVec
	pass    prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	of := []string{"namespace", "cluster"}
	m := &Metrics{
		nodes: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "helenus_cluster_nodes",
			Help: "Node records of a cluster."}, of),
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "helenus_cluster_ready_nodes",
			Help: "Nodes of a cluster that serve clients."}, of),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "helenus_cluster_blocked_steps",
			Help: "Steps of a cluster that are held back."}, of),
		notices: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "helenus_cluster_notices",
			Help: "Problems of a cluster that hold no step back."}, of),
		stalled: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "helenus_cluster_stalled",
			Help: "1 while user action is required."}, of),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "helenus_cluster_open_step",
			Help: "1 while a step of a cluster is open."}, of),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "helenus_writes_total",
			Help: "Writes to the API server by verb."},
			[]string{"verb"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "helenus_failed_passes_total",
			Help: "Passes over a cluster that failed by an error of the API server."}, of),
		pass: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "helenus_pass_seconds", Help: "Duration of a pass over one cluster.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	registry.MustRegister(m.nodes, m.ready, m.blocked, m.notices, m.stalled, m.open, m.writes, m.failed, m.pass)
	return m
}

// Observe takes the figures of a pass.
func (m *Metrics) Observe(key types.NamespacedName, s *facts.Snapshot, plan plan.Plan, done act.Result,
	took time.Duration) {
	labels := prometheus.Labels{"namespace": key.Namespace, "cluster": key.Name}
	ready := 0
	for _, n := range s.Records() {
		if status.Serves(n) {
			ready++
		}
	}
	m.nodes.With(labels).Set(float64(len(s.Records())))
	m.ready.With(labels).Set(float64(ready))
	m.blocked.With(labels).Set(float64(len(plan.Blocked)))
	m.notices.With(labels).Set(float64(len(plan.Notices)))
	m.stalled.With(labels).Set(flag(plan.Stalled != nil))
	m.open.With(labels).Set(flag(len(s.Ledger.Open()) > 0))
	for _, w := range plan.Writes[:done.Done] {
		m.writes.WithLabelValues(string(w.Verb)).Inc()
	}
	m.pass.Observe(took.Seconds())
}

// Failed counts a pass that failed.
func (m *Metrics) Failed(key types.NamespacedName) {
	m.failed.WithLabelValues(key.Namespace, key.Name).Inc()
}

// Forget drops the figures of a cluster that is gone.
func (m *Metrics) Forget(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "cluster": key.Name}
	for _, g := range []*prometheus.GaugeVec{m.nodes, m.ready, m.blocked, m.notices, m.stalled, m.open} {
		g.DeletePartialMatch(labels)
	}
	m.failed.DeletePartialMatch(labels)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
