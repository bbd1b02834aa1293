package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CassandraNode is the record of one ring member, named like its pod. The operator writes the spec:
// what the node is and what is wanted of it. The agent in its pod writes the status: what is.
// Nobody else writes either, and only the operator deletes a record.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cassnode,categories=helenus
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Traffic",type=string,JSONPath=`.status.clientTraffic`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts.count`
// +kubebuilder:printcolumn:name="Host ID",type=string,priority=1,JSONPath=`.status.hostID`
// +kubebuilder:printcolumn:name="Disk",type=string,priority=1,JSONPath=`.status.disk`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.startsWith(self.spec.cluster.name + '-' + self.spec.datacenter + '-' + self.spec.rack + '-') && self.metadata.name.matches('-(0|[1-9][0-9]{0,2})$') && int(self.metadata.name.substring(self.metadata.name.lastIndexOf('-') + 1)) == self.spec.ordinal`,messageExpression=`'metadata.name "' + self.metadata.name + '" must be ' + self.spec.cluster.name + '-' + self.spec.datacenter + '-' + self.spec.rack + '-' + '<ordinal>'`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.spec.join) || has(self.spec.join) && self.spec.join.id == oldSelf.spec.join.id || has(oldSelf.spec.join.withdraw) && has(oldSelf.spec.join.withdraw.podGone) || has(oldSelf.status) && has(oldSelf.status.join) && oldSelf.status.join.id == oldSelf.spec.join.id && (has(oldSelf.status.join.finishedAt) || has(oldSelf.status.join.withdrawnAt))`,message=`spec.join cannot be exchanged or taken away: the status does not show the old id finished or withdrawn`
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.join) || has(oldSelf.spec.join) && oldSelf.spec.join.id == self.spec.join.id || !has(oldSelf.status) || !has(oldSelf.status.join) || oldSelf.status.join.id != self.spec.join.id`,message=`spec.join needs an id of its own: the status shows this id as used, and an id takes effect once`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.spec.restart) || has(self.spec.restart) && self.spec.restart.id == oldSelf.spec.restart.id || has(oldSelf.spec.restart.withdraw) && has(oldSelf.spec.restart.withdraw.podGone) || has(oldSelf.status) && has(oldSelf.status.restart) && oldSelf.status.restart.id == oldSelf.spec.restart.id && (has(oldSelf.status.restart.finishedAt) || has(oldSelf.status.restart.withdrawnAt))`,message=`spec.restart cannot be exchanged or taken away: the status does not show the old id finished or withdrawn`
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.restart) || has(oldSelf.spec.restart) && oldSelf.spec.restart.id == self.spec.restart.id || !has(oldSelf.status) || !has(oldSelf.status.restart) || oldSelf.status.restart.id != self.spec.restart.id`,message=`spec.restart needs an id of its own: the status shows this id as used, and an id takes effect once`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.spec.operations) || oldSelf.spec.operations.all(o, has(self.spec.operations) && self.spec.operations.exists(n, n.id == o.id) || has(o.withdraw) && has(o.withdraw.podGone) || has(oldSelf.status) && has(oldSelf.status.operations) && oldSelf.status.operations.exists(s, s.id == o.id && s.phase != 'Running'))`,message=`spec.operations: an operation cannot be taken away before the status shows its id finished or withdrawn`
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.operations) || !has(oldSelf.status) || !has(oldSelf.status.operations) || self.spec.operations.all(n, has(oldSelf.spec.operations) && oldSelf.spec.operations.exists(o, o.id == n.id) || oldSelf.status.operations.all(s, s.id != n.id))`,message=`spec.operations: a new operation needs an id of its own: the status shows this id as used, and an id takes effect once`
// +kubebuilder:validation:XValidation:rule=`oldSelf.spec.state != 'Decommissioned' || self.spec.state == 'Decommissioned' || !has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in ['Leaving', 'Left'])`,message=`spec.state: the node is leaving the ring or has left it, which cannot be taken back`
type CassandraNode struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what the node is and what is wanted of it. Only the operator writes it.
	// +required
	Spec CassandraNodeSpec `json:"spec"`
	// Status is what the agent found and did. Only the agent of the present pod writes it.
	// +optional
	Status CassandraNodeStatus `json:"status,omitzero"`
}

// CassandraNodeList is a list of node records.
//
// +kubebuilder:object:root=true
type CassandraNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CassandraNode `json:"items"`
}

// CassandraNodeSpec is what a node is and what is wanted of it.
//
// Join, restart and operations are intents: each has an id, takes effect at most once per id, and
// may be exchanged for another (or taken away) only when the status shows the old one finished or
// withdrawn.
//
// +kubebuilder:validation:XValidation:rule=`self.cluster.name == oldSelf.cluster.name && self.cluster.uid == oldSelf.cluster.uid && self.datacenter == oldSelf.datacenter && self.rack == oldSelf.rack && self.ordinal == oldSelf.ordinal`,message=`cluster, datacenter, rack and ordinal cannot be changed: they are what the node is`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.member) || has(self.member) && self.member.hostID == oldSelf.member.hostID || has(self.replaced) && self.replaced.exists(r, r.hostID == oldSelf.member.hostID)`,message=`member can be taken away, or get another hostID, only with the old one in replaced`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.replaced) || has(self.replaced) && oldSelf.replaced.all(o, self.replaced.exists(r, r.hostID == o.hostID))`,message=`replaced: entries cannot be taken away, since a replaced member must never start again`
// +kubebuilder:validation:XValidation:rule=`!has(self.member) || !has(self.replaced) || self.replaced.all(r, r.hostID != self.member.hostID) || has(self.join) && self.join.mode == 'Replace'`,message=`member.hostID is in replaced: a replaced member must never start again`
// +kubebuilder:validation:XValidation:rule=`!has(self.join) || !has(self.member) || self.join.mode == 'Replace'`,message=`join: a member can only be replaced; it never joins as a new node`
// +kubebuilder:validation:XValidation:rule=`!has(self.join) || !has(self.join.replace) || has(self.replaced) && self.replaced.exists(r, r.hostID == self.join.replace.hostID)`,message=`join.replace.hostID must be in replaced, so that the old member never starts again`
// +kubebuilder:validation:XValidation:rule=`!has(self.join) || !has(self.join.tokens) || size(self.join.tokens) == 0 || size(self.join.tokens) == self.configuration.numTokens`,message=`join.tokens must be as many as configuration.numTokens says`
// +kubebuilder:validation:XValidation:rule=`!has(self.join) || self.clientTraffic == 'Closed'`,message=`clientTraffic must be Closed while the node has a ticket to join`
// +kubebuilder:validation:XValidation:rule=`has(self.member) || self.clientTraffic == 'Closed'`,message=`clientTraffic must be Closed until the node is a member`
type CassandraNodeSpec struct {
	// Cluster the node belongs to. Immutable.
	// +required
	Cluster ClusterReference `json:"cluster"`

	// Datacenter is the name (not the name inside Cassandra) of its datacenter. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Datacenter string `json:"datacenter"`

	// Rack is the name (not the name inside Cassandra) of its rack. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Rack string `json:"rack"`

	// Ordinal of the node in its rack, from 0. Immutable.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	Ordinal int32 `json:"ordinal"`

	// Claims are the persistent volume claims of the node, by uid. Another uid under the same name
	// is a lost disk, not a new one.
	// +optional
	// +listType=map
	// +listMapKey=volume
	// +kubebuilder:validation:MaxItems=8
	Claims []ClaimReference `json:"claims,omitempty"`

	// Member is set once the node was seen as a member of the ring, copied from what was seen. A
	// node that has it never joins as a new one.
	// +optional
	Member *Member `json:"member,omitempty"`

	// Replaced are the former members that this node has taken the place of. They never start
	// again. Entries are only added.
	// +optional
	// +listType=map
	// +listMapKey=hostID
	// +kubebuilder:validation:MaxItems=128
	Replaced []ReplacedMember `json:"replaced,omitempty"`

	// State that is wanted.
	// +required
	State NodeState `json:"state"`

	// StopNotAfter is the time after which the agent does not begin to stop a JVM that runs for the
	// state Stopped.
	// +optional
	StopNotAfter *metav1.Time `json:"stopNotAfter,omitempty"`

	// AgentStartedAfter has an agent that started before this time end, by the clock of its own
	// host: the kubelet starts its container again, with the image that the pod has then. A kubelet
	// before 1.32 restarts no sidecar whose image has changed.
	// +optional
	AgentStartedAfter *metav1.Time `json:"agentStartedAfter,omitempty"`

	// Join is the ticket to join the ring. Without it a node that is no member by its disk gets
	// ready and waits. It leaves the record when it is done.
	// +optional
	Join *JoinTicket `json:"join,omitempty"`

	// Debug has a member stopped for a person to look into its pod: an exception of the cluster.
	// +optional
	Debug *Debug `json:"debug,omitempty"`

	// StartAnyway lets a member start that was down for longer than deletions are kept: by an
	// exception of the cluster, or since no other member was NORMAL for that long meanwhile.
	// +optional
	StartAnyway *StartAnyway `json:"startAnyway,omitempty"`

	// Repaired are the entries of status.repairDue that are over: all that the node holds was
	// repaired since, range by range.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=8
	Repaired []RepairDue `json:"repaired,omitempty"`

	// ClientTraffic is for whom the native transport (CQL) is to be open.
	// +required
	// +kubebuilder:validation:Enum=Closed;Administrative;Open
	ClientTraffic ClientTraffic `json:"clientTraffic"`

	// Disruption bounds what may be down with this node when it is taken down. The agent holds to
	// it at the moment of effect.
	// +required
	Disruption NodeDisruption `json:"disruption"`

	// TableMetrics bounds the metrics of tables. It holds from the next scrape on.
	// +optional
	TableMetrics *TableMetrics `json:"tableMetrics,omitempty"`

	// ExtraMetrics are metrics beside those of the guide's list, from the next scrape on.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	ExtraMetrics []MetricPattern `json:"extraMetrics,omitempty"`

	// Configuration is the effective input of the user for this node.
	// +required
	Configuration NodeConfiguration `json:"configuration"`

	// Pod is the effective input of the user for the node's pod and volumes.
	// +required
	Pod PodSettings `json:"pod"`

	// Resized says that a pod was resized in place to what pod describes. It holds for that pod
	// alone.
	// +optional
	Resized *ResizedPod `json:"resized,omitempty"`

	// Restart is the intent to restart the JVM once, inside its container.
	// +optional
	Restart *RestartIntent `json:"restart,omitempty"`

	// CommitLog is where the commit log of the member is kept. Not set: nowhere.
	// +optional
	CommitLog *CommitLogArchive `json:"commitLog,omitempty"`

	// Operations to run, each once. The agent begins them in this order; those that do not conflict
	// run side by side.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=4
	Operations []OperationIntent `json:"operations,omitempty"`
}

// CommitLogArchive is where and how the commit log of a member is kept.
type CommitLogArchive struct {
	// Store that it is put into.
	// +required
	Store BackupStoreSpec `json:"store"`

	// UploadEvery is how often what has grown is sent.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	UploadEvery metav1.Duration `json:"uploadEvery"`

	// MaxDisk is the share of its volume, in percent, that segments may have which Cassandra needs
	// no more and which were not sent.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	MaxDisk int32 `json:"maxDisk"`
}

// ResizedPod is what a pod is that was resized in place after it was made. What its containers were
// told in their environment is outdated until they start again.
type ResizedPod struct {
	// PodUID of the pod that was resized.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	PodUID types.UID `json:"podUID"`

	// PodTemplate is the hash of what the pod is now, in place of its annotation
	// helenus.io/template-hash.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PodTemplate string `json:"podTemplate"`

	// MemoryLimit of the Cassandra container; not set if it has none.
	// +optional
	MemoryLimit *resource.Quantity `json:"memoryLimit,omitempty"`

	// Restart is the id of the restart by which the JVM takes the memory over, or an unknown one,
	// until that is over; empty if none is needed.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Restart string `json:"restart,omitempty"`
}

// Of says that a pod was resized, and is what this says.
func (r *ResizedPod) Of(pod types.UID) bool { return r != nil && r.PodUID == pod }

// Owes says that the JVM in a pod that was resized has not taken the memory over yet.
func (r *ResizedPod) Owes(pod types.UID) bool { return r.Of(pod) && r.Restart != "" }

// NodeDisruption is what the cluster's disruption policy means for one node.
type NodeDisruption struct {
	// Consistency is the level that every range which can be protected keeps.
	// +required
	Consistency ConsistencyLevel `json:"consistency"`

	// Unprotected says whether the node may be taken down if it holds ranges that no order of
	// restarts can protect. Proceed if it is not set.
	// +optional
	Unprotected UnprotectedPolicy `json:"unprotected,omitempty"`
}

// Debug has a member stopped in order, under the same guard as any stop, until a time.
type Debug struct {
	// Reason of the person who asks for it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`

	// Until when. After that the node starts again, whatever else the record says.
	// +required
	Until metav1.Time `json:"until"`
}

// StartAnyway is for one member, until a time.
type StartAnyway struct {
	// HostID of the member.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	HostID string `json:"hostID"`

	// Reason for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`

	// Until when a start may begin.
	// +required
	Until metav1.Time `json:"until"`
}

// ClusterReference names a cluster as one object, not merely by its name.
type ClusterReference struct {
	// Name of the CassandraCluster, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// UID of the CassandraCluster.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	UID types.UID `json:"uid"`

	// AdoptedUID is the uid of the earlier cluster whose disks this one takes over (bootstrap.adopt
	// of the cluster). A marker of that cluster on the disk is rewritten instead of being taken as
	// foreign.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	AdoptedUID types.UID `json:"adoptedUID,omitempty"`
}

// ClaimReference is one claim of a node.
type ClaimReference struct {
	// Volume is data, commitlog, or the name of an additional volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Volume string `json:"volume"`

	// Name of the claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID of the claim.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	UID types.UID `json:"uid"`
}

// Member is the identity of a node in the ring.
type Member struct {
	// HostID is the identity Cassandra gave the node, kept on its disk.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,messageExpression=`'hostID "' + self + '" must be a lower-case UUID'`
	HostID string `json:"hostID"`
}

// ReplacedMember is a former member whose place a node has taken.
type ReplacedMember struct {
	// HostID of the former member.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,messageExpression=`'hostID "' + self + '" must be a lower-case UUID'`
	HostID string `json:"hostID"`

	// Address it last had.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`

	// ClaimUID of its data volume.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	ClaimUID types.UID `json:"claimUID,omitempty"`
}

// NodeConfiguration is the effective input of the user for one node, after inheritance and
// defaults: all the agent needs to render the configuration, in one atomic read. What the hash of
// these fields says is what makes a restart necessary.
type NodeConfiguration struct {
	// Revision of the rules by which the agent renders. Pinned here, so that a newer Helenus
	// changes no running node.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int32 `json:"revision"`

	// Version of Cassandra that the pod's image has. It decides which settings are known.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version"`

	// ClusterName is Cassandra's cluster_name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ClusterName string `json:"clusterName"`

	// DatacenterName is the datacenter's name inside Cassandra.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DatacenterName string `json:"datacenterName"`

	// RackName is the rack's name inside Cassandra.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	RackName string `json:"rackName"`

	// NumTokens is num_tokens.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	NumTokens int32 `json:"numTokens"`

	// Authentication of the node; empty in a ring that was made without by an earlier release of
	// Helenus. With it, no start of the node makes Cassandra's default superuser.
	// +optional
	Authentication AuthenticationMode `json:"authentication,omitempty"`

	// Encryption of the stage that the ring is in; nil in a ring that was made by an earlier
	// release of Helenus, and was not asked to encrypt since: nothing is encrypted there.
	// +optional
	Encryption *NodeEncryption `json:"encryption,omitempty"`

	// CassandraYaml are the user's settings of cassandra.yaml, without nulls.
	// +optional
	CassandraYaml Settings `json:"cassandraYaml,omitempty"`

	// JVM settings of the user.
	// +optional
	JVM *JVM `json:"jvm,omitempty"`

	// Environment variables of Cassandra.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Environment []EnvironmentVariable `json:"environment,omitempty"`

	// RestartedAt is the latest restart that the user asked for. A JVM that was started without it
	// needs one.
	// +optional
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`
}
