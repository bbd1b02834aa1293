package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CassandraClusterStatus is what the operator sees and does.
type CassandraClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Available, Healthy, UpToDate, and Reconciling and Stalled while they are
	// true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Step is the step that is open or next.
	// +optional
	Step *StepStatus `json:"step,omitempty"`

	// OpenSteps are the steps that are open, and those that are suspended.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=16
	OpenSteps []OpenStep `json:"openSteps,omitempty"`

	// Blocked are steps that the operator holds back, each with its reason.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Blocked []BlockedStep `json:"blocked,omitempty"`

	// Notices are problems that hold no step back by a decision of the operator, such as an
	// operation that failed and is retried.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Notices []Notice `json:"notices,omitempty"`

	// Exceptions of the spec, and what became of each.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Exceptions []ExceptionStatus `json:"exceptions,omitempty"`

	// Repair is when tables were last repaired.
	// +optional
	Repair *RepairStatus `json:"repair,omitempty"`

	// Recommended are operations that a person should start.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Recommended []Recommendation `json:"recommended,omitempty"`

	// History are the last ten steps, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []StepRecord `json:"history,omitempty"`

	// Unhealthy are the members that are down or unreachable, and the nodes that wait for the user,
	// by name: the first hundred.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Unhealthy []UnhealthyNode `json:"unhealthy,omitempty"`

	// JVMRestarts are the last ten restarts of a JVM that nobody asked for, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	JVMRestarts []JVMRestart `json:"jvmRestarts,omitempty"`

	// Datacenters in the order of the spec; those that are being removed last.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Datacenters []DatacenterStatus `json:"datacenters,omitempty"`

	// Version is the range of releases that run.
	// +optional
	Version *VersionRange `json:"version,omitempty"`

	// Security is how the ring is protected.
	// +optional
	Security *SecurityStatus `json:"security,omitempty"`

	// Seeds are the addresses that are given to the nodes as seeds.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	Seeds []string `json:"seeds,omitempty"`

	// Nodes is the number of node records.
	// +optional
	Nodes int32 `json:"nodes"`

	// ReadyNodes is the number of nodes that serve clients.
	// +optional
	ReadyNodes int32 `json:"readyNodes"`
}

// StepStatus is the step that is open or next.
type StepStatus struct {
	// Name of the step, such as FormRing.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`

	// Message says what is being done or waited for.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// Nodes it works on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Nodes []string `json:"nodes,omitempty"`

	// Since when.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Progress from 0 to 100 percent, where it is known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress *int32 `json:"progress,omitempty"`

	// Hold is what spec.disruption.resume must be for the step to continue. Empty while no person
	// is waited for.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Hold string `json:"hold,omitempty"`
}

// OpenStep is a step of the ledger that has not ended.
type OpenStep struct {
	// ID of the step in the ledger.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// Step is the name of the step.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Step string `json:"step"`

	// Since when it is open.
	// +required
	Since metav1.Time `json:"since"`
}

// NodeTrouble is what is wrong with a node: Down, Unreachable, or a phase of the node that waits
// for the user.
//
// +kubebuilder:validation:MaxLength=64
type NodeTrouble string

const (
	// TroubleDown – by its own word, or that of another member, Cassandra is not NORMAL on it.
	TroubleDown NodeTrouble = "Down"
	// TroubleUnreachable – its agent does not answer, and no member sees it down.
	TroubleUnreachable NodeTrouble = "Unreachable"
)

// UnhealthyNode is a node that is down, unreachable or waits for the user.
type UnhealthyNode struct {
	// Name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Trouble is what is wrong.
	// +required
	Trouble NodeTrouble `json:"trouble"`
}

// JVMRestart is an end of a JVM that nobody asked for, after which it was started again.
type JVMRestart struct {
	// Node that it ran on.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node"`

	// Reason of the restart.
	// +optional
	Reason RestartReason `json:"reason,omitempty"`

	// At is when the JVM ended.
	// +required
	At metav1.Time `json:"at"`
}

// BlockedStep is a step that the operator holds back.
type BlockedStep struct {
	// Step is the name of the step.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Step string `json:"step"`

	// Reason names the problem.
	// +required
	Reason Reason `json:"reason"`

	// Message says what the step waits for, and what would help.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// Nodes it is about.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Nodes []string `json:"nodes,omitempty"`
}

// Notice is a problem that the operator reports and works on, or waits for. It holds no step back.
type Notice struct {
	// Reason names the problem.
	// +required
	Reason Reason `json:"reason"`

	// Nodes it is about.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Nodes []string `json:"nodes,omitempty"`

	// Message says what is wrong, and what would help.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// ExceptionStatus is what became of an exception.
type ExceptionStatus struct {
	// Name of the exception.
	// +required
	// +kubebuilder:validation:MaxLength=100
	Name string `json:"name"`

	// State of the exception.
	// +required
	State ExceptionState `json:"state"`

	// Node that it is about.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node,omitempty"`

	// Message says what it does, or why it has no effect.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// UsedAt is when the guard that it overrules first found something. For the type OverrideGuard
	// alone.
	// +optional
	UsedAt *metav1.Time `json:"usedAt,omitempty"`
}

// RepairStatus is when tables with more than one replica were last repaired.
type RepairStatus struct {
	// Mode in effect.
	// +optional
	Mode RepairMode `json:"mode,omitempty"`

	// Progress is the share of the tables of which no repair is due, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Progress *int32 `json:"progress,omitempty"`

	// Rate is how many bytes of one replica the ring has repaired in a second lately, to two
	// digits: all repairs that ran at a time together, without the pauses between them. Not set
	// before a repair had much to compare.
	// +optional
	Rate *resource.Quantity `json:"rate,omitempty"`

	// Oldest is the part of the ring that has its deadline first.
	// +optional
	Oldest *OldestRepair `json:"oldest,omitempty"`

	// Tables with the earliest deadlines, at most 32, by their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Tables []TableRepair `json:"tables,omitempty"`
}

// OldestRepair is a range of a table.
type OldestRepair struct {
	// Table as keyspace.table.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=97
	Table string `json:"table"`

	// Range of tokens, as Cassandra writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Range string `json:"range,omitempty"`

	// LastRepaired is when the last repair of the range began; not set if none is known.
	// +optional
	LastRepaired *metav1.Time `json:"lastRepaired,omitempty"`

	// Deadline is when a replica may forget the first deletion that was made since.
	// +required
	Deadline metav1.Time `json:"deadline"`
}

// TableRepair is when a table was repaired.
type TableRepair struct {
	// Name as keyspace.table.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=97
	Name string `json:"name"`

	// LastRepaired is when the oldest of the last repairs of its ranges began; not set if there is
	// a range of which none is known.
	// +optional
	LastRepaired *metav1.Time `json:"lastRepaired,omitempty"`

	// Deadline is when a replica may forget the first deletion that was made since.
	// +required
	Deadline metav1.Time `json:"deadline"`

	// Compaction is the class of the table's strategy.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Compaction string `json:"compaction,omitempty"`
}

// Recommendation is an operation that a person should start.
type Recommendation struct {
	// Operation such as Cleanup or Repair.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation"`

	// Nodes it should run on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Nodes []string `json:"nodes,omitempty"`

	// Message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// StepResult is how a step ended.
//
// +kubebuilder:validation:MaxLength=64
type StepResult string

const (
	// StepSucceeded – the facts show what was wanted.
	StepSucceeded StepResult = "Succeeded"
	// StepFailed – it ended without that.
	StepFailed StepResult = "Failed"
	// StepWithdrawn – it was taken back before it had an effect.
	StepWithdrawn StepResult = "Withdrawn"
)

// StepRecord is a step of the past.
type StepRecord struct {
	// Step is the name of the step.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Step string `json:"step"`

	// Result of the step.
	// +required
	Result StepResult `json:"result"`

	// Message says what it did.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// StartedAt is when its first intent was written.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// FinishedAt is when the facts showed its end.
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`
}

// DatacenterStatus counts the nodes of a datacenter.
type DatacenterStatus struct {
	// Name of the datacenter.
	// +required
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// Formed says that the datacenter's ring exists: from then on no node joins it without
	// streaming.
	// +optional
	Formed bool `json:"formed"`

	// Nodes is the number of node records. While it is not 0 numTokens of the datacenter cannot be
	// changed.
	// +required
	Nodes int32 `json:"nodes"`

	// Ready is the number of nodes that serve clients.
	// +required
	Ready int32 `json:"ready"`

	// Racks of the datacenter.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=40
	Racks []RackStatus `json:"racks,omitempty"`
}

// RackStatus counts the nodes of a rack.
type RackStatus struct {
	// Name of the rack.
	// +required
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// Nodes is the number of node records.
	// +required
	Nodes int32 `json:"nodes"`

	// Ready is the number of nodes that serve clients.
	// +required
	Ready int32 `json:"ready"`
}

// VersionRange is the range of releases that run.
type VersionRange struct {
	// Lowest release of a node.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Lowest string `json:"lowest"`

	// Highest release of a node.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Highest string `json:"highest"`
}
