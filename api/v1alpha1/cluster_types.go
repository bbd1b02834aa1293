package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CassandraCluster is one Apache Cassandra cluster: its datacenters, racks, sizes, version and
// configuration. It is written by the user and never by Helenus, which reports in the status.
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
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,messageExpression=`'metadata.name "' + self.metadata.name + '" must start with a lower-case letter and have only lower-case letters, digits and hyphens: services are named after it'`
// +kubebuilder:validation:XValidation:rule=`self.spec.datacenters.all(d, d.racks.all(r, size(self.metadata.name) + size(d.name) + size(r.name) + 6 <= 63))`,messageExpression=`'metadata.name "' + self.metadata.name + '" is too long: <name>-<datacenter>-<rack>-<number> is the name of a pod and may have 63 characters, 3 of them for the number'`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.datacenters) || self.spec.datacenters.all(d, oldSelf.status.datacenters.all(s, s.name != d.name || s.nodes == 0) || oldSelf.spec.datacenters.all(o, o.name != d.name || o.numTokens == d.numTokens))`,message=`datacenters[].numTokens cannot be changed while the datacenter has nodes: Cassandra keeps the number of tokens for life; add a datacenter with the new number instead`
type CassandraCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what the user wants.
	// +required
	Spec CassandraClusterSpec `json:"spec"`
	// Status is what the operator sees and does. It is never an input.
	// +optional
	Status CassandraClusterStatus `json:"status,omitzero"`
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
//
// +kubebuilder:validation:XValidation:rule=`(has(self.clusterName) ? self.clusterName : "") == (has(oldSelf.clusterName) ? oldSelf.clusterName : "")`,message=`clusterName cannot be changed: it is written on every disk`
// +kubebuilder:validation:XValidation:rule=`has(self.bootstrap) == has(oldSelf.bootstrap)`,message=`bootstrap cannot be added or taken away: how a cluster came to be is decided when it is created; delete it (with volumes.onClusterDeletion: Retain) and create it again`
// +kubebuilder:validation:XValidation:rule=`has(self.node) && has(self.node.storage) && (has(self.node.storage.ephemeral) || has(self.node.storage.claims) && has(self.node.storage.claims.data) && has(self.node.storage.claims.data.size)) || self.datacenters.all(d, has(d.node) && has(d.node.storage) && (has(d.node.storage.ephemeral) || has(d.node.storage.claims) && has(d.node.storage.claims.data) && has(d.node.storage.claims.data.size)) || d.racks.all(r, has(r.node) && has(r.node.storage) && (has(r.node.storage.ephemeral) || has(r.node.storage.claims) && has(r.node.storage.claims.data) && has(r.node.storage.claims.data.size))))`,message=`node.storage.claims.data.size, or node.storage.ephemeral.sizeLimit, must be set, such as 200Gi, for the cluster, for each datacenter or for each rack`
// +kubebuilder:validation:XValidation:rule=`!(has(self.node) && has(self.node.storage) && has(self.node.storage.ephemeral)) || self.datacenters.exists(d, has(d.node) && has(d.node.storage) && has(d.node.storage.claims) || d.racks.exists(r, has(r.node) && has(r.node.storage) && has(r.node.storage.claims))) || !has(self.volumes) || !has(self.volumes.onScaleIn) || self.volumes.onScaleIn == 'Retain'`,message=`volumes.onScaleIn must be Retain, its default, where all storage is ephemeral: there are no claims that could be deleted`
// +kubebuilder:validation:XValidation:rule=`self.datacenters.map(d, d.racks.map(r, has(r.nodes) ? r.nodes : has(d.nodesPerRack) ? d.nodesPerRack : 1).sum()).sum() <= 1000`,message=`datacenters: a cluster may have at most 1000 nodes, those of all racks together`
// +kubebuilder:validation:XValidation:rule=`self.datacenters.all(d, self.datacenters.exists_one(o, (has(o.datacenterName) && o.datacenterName != "" ? o.datacenterName : o.name) == (has(d.datacenterName) && d.datacenterName != "" ? d.datacenterName : d.name)))`,message=`datacenters[].datacenterName must be unique: two datacenters have the same name inside Cassandra`
// +kubebuilder:validation:XValidation:rule=`self.datacenters.all(d, !has(d.extend) || !has(d.extend.from) || d.extend.from == "" || d.extend.from != d.name && self.datacenters.exists(o, o.name == d.extend.from))`,message=`datacenters[].extend.from must be the name of another datacenter of this cluster`
// +kubebuilder:validation:XValidation:rule=`self.datacenters.exists(d, !has(d.withdraw))`,message=`datacenters[].withdraw must not be set for all datacenters: one has to keep what the others give up`
// +kubebuilder:validation:XValidation:rule=`self.datacenters.exists(d, !has(d.stopped) || !d.stopped)`,message=`datacenters[].stopped must not be true for all datacenters: use spec.stopped, by which all nodes stop and start together, so that none has been away from the others`
// +kubebuilder:validation:XValidation:rule=`!(has(self.stopped) && self.stopped) || self.datacenters.all(d, !has(d.stopped) || !d.stopped)`,message=`stopped is true, and datacenters[].stopped of a datacenter, too: take the latter out with the same change. Its nodes stay stopped with all others, and start with them`
type CassandraClusterSpec struct {
	// Version is the Cassandra release, such as 5.0.6. It decides the image tag, the settings that
	// are known, the JVM options and which upgrades are allowed.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9]+[.][0-9]+[.][0-9]+(-[a-z0-9]+)?$')`,messageExpression=`'version "' + self + '" is not a Cassandra release such as 5.0.6'`
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^([0-3]|4[.]0)[.]')`,messageExpression=`'version "' + self + '" is not supported: Cassandra 4.1 is the oldest'`
	Version string `json:"version"`

	// Image is the Cassandra image, with tag or digest. Default: the operator's repository with the
	// version as tag. It must have the layout of the official image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`!self.matches('[[:space:]]')`,messageExpression=`'image "' + self + '" must not contain white space'`
	Image string `json:"image,omitempty"`

	// ImagePullPolicy of the images of Cassandra and of the agent. Default: that of Kubernetes,
	// which is IfNotPresent, and Always for the tag latest.
	// +optional
	ImagePullPolicy PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are secrets of the cluster's namespace for pulling the images.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// ClusterName is Cassandra's cluster_name. Default: <namespace>.<name>. Immutable, since it is
	// written on every disk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9])?$')`,messageExpression=`'clusterName "' + self + '" must have only letters, digits, spaces, dots, underscores and hyphens, with a letter or digit at both ends'`
	ClusterName string `json:"clusterName,omitempty"`

	// Paused stops the operator before its next disruptive step. An open step goes on to the end of
	// its wave, and missing pods of members are still re-created.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Stopped has all nodes of the ring stopped in order, and their pods deleted, for as long as it
	// is true: client traffic is closed, hints and batches are delivered, and all nodes are drained
	// together. Volumes, records and services stay. Taken back, all nodes start together. A ring
	// that has not formed cannot be stopped, nor one on ephemeral storage.
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// RestartedAt asks for one restart of every JVM of the cluster, one after the other: any time,
	// such as now. Of cluster, datacenter and rack the latest counts; a node restarts once for a
	// value.
	// +optional
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`

	// Bootstrap says what the cluster begins with, if not with empty disks. Immutable: it can be
	// neither changed, added nor taken away.
	// +optional
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// Services that lead to the nodes.
	// +optional
	Services *Services `json:"services,omitempty"`

	// ServiceAccount is what is added to the service account of the pods, such as the annotation by
	// which a cloud gives it an identity.
	// +optional
	ServiceAccount *Metadata `json:"serviceAccount,omitempty"`

	// Security says who may do what with the ring.
	// +optional
	Security *Security `json:"security,omitempty"`

	// Metrics says what Prometheus gets of the ring.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

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
	Disruption DisruptionPolicy `json:"disruption,omitzero"`

	// Exceptions are a person's word about single nodes, each for a time.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Exceptions []Exception `json:"exceptions,omitempty"`

	// Automation says which follow-up operations run without being asked.
	// +optional
	// +kubebuilder:default={}
	Automation AutomationPolicy `json:"automation,omitzero"`

	// Replacement says how members are replaced whose disks or hosts are lost.
	// +optional
	// +kubebuilder:default={}
	Replacement ReplacementPolicy `json:"replacement,omitzero"`

	// Repair says when tables are repaired.
	// +optional
	// +kubebuilder:default={}
	Repair RepairPolicy `json:"repair,omitzero"`

	// Volumes says what becomes of claims.
	// +optional
	// +kubebuilder:default={}
	Volumes VolumePolicy `json:"volumes,omitzero"`
}

// Datacenter is one datacenter of the ring.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.datacenterName) && self.datacenterName != "" ? self.datacenterName : self.name) == (has(oldSelf.datacenterName) && oldSelf.datacenterName != "" ? oldSelf.datacenterName : oldSelf.name)`,messageExpression=`'datacenterName of datacenter ' + self.name + ' cannot be changed: keyspaces and disks refer to it'`
// +kubebuilder:validation:XValidation:rule=`self.racks.all(r, self.racks.exists_one(o, (has(o.rackName) && o.rackName != "" ? o.rackName : o.name) == (has(r.rackName) && r.rackName != "" ? r.rackName : r.name)))`,messageExpression=`'racks[].rackName must be unique in datacenter ' + self.name`
// +kubebuilder:validation:XValidation:rule=`!(has(self.stopped) && self.stopped && has(self.withdraw))`,messageExpression=`'datacenter ' + self.name + ' has both stopped and withdraw: what its nodes hold must reach the others before keyspaces lose their replicas there. Take stopped out, and set withdraw when it has started'`
type Datacenter struct {
	// Name is part of the names of pods and services: a lower-case letter, then lower-case letters
	// and digits, at most 20 in all. No hyphen, so that pod names stay unambiguous.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z][a-z0-9]*$')`,messageExpression=`'name "' + self + '" must be a lower-case letter followed by lower-case letters and digits; hyphens are not allowed, since names of pods would be ambiguous. Use datacenterName for the name inside Cassandra'`
	Name string `json:"name"`

	// DatacenterName is the datacenter's name inside Cassandra, used in keyspace replication.
	// Default: name. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[A-Za-z0-9_.-]+$')`,messageExpression=`'datacenterName "' + self + '" must have only letters, digits, underscores, dots and hyphens'`
	DatacenterName string `json:"datacenterName,omitempty"`

	// NodesPerRack is the number of nodes of each rack that does not say otherwise. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	NodesPerRack int32 `json:"nodesPerRack,omitempty"`

	// NumTokens is Cassandra's num_tokens for each node, 1 to 256. Default: 16. Immutable once the
	// datacenter has nodes.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	NumTokens int32 `json:"numTokens,omitempty"`

	// PlannedReplicationFactor is the number of copies that keyspaces will have in this
	// datacenter. It steers token allocation, the system keyspaces (with fewer nodes: their number)
	// and what the guards advise. It changes no keyspace of the user. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	PlannedReplicationFactor int32 `json:"plannedReplicationFactor,omitempty"`

	// Extend says what is replicated to a datacenter that joins a cluster which already has data.
	// +optional
	Extend *Extend `json:"extend,omitempty"`

	// Withdraw has keyspaces lose their replicas here, before the datacenter is taken out of the
	// spec: client traffic of the datacenter is closed, what its nodes keep for others is
	// delivered, the keyspaces are repaired, and then altered. Taken back, client traffic opens
	// again, and the keyspaces stay as they are then.
	// +optional
	Withdraw *Withdraw `json:"withdraw,omitempty"`

	// Stopped has all nodes of the datacenter stopped in order, and their pods deleted, for as long
	// as it is true, while the others serve: client traffic is closed there, hints and batches of
	// its nodes are delivered, and all are drained together. Volumes, records and services stay.
	// Taken back, all start together. The others go on without them: what they miss for longer than
	// hints are kept has to be repaired, and beyond the smallest gc_grace_seconds of any table each
	// starts only by a person's word.
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// RestartedAt asks for one restart of every JVM of the datacenter, one after the other: any
	// time, such as now. Of cluster, datacenter and rack the latest counts; a node restarts once
	// for a value.
	// +optional
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`

	// Racks of the datacenter, 1 to 20. Each should be a failure domain of its own, such as a zone.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Racks []Rack `json:"racks"`

	// AllowFewerRacks lets the last node of a rack leave even if the datacenter has fewer racks
	// then than a keyspace has replicas: nodes of one rack hold two replicas of a row, and both are
	// down with it.
	// +optional
	AllowFewerRacks bool `json:"allowFewerRacks,omitempty"`

	// Node overrides what the cluster says about its nodes.
	// +optional
	Node *NodeTemplate `json:"node,omitempty"`
}

// Extend says what is replicated to a datacenter that joins a cluster which already has data.
type Extend struct {
	// Keyspaces that get replicas here. The system keyspaces always do.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Keyspaces []ExtendedKeyspace `json:"keyspaces,omitempty"`

	// All gives replicas here to every keyspace that has NetworkTopologyStrategy when the nodes of
	// the datacenter begin to join, at most 64. Those named in keyspaces can have a
	// replicationFactor of their own.
	// +optional
	All bool `json:"all,omitempty"`

	// From is the name of the datacenter whose replicas are copied. Default: the first one.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	From string `json:"from,omitempty"`

	// LocalConsistencyOnly declares that clients use LOCAL_* consistency levels until the data is
	// complete. Without it keyspaces that need more are not extended.
	// +optional
	LocalConsistencyOnly bool `json:"localConsistencyOnly,omitempty"`
}

// ExtendedKeyspace is a keyspace that gets replicas in a datacenter that joins.
type ExtendedKeyspace struct {
	// Name of the keyspace in Cassandra.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9_]+$')`,messageExpression=`'keyspace "' + self + '" must have only letters, digits and underscores'`
	Name string `json:"name"`

	// ReplicationFactor is the number of replicas that it gets in the datacenter, 1 to 9, and at
	// most one on each node. Default: plannedReplicationFactor of the datacenter.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	ReplicationFactor int32 `json:"replicationFactor,omitempty"`
}

// Withdraw says which keyspaces lose their replicas in a datacenter. The system keyspaces do when
// its nodes leave.
//
// +kubebuilder:validation:XValidation:rule=`has(self.all) && self.all || has(self.keyspaces) && size(self.keyspaces) > 0`,message=`withdraw must name keyspaces, or have all: true`
type Withdraw struct {
	// Keyspaces that lose their replicas here, by their names in Cassandra. One that has none, or
	// that does not exist, is passed over.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// All takes the replicas here from every keyspace that has NetworkTopologyStrategy.
	// +optional
	All bool `json:"all,omitempty"`
}

// Rack is one rack of a datacenter: the unit of placement, inheritance and rolling.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.rackName) && self.rackName != "" ? self.rackName : self.name) == (has(oldSelf.rackName) && oldSelf.rackName != "" ? oldSelf.rackName : oldSelf.name)`,messageExpression=`'rackName of rack ' + self.name + ' cannot be changed: the disks of its nodes refer to it'`
type Rack struct {
	// Name is part of the names of pods. Same form as a datacenter's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z][a-z0-9]*$')`,messageExpression=`'name "' + self + '" must be a lower-case letter followed by lower-case letters and digits; hyphens are not allowed, since names of pods would be ambiguous. Use rackName for the name inside Cassandra'`
	Name string `json:"name"`

	// RackName is the rack's name inside Cassandra. Default: name. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[A-Za-z0-9_.-]+$')`,messageExpression=`'rackName "' + self + '" must have only letters, digits, underscores, dots and hyphens'`
	RackName string `json:"rackName,omitempty"`

	// Nodes overrides nodesPerRack of the datacenter.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Nodes *int32 `json:"nodes,omitempty"`

	// RestartedAt asks for one restart of every JVM of the rack, one after the other: any time,
	// such as now. Of cluster, datacenter and rack the latest counts; a node restarts once for a
	// value.
	// +optional
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`

	// Node overrides what cluster and datacenter say about the nodes. The overlay cannot differ
	// between racks.
	// +optional
	Node *NodeSettings `json:"node,omitempty"`
}

// Services that lead to the nodes. A change is made to the live objects; what others have added to
// them stays.
type Services struct {
	// IPFamilies of all services: one or both of IPv4 and IPv6, the first being the main one. With
	// another main one the services are made anew. Default: that of the Kubernetes cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	IPFamilies []IPFamily `json:"ipFamilies,omitempty"`

	// Nodes is the headless service of all pods, by which each gets its DNS name.
	// +optional
	Nodes *Metadata `json:"nodes,omitempty"`

	// Clients is the service of the ready pods of each datacenter.
	// +optional
	Clients *ClientService `json:"clients,omitempty"`
}

// ClientService is the service of the ready pods of a datacenter.
type ClientService struct {
	// Type of the service. Default: ClusterIP.
	// +optional
	Type ServiceType `json:"type,omitempty"`

	Metadata `json:",inline"`
}

// Metadata is added to an object. Keys of helenus.io and app.kubernetes.io are refused.
type Metadata struct {
	// Labels of the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !k.matches('(^|[.])(helenus[.]io|app[.]kubernetes[.]io)/'))`,message=`labels of helenus.io and app.kubernetes.io are set by Helenus`
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the object.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !k.matches('(^|[.])(helenus[.]io|app[.]kubernetes[.]io)/'))`,message=`annotations of helenus.io and app.kubernetes.io are set by Helenus`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Bootstrap is what a cluster begins with. Exactly one of its fields is set.
//
// +kubebuilder:validation:XValidation:rule=`has(self.adopt) != has(self.restore)`,message=`bootstrap must have exactly one field: adopt or restore`
// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`bootstrap cannot be changed: the disks were taken over or filled by it; delete the cluster (with volumes.onClusterDeletion: Retain) and create it again`
type Bootstrap struct {
	// Adopt begins with the disks that an earlier cluster of the same name has left.
	// +optional
	Adopt *Adoption `json:"adopt,omitempty"`

	// Restore begins with what a backup holds. Where names of datacenters and racks, the nodes of
	// each rack or numTokens are others than in the backup, the rows are streamed to their owners.
	// +optional
	Restore *Restore `json:"restore,omitempty"`
}

// Restore begins with what a backup holds.
//
// +kubebuilder:validation:XValidation:rule=`[has(self.backup), has(self.latestBefore), has(self.pointInTime)].filter(f, f).size() == 1`,message=`restore must have exactly one of backup, latestBefore and pointInTime`
type Restore struct {
	// Store is the CassandraBackupStore with the backup, in the namespace of the cluster.
	// +required
	Store StoreReference `json:"store"`

	// Source is the cluster of which the backup was taken.
	// +required
	Source RestoreSource `json:"source"`

	// Backup is its id.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9][A-Za-z0-9._-]*$')`,messageExpression=`'backup "' + self + '" must be the id of a backup: letters, digits, dots, underscores and hyphens'`
	Backup string `json:"backup,omitempty"`

	// LatestBefore takes the latest complete backup whose last snapshot was taken before a time. It
	// is looked for once, before the ring forms.
	// +optional
	LatestBefore *metav1.Time `json:"latestBefore,omitempty"`

	// PointInTime makes the ring as it was at a time, from the latest backup before it, in its
	// shape, and the commit logs since then. They must cover it.
	// +optional
	PointInTime *metav1.Time `json:"pointInTime,omitempty"`

	// Keyspaces of users that come back, at most 64. Default: all of the backup. Those that do not
	// are not in the schema of the ring either.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	// +kubebuilder:validation:XValidation:rule=`self.all(k, k != 'system' && !k.startsWith('system_'))`,message=`keyspaces: those of Cassandra itself come back in any case, and are not named`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// Checks are queries whose answers the ring must give before it serves clients, at most 16.
	// Default: none is asked.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Checks []RowCheck `json:"checks,omitempty"`

	// Roles says whose roles the ring has: its own, as any new ring (Fresh), or those of the backup
	// with their passwords (Restore, for the shape of the backup). Its superuser and Helenus have
	// those of their Secrets either way.
	// +optional
	// +kubebuilder:default=Fresh
	Roles RestoredRoles `json:"roles,omitempty"`

	// SourceGone says that no node of the source will ever run again. It is needed for a cluster
	// with the same clusterName as the source: Cassandra takes nodes of one name for one ring.
	// +optional
	SourceGone bool `json:"sourceGone,omitempty"`
}

// RowCheck is a query, and what its answer must be.
type RowCheck struct {
	// Query is a SELECT in CQL. It is asked as the superuser, at QUORUM, and may take an hour.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[Ss][Ee][Ll][Ee][Cc][Tt][ \\t\\n]')`,message=`query must be a SELECT, such as SELECT count(*) FROM shop.orders`
	Query string `json:"query"`

	// AtLeast is the smallest number that may be in the first column of the first row, such as that
	// of count(*) or of max(writetime(total)) in microseconds. Default: there must be a row.
	// +optional
	AtLeast *int64 `json:"atLeast,omitempty"`
}

// What it begins with, for people.
func (r *Restore) What() string {
	switch {
	case r.LatestBefore != nil:
		return "the latest backup before " + r.LatestBefore.UTC().Format(time.RFC3339)
	case r.PointInTime != nil:
		return "time " + r.PointInTime.UTC().Format(time.RFC3339)
	}
	return "backup " + r.Backup
}

// RestoredRoles says whose roles a restored ring has.
//
// +kubebuilder:validation:Enum=Fresh;Restore
type RestoredRoles string

// The roles of a restored ring.
const (
	RolesFresh   RestoredRoles = "Fresh"
	RolesRestore RestoredRoles = "Restore"
)

// StoreReference names a CassandraBackupStore of the namespace.
type StoreReference struct {
	// Name of the store.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RestoreSource is the cluster of which a backup was taken.
type RestoreSource struct {
	// UID is its metadata.uid: a store keeps each cluster below that.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,messageExpression=`'uid "' + self + '" must be the metadata.uid of the cluster that the backup was taken of'`
	UID types.UID `json:"uid"`
}

// Adoption begins with the disks that an earlier cluster of the same name has left.
type Adoption struct {
	// ClusterUID is the metadata.uid of the earlier cluster, which its claims have as the label
	// helenus.io/cluster-uid.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,messageExpression=`'clusterUID "' + self + '" must be the metadata.uid of the earlier cluster'`
	ClusterUID types.UID `json:"clusterUID"`
}

// AdoptedUID is the uid of the earlier cluster whose disks are taken over, or empty.
func (s *CassandraClusterSpec) AdoptedUID() types.UID {
	if s.Bootstrap == nil || s.Bootstrap.Adopt == nil {
		return ""
	}
	return s.Bootstrap.Adopt.ClusterUID
}

// Restore is the backup that the cluster begins with; nil if it begins with none.
func (s *CassandraClusterSpec) Restore() *Restore {
	if s.Bootstrap == nil {
		return nil
	}
	return s.Bootstrap.Restore
}
