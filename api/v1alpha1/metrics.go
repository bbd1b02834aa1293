package v1alpha1

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
}

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
