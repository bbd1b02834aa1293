package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CassandraCluster is one Apache Cassandra cluster: its datacenters, racks, sizes, version and configuration. It is written by the user and never
// by Helenus, which reports in the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cass,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyNodes`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Up-to-date",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step.name`
// +kubebuilder:printcolumn:name="Stalled",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Stalled")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CassandraCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	// +required
	Spec CassandraClusterSpec `json:"spec"`
	// Status is what the operator sees and does. It is never an input.
	// +optional
	Status CassandraClusterStatus `json:"status,omitempty"`
}

// CassandraClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type CassandraClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraCluster `json:"items"`
}

// CassandraClusterSpec is the wanted state of a cluster.
type CassandraClusterSpec struct {
	// Version is the Cassandra release, such as 5.0.6. It decides the image tag, the settings that are known, the JVM options and which upgrades are
	// allowed.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version"`

	// Image is the Cassandra image, with tag or digest. Default: the operator's repository with the version as tag. It must have the layout of the
	// official image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// ImagePullSecrets are secrets of the cluster's namespace for pulling the images.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// ClusterName is Cassandra's cluster_name. Default: <namespace>.<name>. Immutable, since it is written on every disk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ClusterName string `json:"clusterName,omitempty"`

	// Paused stops the operator before its next disruptive step. An open step goes on to the end of its wave, and missing pods of members are still
	// re-created.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Stopped drains all JVMs and deletes the pods. Records and claims are kept; false starts the cluster again.
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// Node is what every node is like. A datacenter and a rack override it field by field.
	// +optional
	Node *NodeTemplate `json:"node,omitempty"`

	// Datacenters of the ring, 1 to 10.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Datacenters []Datacenter `json:"datacenters"`

	// Disruption bounds what may be down at the same time.
	// +optional
	// +kubebuilder:default={}
	Disruption DisruptionPolicy `json:"disruption,omitempty"`

	// Replacement says when a lost node is replaced without being asked.
	// +optional
	// +kubebuilder:default={}
	Replacement ReplacementPolicy `json:"replacement,omitempty"`

	// Automation says which follow-up operations run without being asked.
	// +optional
	// +kubebuilder:default={}
	Automation AutomationPolicy `json:"automation,omitempty"`

	// Volumes says what becomes of claims.
	// +optional
	// +kubebuilder:default={}
	Volumes VolumePolicy `json:"volumes,omitempty"`
}

// Datacenter is one datacenter of the ring.
type Datacenter struct {
	// Name is part of the names of pods and services: a lower-case letter, then lower-case letters and digits, at most 20 in all. No hyphen, so that
	// pod names stay unambiguous.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// RingName is the datacenter's name inside Cassandra, used in keyspace replication. Default: name. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RingName string `json:"ringName,omitempty"`

	// NodesPerRack is the number of nodes of each rack that does not say otherwise. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	NodesPerRack int32 `json:"nodesPerRack,omitempty"`

	// Tokens is Cassandra's num_tokens for each node, 1 to 256. Default: 16. Immutable once the datacenter has nodes.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Tokens int32 `json:"tokens,omitempty"`

	// ReplicationFactor is the number of copies that keyspaces will have in this datacenter. It steers token allocation, the system keyspaces (with
	// fewer nodes: their number) and what the guards advise. It changes no keyspace of the user. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	ReplicationFactor int32 `json:"replicationFactor,omitempty"`

	// Extend says what is replicated to a datacenter that joins a cluster which already has data.
	// +optional
	Extend *Extend `json:"extend,omitempty"`

	// Racks of the datacenter, 1 to 20. Each should be a failure domain of its own, such as a zone.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Racks []Rack `json:"racks"`

	// Node overrides what the cluster says about its nodes.
	// +optional
	Node *NodeTemplate `json:"node,omitempty"`
}

// Extend says what is replicated to a datacenter that joins a cluster which already has data.
type Extend struct {
	// Keyspaces that get replicas here. The system keyspaces always do.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// From is the name of the datacenter whose replicas are copied. Default: the first one.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	From string `json:"from,omitempty"`

	// LocalConsistencyOnly declares that clients use LOCAL_* consistency levels until the data is complete. Without it keyspaces that need more are
	// not extended.
	// +optional
	LocalConsistencyOnly bool `json:"localConsistencyOnly,omitempty"`
}

// Rack is one rack of a datacenter: the unit of placement, inheritance and rolling.
type Rack struct {
	// Name is part of the names of pods. Same form as a datacenter's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// RingName is the rack's name inside Cassandra. Default: name. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RingName string `json:"ringName,omitempty"`

	// Nodes overrides nodesPerRack of the datacenter.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Nodes *int32 `json:"nodes,omitempty"`

	// Node overrides what cluster and datacenter say about the nodes. Storage and overlay cannot differ between racks.
	// +optional
	Node *NodeSettings `json:"node,omitempty"`
}

// DisruptionPolicy bounds what may be down at the same time.
type DisruptionPolicy struct {
	// Consistency is the level at which every protectable range stays available while nodes are taken down. Default: LocalQuorum.
	// +optional
	// +kubebuilder:default=LocalQuorum
	Consistency ConsistencyLevel `json:"consistency,omitempty"`

	// MaxUnavailable is how many nodes of one rack may be down at once: a number from 1 to 100, or a percentage of the rack. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// Soak is how long the first node of a change must serve before the others follow, 0s to 24h. Default: 30s.
	// +optional
	// +kubebuilder:default="30s"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// Unprotected says what happens to ranges that no schedule can keep available. Default: Proceed.
	// +optional
	// +kubebuilder:default=Proceed
	Unprotected UnprotectedPolicy `json:"unprotected,omitempty"`
}

// ReplacementPolicy says when a lost node is replaced without being asked.
type ReplacementPolicy struct {
	// Automatic replacement of nodes whose disk or machine is proven to be gone. Default: true.
	// +optional
	// +kubebuilder:default=true
	Automatic *bool `json:"automatic,omitempty"`

	// After is the time between the proof and the replacement, 0s to 168h. Default: 10m.
	// +optional
	// +kubebuilder:default="10m"
	After *metav1.Duration `json:"after,omitempty"`
}

// AutomationPolicy says which follow-up operations run without being asked.
type AutomationPolicy struct {
	// Cleanup removes the data that nodes no longer own, after others have joined. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Cleanup Automation `json:"cleanup,omitempty"`

	// UpgradeSSTables rewrites the files of an older format, after an upgrade. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	UpgradeSSTables Automation `json:"upgradeSSTables,omitempty"`
}

// VolumePolicy says what becomes of claims.
type VolumePolicy struct {
	// OnScaleIn: claims of nodes that have left the ring. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	OnScaleIn ClaimPolicy `json:"onScaleIn,omitempty"`

	// OnClusterDeletion: claims of a deleted cluster. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	OnClusterDeletion ClaimPolicy `json:"onClusterDeletion,omitempty"`

	// Adopt is the uid of an earlier cluster of the same name whose retained claims are to be used. Immutable once set.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	Adopt types.UID `json:"adopt,omitempty"`
}
