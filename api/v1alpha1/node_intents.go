package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Intent is what every one-shot intent has.
type Intent struct {
	// ID is unique for ever. An id takes effect at most once.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id"`

	// NotAfter is the time after which the agent does not begin it any more, and reports it
	// withdrawn.
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// Withdraw asks the agent not to begin. The agent reports withdrawnAt if it had not begun;
	// otherwise it continues to the end. A join that has begun ends as well, as long as the node
	// has not joined, and so does an operation by withdraw.cancel.
	// +optional
	Withdraw *Withdrawal `json:"withdraw,omitempty"`
}

// Withdrawal takes an intent back.
type Withdrawal struct {
	// Reason for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`

	// PodGone is the uid of the pod that was given the intent and of which it is proven that none
	// of its containers runs any more. With it the acknowledgement of the agent is not waited for.
	// The word forgotten stands for a pod of which only that is known.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=36
	PodGone types.UID `json:"podGone,omitempty"`

	// Cancel also ends an operation that has begun, where Cassandra can end it: else before its
	// next keyspace.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// JoinTicket allows a node to join the ring, once.
//
// +kubebuilder:validation:XValidation:rule=`self.mode != 'New' || has(self.tokens) && size(self.tokens) > 0`,message=`tokens are required for mode New: nodes that start together must not choose their own`
// +kubebuilder:validation:XValidation:rule=`(self.mode == 'Replace') == has(self.replace)`,message=`replace is required for mode Replace, and not allowed for the others`
// +kubebuilder:validation:XValidation:rule=`self.mode != 'Replace' || !has(self.tokens) || size(self.tokens) == 0`,message=`tokens are not allowed for mode Replace: the node takes those of the dead member`
// +kubebuilder:validation:XValidation:rule=`self.mode == 'New' || !has(self.systemAuthReplicationFactor)`,message=`systemAuthReplicationFactor is for mode New alone`
// +kubebuilder:validation:XValidation:rule=`self.mode in ['Bootstrap', 'Replace'] || !has(self.wipe)`,message=`wipe is for the modes Bootstrap and Replace alone: only a join that streams is restarted on a wiped disk`
// +kubebuilder:validation:XValidation:rule=`self.mode == 'New' || !has(self.restore)`,message=`restore is for mode New alone`
// +kubebuilder:validation:XValidation:rule=`self.id != oldSelf.id || !has(oldSelf.wipe) || has(self.wipe)`,message=`wipe cannot be withdrawn: the agent may have begun`
// +kubebuilder:validation:XValidation:rule=`self.id != oldSelf.id || self.mode == oldSelf.mode && has(self.tokens) == has(oldSelf.tokens) && (!has(self.tokens) || self.tokens == oldSelf.tokens) && has(self.replace) == has(oldSelf.replace) && (!has(self.replace) || self.replace == oldSelf.replace) && has(self.restore) == has(oldSelf.restore) && (!has(self.restore) || self.restore == oldSelf.restore) && has(self.notAfter) == has(oldSelf.notAfter) && (!has(self.notAfter) || self.notAfter == oldSelf.notAfter)`,message=`a ticket cannot be changed under its id: an id means one thing`
type JoinTicket struct {
	Intent `json:",inline"`

	// Mode of joining.
	// +required
	Mode JoinMode `json:"mode"`

	// Tokens the node takes, decimal, each from -9223372036854775808 to 9223372036854775807.
	// Required for New, allowed for Bootstrap, not for Replace, which takes those of the dead
	// member.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=20
	// +kubebuilder:validation:items:Pattern=`^-?[0-9]{1,19}$`
	Tokens []string `json:"tokens,omitempty"`

	// Replace names the dead member. For the mode Replace alone.
	// +optional
	Replace *ReplaceTarget `json:"replace,omitempty"`

	// SystemAuthReplicationFactor is the replication factor with which this node creates
	// system_auth if it is the first to do so (-Dcassandra.system_auth.default_rf). For the mode
	// New alone.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	SystemAuthReplicationFactor int32 `json:"systemAuthReplicationFactor,omitempty"`

	// Restore says what the disk is filled with before the first start. For the mode New alone.
	// +optional
	Restore *DiskRestore `json:"restore,omitempty"`

	// Wipe is an id by which the agent may remove, once, what earlier attempts of this join have
	// streamed: on a disk that says that the join is unfinished, and of which no other node sees
	// the host id as that of a member. For the modes Bootstrap and Replace alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=160
	Wipe string `json:"wipe,omitempty"`
}

// DiskRestore is what one node had in a backup, or for a ring of another shape the schema alone.
type DiskRestore struct {
	// Store with the backup.
	// +required
	Store BackupStoreSpec `json:"store"`

	// Cluster is the uid of the one that the backup was taken of.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	Cluster types.UID `json:"cluster"`

	// Backup is its id.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Backup string `json:"backup"`

	// HostID of the node in the backup.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	HostID string `json:"hostID"`

	// Roles that the ring gets.
	// +required
	Roles RestoredRoles `json:"roles"`

	// Datacenters are those of a ring of another shape than that of the backup, by their names
	// inside Cassandra, with the number of their nodes: the disk gets the schema, with replicas in
	// these, and rows are loaded when all nodes have joined. Not set for the same shape.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule=`self.all(d, self[d] >= 1)`,message=`datacenters: each needs a node`
	Datacenters map[string]int32 `json:"datacenters,omitempty"`

	// Keyspaces of users that come back. Not set: all of the backup.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]+$`
	Keyspaces []string `json:"keyspaces,omitempty"`

	// PointInTime up to which the node's commit log in the store is replayed at the first start;
	// not set for none.
	// +optional
	PointInTime *metav1.Time `json:"pointInTime,omitempty"`
}

// ReplaceTarget names the dead member whose place is taken.
type ReplaceTarget struct {
	// HostID of the dead member.
	// +required
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,messageExpression=`'hostID "' + self + '" must be a lower-case UUID'`
	HostID string `json:"hostID"`

	// Address of the dead member as the ring knows it.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address"`
}

// RestartIntent restarts the JVM once: drain, stop, start, in the same container.
//
// +kubebuilder:validation:XValidation:rule=`self.id != oldSelf.id || has(self.notAfter) == has(oldSelf.notAfter) && (!has(self.notAfter) || self.notAfter == oldSelf.notAfter)`,message=`restart.notAfter cannot be changed under its id: an id means one thing`
type RestartIntent struct {
	Intent `json:",inline"`
}
