package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CassandraNodeStatus is what the agent found and did.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.ready) || !self.ready || has(self.phase) && self.phase in ['Normal', 'Deferred'] && has(self.clientTraffic) && self.clientTraffic == 'Open'`,message=`ready: a node is ready only in phase Normal or Deferred with clientTraffic Open`
type CassandraNodeStatus struct {
	// ObservedGeneration is the generation of the spec that the agent has taken in.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// PodUID is the pod whose agent wrote this. A status of another pod speaks of the past.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	PodUID types.UID `json:"podUID,omitempty"`

	// Phase in one word.
	// +optional
	Phase NodePhase `json:"phase,omitempty"`

	// Message explains the phase. After a failure it is the last fatal line of the JVM, in words.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// Ready says that the node is NORMAL, gossips and is open to clients. It is what the readiness
	// probe answers.
	// +optional
	Ready bool `json:"ready"`

	// ClientTraffic is for whom the native transport really is open.
	// +optional
	ClientTraffic ClientTraffic `json:"clientTraffic,omitempty"`

	// Disk is what the data volume held before anything was started.
	// +optional
	Disk DiskState `json:"disk,omitempty"`

	// DiskOwner is whose data the volume holds, where that is known.
	// +optional
	DiskOwner *DiskOwner `json:"diskOwner,omitempty"`

	// HostID of the node, from its disk or from the running Cassandra.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	HostID string `json:"hostID,omitempty"`

	// Address by which the other nodes know this one: the pod's address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`

	// Facts is where the agent answers questions about the ring, over HTTPS with client
	// certificates.
	// +optional
	Facts *Endpoint `json:"facts,omitempty"`

	// Version that the running Cassandra reports.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// AgentVersion is the version of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentVersion string `json:"agentVersion,omitempty"`

	// Certificates of Cassandra, one for each use.
	// +optional
	// +listType=map
	// +listMapKey=use
	// +kubebuilder:validation:MaxItems=4
	Certificates []CertificateStatus `json:"certificates,omitempty"`

	// CommitLog is what is kept of the commit log, where the spec says so.
	// +optional
	CommitLog *CommitLogStatus `json:"commitLog,omitempty"`

	// RepairDue says why the data of the node must be repaired, one entry for each reason, until a
	// full repair of the node has finished.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=8
	RepairDue []RepairDue `json:"repairDue,omitempty"`

	// Tokens the node owns, in ascending order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=20
	Tokens []string `json:"tokens,omitempty"`

	// Join is how far the ticket has come.
	// +optional
	Join *IntentStatus `json:"join,omitempty"`

	// Configuration that the running JVM has.
	// +optional
	Configuration *ConfigurationStatus `json:"configuration,omitempty"`

	// Proven is what the node was last NORMAL with. A node that fails with anything else follows
	// corrections of the spec.
	// +optional
	Proven *ProvenStatus `json:"proven,omitempty"`

	// DiskRelease is the release of Cassandra with which the node was last NORMAL on its disk. None
	// of an earlier line starts on it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DiskRelease string `json:"diskRelease,omitempty"`

	// Restart is how far the wanted restart has come.
	// +optional
	Restart *IntentStatus `json:"restart,omitempty"`

	// Operations are how far operations have come: the wanted ones, and the last ones before them.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=8
	Operations []OperationStatus `json:"operations,omitempty"`

	// Restarts of the JVM in this pod that nobody asked for.
	// +optional
	Restarts *RestartsStatus `json:"restarts,omitempty"`

	// Memory is how the container's memory is divided.
	// +optional
	Memory *MemoryStatus `json:"memory,omitempty"`

	// Blocked is what keeps the agent from doing what the spec asks.
	// +optional
	Blocked *NodeBlocked `json:"blocked,omitempty"`

	// Conditions: Ready, ConfigurationApplied, and DiskFailing while it is True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CommitLogStatus is what is kept of the commit log of a member.
type CommitLogStatus struct {
	// CoveredFrom is since when all that the node acknowledged is in the store without a hole; not
	// set while nothing is there.
	// +optional
	CoveredFrom *metav1.Time `json:"coveredFrom,omitempty"`

	// CoveredTo is up to when it is there, if that ends more than five minutes ago. Not set while
	// it follows.
	// +optional
	CoveredTo *metav1.Time `json:"coveredTo,omitempty"`

	// Hole is why coverage was interrupted last, since the agent has started.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Hole string `json:"hole,omitempty"`

	// Problem is why coverage does not follow.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// DiskOwner is whose data a volume holds.
type DiskOwner struct {
	// ClusterUID is the uid of the CassandraCluster, from the marker.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// ClusterName is Cassandra's cluster_name, from the system tables.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ClusterName string `json:"clusterName,omitempty"`

	// Node is the name of the node, from the marker.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node,omitempty"`
}

// Endpoint is an address with a port.
type Endpoint struct {
	// Address is an IP address.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address"`

	// Port number.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// IntentStatus is how far an intent has come. It ends with one of finishedAt and withdrawnAt, and
// stays until the next id.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.finishedAt) || !has(self.withdrawnAt)`,message=`an intent ends with one of finishedAt and withdrawnAt, not with both`
type IntentStatus struct {
	// ID of the intent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// StartedAt is when the agent had journaled that it begins.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when it was done.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// WithdrawnAt is when the agent had journaled that it will never begin, or never go on.
	// +optional
	WithdrawnAt *metav1.Time `json:"withdrawnAt,omitempty"`

	// Attempts counts the JVMs that were started by a join ticket.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// Message says what it waits for, or why it was withdrawn.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ConfigurationStatus is the configuration that the running JVM has.
type ConfigurationStatus struct {
	// Hash of the effective input that the JVM was started with. Empty while none runs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`

	// Revision of the rules it was rendered by.
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// Encryption that the running JVM was started with; nil where nothing is encrypted.
	// +optional
	Encryption *NodeEncryption `json:"encryption,omitempty"`

	// RestartNeeded says that the spec has changes which the running JVM cannot take over.
	// +optional
	RestartNeeded bool `json:"restartNeeded"`

	// Message says which part of the spec was refused, and why. Empty if none was.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// ProvenStatus is what a node was NORMAL with.
type ProvenStatus struct {
	// PodTemplate is the hash of what its pod was made from: the pod's annotation
	// helenus.io/template-hash.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PodTemplate string `json:"podTemplate,omitempty"`

	// Configuration is the hash of the effective input that its JVM was started with.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Configuration string `json:"configuration,omitempty"`
}

// RestartReason is why a JVM was started again without being asked.
//
// +kubebuilder:validation:MaxLength=64
type RestartReason string

const (
	// RestartExited – the JVM ended by itself.
	RestartExited RestartReason = "Exited"
	// RestartKilled – a signal that did not come from Helenus ended it.
	RestartKilled RestartReason = "Killed"
	// RestartOutOfMemory – the kernel killed it, or its heap was exhausted.
	RestartOutOfMemory RestartReason = "OutOfMemory"
	// RestartFrozen – it made no progress for minutes and no peer saw it up; the agent killed it
	// after a thread dump.
	RestartFrozen RestartReason = "Frozen"
	// RestartDiskFailure – it stopped itself because of the disk.
	RestartDiskFailure RestartReason = "DiskFailure"
	// RestartDrained – somebody drained it by hand, so that it served nobody; it was restarted
	// once.
	RestartDrained RestartReason = "Drained"
	// RestartStartFailed – it ended before it was in the ring.
	RestartStartFailed RestartReason = "StartFailed"
	// RestartInitRestarted – the container itself was started again.
	RestartInitRestarted RestartReason = "InitRestarted"
)

// RestartsStatus are the restarts of the JVM in this pod that nobody asked for.
type RestartsStatus struct {
	// Count since the pod was made.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`

	// LastReason of them.
	// +optional
	LastReason RestartReason `json:"lastReason,omitempty"`

	// LastAt is when the JVM last ended unasked.
	// +optional
	LastAt *metav1.Time `json:"lastAt,omitempty"`

	// BackOffUntil is when it is started again. Absent if it is not held back.
	// +optional
	BackOffUntil *metav1.Time `json:"backOffUntil,omitempty"`
}

// MemoryStatus is how the memory of the Cassandra container is divided.
type MemoryStatus struct {
	// Limit of the container. Absent without one.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`

	// Heap of the JVM.
	// +optional
	Heap *resource.Quantity `json:"heap,omitempty"`

	// Direct is the largest amount of direct (off-heap) buffers.
	// +optional
	Direct *resource.Quantity `json:"direct,omitempty"`
}

// NodeBlocked is what keeps an agent from doing what the spec asks.
type NodeBlocked struct {
	// Reason names the problem.
	// +required
	Reason Reason `json:"reason"`

	// Message says why, and what would help.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message"`
}

// RepairDue is a reason why the data of a node must be repaired.
type RepairDue struct {
	// Reason in a word.
	// +required
	Reason RepairReason `json:"reason"`

	// Since when it holds.
	// +required
	Since metav1.Time `json:"since"`
}

// Is says that another entry is about the same event.
func (d RepairDue) Is(other RepairDue) bool {
	return d.Reason == other.Reason && d.Since.Equal(&other.Since)
}
