package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TableMetricsMode is of which tables there are metrics.
//
// +kubebuilder:validation:Enum=Top;All;None
type TableMetricsMode string

const (
	// TableMetricsTop – of the tables with the most reads and writes, and of those that are
	// included.
	TableMetricsTop TableMetricsMode = "Top"
	// TableMetricsAll – of every table, up to 1,000.
	TableMetricsAll TableMetricsMode = "All"
	// TableMetricsNone – of no table, except those that are included.
	TableMetricsNone TableMetricsMode = "None"
)

// DefaultTableMetrics is the limit of spec.metrics.tables, and MaxTableMetrics what it may be.
const (
	DefaultTableMetrics = 100
	MaxTableMetrics     = 1000
)

// Metrics says what Prometheus gets of a ring.
type Metrics struct {
	// Tables of which there are metrics.
	// +optional
	Tables *TableMetrics `json:"tables,omitempty"`

	// PodMonitor has the operator of Prometheus scrape the pods.
	// +optional
	PodMonitor *PodMonitor `json:"podMonitor,omitempty"`

	// Extra names metrics of Cassandra's registry beside those of the guide's list, with * for any
	// number of characters, such as org.apache.cassandra.metrics.Index.*: at most 2,000 series on
	// each node. A change restarts nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Extra []MetricPattern `json:"extra,omitempty"`
}

// PodMonitorMode is whether Helenus makes a PodMonitor for a ring.
//
// +kubebuilder:validation:Enum=Auto;None
type PodMonitorMode string

const (
	// PodMonitorAuto – there is a PodMonitor as long as Kubernetes has the kind.
	PodMonitorAuto PodMonitorMode = "Auto"
	// PodMonitorNone – Helenus makes none, and removes the one that it has made.
	PodMonitorNone PodMonitorMode = "None"
)

// DefaultScrapeInterval is the interval of spec.metrics.podMonitor.
const DefaultScrapeInterval = "30s"

// PodMonitor is an object of the operator of Prometheus, of the cluster's name.
type PodMonitor struct {
	// Mode: with Auto there is a PodMonitor as long as Kubernetes has the kind, with None there is
	// none of Helenus. Default: Auto.
	// +optional
	Mode PodMonitorMode `json:"mode,omitempty"`

	// Interval of scrapes, 5s to 1h in whole seconds. Default: 30s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('5s') && duration(self) <= duration('1h') && duration(self).getMilliseconds() % 1000 == 0`,message=`metrics.podMonitor.interval must be from 5s to 1h in whole seconds`
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Labels by which Prometheus selects the PodMonitor.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !k.matches('(^|[.])(helenus[.]io|app[.]kubernetes[.]io)/'))`,message=`labels of helenus.io and app.kubernetes.io are set by Helenus`
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k.matches('^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$') && self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$'))`,message=`metrics.podMonitor.labels has what is no label of Kubernetes`
	Labels map[string]string `json:"labels,omitempty"`
}

// MetricPattern is a name of Cassandra's registry with * for any number of characters.
//
// +kubebuilder:validation:MinLength=30
// +kubebuilder:validation:MaxLength=200
// +kubebuilder:validation:XValidation:rule=`self.matches('^org[.]apache[.]cassandra[.]metrics[.][A-Za-z0-9_.*-]+$')`,messageExpression=`'"' + self + '" can match no metric: write org.apache.cassandra.metrics. and a name of letters, digits, dots, hyphens, underscores and * for any number of characters, such as org.apache.cassandra.metrics.Index.*'`
type MetricPattern string

// TableMetrics bounds the metrics of tables, of which each has 46 series on each node. What is left
// out is summed per keyspace, with an empty label table. A change restarts nothing.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.limit) || !has(self.mode) || self.mode == 'Top'`,message=`metrics.tables.limit needs mode: Top`
type TableMetrics struct {
	// Mode: Top has the tables with the most reads and writes, All every table up to 1,000, None no
	// table. Default: Top.
	// +optional
	Mode TableMetricsMode `json:"mode,omitempty"`

	// Limit of Top, 1 to 1000: how many tables on a node, those of include among them. Default:
	// 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Limit int32 `json:"limit,omitempty"`

	// Include names tables that come first in every mode, as keyspace.table; * is any number of
	// characters, such as shop.*.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Include []TablePattern `json:"include,omitempty"`

	// Exclude names tables that are only in the sum, in the form of include. It wins over include.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Exclude []TablePattern `json:"exclude,omitempty"`
}

// TablePattern is keyspace.table with * for any number of characters.
//
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=97
// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9_*]{1,48}[.][A-Za-z0-9_*]{1,48}$')`,messageExpression=`'"' + self + '" can match no table: write keyspace.table with letters, digits, underscores and * for any number of characters, such as shop.*'`
type TablePattern string
