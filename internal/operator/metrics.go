package operator

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/metrics"
	"helenus.io/helenus/internal/core/plan"
)

// Metrics of the operator, beside those of controller-runtime. Those of a cluster are replaced as a
// whole by each pass, so that nothing outlives what it was about.
type Metrics struct {
	writes *prometheus.CounterVec
	failed *prometheus.CounterVec
	pass   prometheus.Histogram
	proven *prometheus.GaugeVec
	due    map[*metrics.Family]*prometheus.GaugeVec
	known  map[string]*prometheus.Desc

	mutex    sync.Mutex
	clusters map[types.NamespacedName][]metrics.Sample
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	count := func(f *metrics.Family) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
	}
	m := &Metrics{
		writes: count(metrics.Writes),
		failed: count(metrics.FailedPasses),
		pass: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: metrics.Passes.Name, Help: metrics.Passes.Help,
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		proven: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metrics.Proven.Name,
			Help: metrics.Proven.Help}, nil),
		due:      map[*metrics.Family]*prometheus.GaugeVec{},
		known:    map[string]*prometheus.Desc{},
		clusters: map[types.NamespacedName][]metrics.Sample{},
	}
	for _, f := range metrics.OfCluster {
		m.known[f.Name] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	for _, f := range []*metrics.Family{metrics.BackupDue, metrics.DrillDue} {
		m.due[f] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.Labels)
		registry.MustRegister(m.due[f])
	}
	registry.MustRegister(m, m.writes, m.failed, m.pass, m.proven)
	return m
}

// Proven notes whether the operator has proven its installation.
func (m *Metrics) Proven(is metav1.ConditionStatus) {
	value := 0.0
	if is == metav1.ConditionTrue {
		value = 1
	}
	m.proven.WithLabelValues().Set(value)
}

// Due notes when the next backup, or the next proof of one, of a schedule of a cluster is due; zero
// if none is.
func (m *Metrics) Due(of *metrics.Family, schedule types.NamespacedName, cluster string, at time.Time) {
	if at.IsZero() {
		m.due[of].DeletePartialMatch(prometheus.Labels{"namespace": schedule.Namespace, "schedule": schedule.Name})
		return
	}
	m.due[of].WithLabelValues(schedule.Namespace, cluster, schedule.Name).Set(float64(at.Unix()))
}

// Describe says which metrics there are of clusters.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range m.known {
		out <- desc
	}
}

// Collect gives those of the last pass over each cluster.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for key, samples := range m.clusters {
		for _, s := range samples {
			labels := append([]string{key.Namespace, key.Name}, s.Values...)
			out <- prometheus.MustNewConstMetric(m.known[s.Name], prometheus.GaugeValue, s.Value, labels...)
		}
	}
}

// Observe takes the figures of a pass, and what it wrote.
func (m *Metrics) Observe(key types.NamespacedName, samples []metrics.Sample, written []plan.Write,
	took time.Duration) {
	m.mutex.Lock()
	m.clusters[key] = samples
	m.mutex.Unlock()
	m.failed.WithLabelValues(key.Namespace, key.Name) // 0 is something else than unknown
	for _, w := range written {
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
	m.mutex.Lock()
	delete(m.clusters, key)
	m.mutex.Unlock()
	m.failed.DeleteLabelValues(key.Namespace, key.Name)
}
