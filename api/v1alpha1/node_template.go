package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeTemplate is what the nodes of a cluster or datacenter are like. A field that is not set is
// inherited from the level above, maps are merged by key, lists are replaced as a whole; defaults
// apply after that. For this reason nothing below has a default in the schema.
type NodeTemplate struct {
	NodeSettings `json:",inline"`

	// Overlay is a strategic merge patch on the pod (its metadata and spec): side containers,
	// volumes, hooks, security. It may not touch what Helenus owns, which is checked before a pod
	// is made. Any change of it makes new pods.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Overlay *runtime.RawExtension `json:"overlay,omitempty"`
}

// NodeSettings are the parts of a node that each rack can override.
type NodeSettings struct {
	// Resources of the Cassandra container. The memory limit decides the default heap.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// AgentResources are the resources of the agent container. Set them where the pod must have the
	// quality of service Guaranteed.
	// +optional
	AgentResources *Resources `json:"agentResources,omitempty"`

	// Storage of each node.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// CassandraYaml are settings of cassandra.yaml over those of the image. Those that Helenus sets
	// by itself are refused by an admission policy, those that this version of Cassandra does not
	// know by the operator. null removes an inherited setting.
	// +optional
	CassandraYaml Settings `json:"cassandraYaml,omitempty"`

	// JVM settings.
	// +optional
	JVM *JVM `json:"jvm,omitempty"`

	// Environment variables of Cassandra. A change restarts the JVM, not the pod. References to
	// secrets or fields belong in the overlay.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Environment []EnvironmentVariable `json:"environment,omitempty"`

	// ConfigFiles are files beside those that Helenus renders.
	// +optional
	ConfigFiles *ConfigFiles `json:"configFiles,omitempty"`

	// Placement of the pods on hosts.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// TerminationGracePeriodSeconds is how long a pod has to stop in order: not Ready, closed to
	// clients, drained, ended. After that it is killed. Default: 300.
	// +optional
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Probes of the pods, for hosts that are slow. Any change makes new pods.
	// +optional
	Probes *Probes `json:"probes,omitempty"`

	// Metadata is added to the pods. A change is made to the pods that run; what others have added
	// to them stays.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`
}

// Resources are compute resources of a container.
type Resources struct {
	// Requests are what the scheduler sets aside.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// Limits are what the container may not exceed.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// JVM are settings of the Java virtual machine.
type JVM struct {
	// Heap is the size of the heap, both initial and largest (-Xms and -Xmx). Default: half of the
	// memory limit, at most 31Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`(type(self) == int ? self >= 134217728 : isQuantity(self) && !quantity(self).isLessThan(quantity('128Mi')))`,messageExpression=`'heap "' + string(self) + '" must be at least 128Mi; give it a unit, such as 8Gi'`
	Heap *resource.Quantity `json:"heap,omitempty"`

	// Options are added to those of the image. Those that Helenus owns are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule=`self.matches("^-[^[:space:]'\"$]+$")`,messageExpression=`'option ' + self + ' must begin with a hyphen and have no white space, quotes or dollar signs: each option is one item'`
	Options []string `json:"options,omitempty"`

	// ClassPath are jars beside those of the image: the path of one, or of all in a directory, such
	// as /extra/*.jar. Their volume comes with the overlay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^(/[A-Za-z0-9._-]+)*/([*]|[A-Za-z0-9._-]+)[.]jar$')`,messageExpression=`'classPath ' + self + ' must be the absolute path of a jar, or of all in a directory, such as /extra/*.jar'`
	ClassPath []string `json:"classPath,omitempty"`

	// GCLog says where the garbage collection log goes. Default: Stdout.
	// +optional
	GCLog GCLog `json:"gcLog,omitempty"`
}

// ConfigFiles are files of Cassandra's configuration directory that go over the image's, such as
// logback.xml. Those that Helenus renders itself are refused by the agent: cassandra.yaml,
// cassandra-rackdc.properties, the options of the JVM. They are read at each start of the JVM.
type ConfigFiles struct {
	// ConfigMapName is a ConfigMap of the cluster's namespace; each of its keys is the name of a
	// file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMapName string `json:"configMapName"`
}

// EnvironmentVariable is a variable with a literal value.
type EnvironmentVariable struct {
	// Name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z_][A-Za-z0-9_]*$') && !self.startsWith('HELENUS_')`,messageExpression=`'environment variable "' + self + '" must have only letters, digits and underscores, no digit first, and must not start with HELENUS_'`
	Name string `json:"name"`

	// Value of the variable.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// Storage is where a node keeps its data. Exactly one of its fields is set.
//
// +kubebuilder:validation:XValidation:rule=`has(self.claims) != has(self.ephemeral)`,message=`storage must have exactly one field: claims or ephemeral`
type Storage struct {
	// Claims are persistent volumes.
	// +optional
	Claims *StorageClaims `json:"claims,omitempty"`

	// Ephemeral storage is on the host that a pod runs on, and goes with the pod: a node that gets
	// another pod is replaced, and streams all its data again. It keeps its data while its
	// containers restart. A ring that loses all pods at once loses all its data. The nodes of a
	// datacenter keep the kind of storage that they were made with.
	// +optional
	Ephemeral *EphemeralStorage `json:"ephemeral,omitempty"`
}

// EphemeralStorage is one volume of a pod (emptyDir) for data and commit log.
type EphemeralStorage struct {
	// SizeLimit of the volume, such as 200Gi: the kubelet evicts a pod that has more on it. Any
	// change makes new pods.
	// +required
	// +kubebuilder:validation:XValidation:rule=`(type(self) == int ? self >= 1048576 : isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi')))`,messageExpression=`'sizeLimit "' + string(self) + '" must be at least 1Mi; give it a unit, such as 200Gi'`
	SizeLimit *resource.Quantity `json:"sizeLimit"`
}

// StorageClaims are the persistent volume claims of a node. Fields can be changed: a claim that is
// not bound yet is recreated, a bound one grows where its class allows it. What cannot follow is
// reported.
type StorageClaims struct {
	// Data is the volume of the data directory, and of everything else that has no volume of its
	// own.
	// +optional
	Data *VolumeClaim `json:"data,omitempty"`

	// Commitlog is a volume for the commit log. Default: on the data volume.
	// +optional
	Commitlog *VolumeClaim `json:"commitlog,omitempty"`

	// Additional volumes of the Cassandra container.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:XValidation:rule=`self.all(v, self.exists_one(o, o.mountPath == v.mountPath))`,message=`additional volumes must have different mountPaths`
	Additional []AdditionalVolume `json:"additional,omitempty"`
}

// VolumeClaim is the wanted persistent volume claim.
type VolumeClaim struct {
	// Size of the volume, such as 200Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`(type(self) == int ? self >= 1048576 : isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi')))`,messageExpression=`'size "' + string(self) + '" must be at least 1Mi; give it a unit, such as 200Gi'`
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName of the claim. Default: the default class of the Kubernetes cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// AccessModes of the claim, one of ReadWriteOnce and ReadWriteOncePod. Default: ReadWriteOnce.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	AccessModes []AccessMode `json:"accessModes,omitempty"`

	// Selector of the persistent volumes that may be bound to the claim.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// DataSource that the volume is filled from: a PersistentVolumeClaim or a VolumeSnapshot. A
	// node does not join on a data volume that holds data of Cassandra.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.kind == 'PersistentVolumeClaim' && (!has(self.apiGroup) || self.apiGroup == '') || self.kind == 'VolumeSnapshot' && has(self.apiGroup) && self.apiGroup == 'snapshot.storage.k8s.io'`,messageExpression=`'dataSource of kind "' + self.kind + '" must be a PersistentVolumeClaim, or a VolumeSnapshot of the apiGroup snapshot.storage.k8s.io'`
	DataSource *DataSource `json:"dataSource,omitempty"`
}

// DataSource names the object that a volume is filled from.
type DataSource struct {
	// APIGroup of the object; empty for a PersistentVolumeClaim.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind is PersistentVolumeClaim or VolumeSnapshot.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the object, in the namespace of the cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// AdditionalVolume is a volume of its own beside data and commit log.
//
// +kubebuilder:validation:XValidation:rule=`self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && !(self.name in ['data', 'commitlog'])`,messageExpression=`'additional volume "' + self.name + '" must be named with lower-case letters, digits and hyphens, starting with a letter, and neither data nor commitlog'`
// +kubebuilder:validation:XValidation:rule=`self.mountPath.matches('^(/[A-Za-z0-9._-]+)+$') && !self.mountPath.matches('/[.][.]?(/|$)')`,messageExpression=`'mountPath "' + self.mountPath + '" of volume ' + self.name + ' must be an absolute path of letters, digits, dots, underscores and hyphens'`
type AdditionalVolume struct {
	// Name of the volume, part of the claim's name: <name>-<pod>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// MountPath in the Cassandra container.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=256
	MountPath string `json:"mountPath"`

	VolumeClaim `json:",inline"`
}

// Placement of pods on hosts.
type Placement struct {
	// Zone the pods must run in, the value of the hosts' label topology.kubernetes.io/zone.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// NodeSelector are labels that the hosts must have.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// NodeAffinity of the pods.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`

	// Tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// TopologySpreadConstraints of the pods. Where one has no labelSelector it gets the one of the
	// rack.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// HostAntiAffinity says whether two nodes of the cluster may share a host. Default: Required.
	// +optional
	HostAntiAffinity HostAntiAffinity `json:"hostAntiAffinity,omitempty"`

	// PriorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Probes are how Kubernetes asks the agent. None ends Cassandra: the agent alone judges the JVM.
type Probes struct {
	// AgentStartup is how long an agent may take to be up, before it is restarted. Cassandra's
	// container starts after it. Default: every second, 2s for an answer, 300 failures.
	// +optional
	AgentStartup *Probe `json:"agentStartup,omitempty"`

	// AgentLiveness is how long an agent may not answer, before it is restarted; the JVM runs on.
	// Default: every 10s, 5s for an answer, 6 failures.
	// +optional
	AgentLiveness *Probe `json:"agentLiveness,omitempty"`

	// Readiness is how long a node may not answer, before clients are no longer led to it. Default:
	// every 2s, 2s for an answer, 3 failures.
	// +optional
	Readiness *Probe `json:"readiness,omitempty"`
}

// Probe says how often and how patiently Kubernetes asks.
type Probe struct {
	// PeriodSeconds between two questions.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	PeriodSeconds *int32 `json:"periodSeconds,omitempty"`

	// TimeoutSeconds for an answer.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// FailureThreshold is how many failures in a row count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`
}
