package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionPolicy bounds what may be down at the same time.
type DisruptionPolicy struct {
	// Consistency is the level at which every protectable range stays available while nodes are
	// taken down. Default: LocalQuorum.
	// +optional
	// +kubebuilder:default=LocalQuorum
	Consistency ConsistencyLevel `json:"consistency,omitempty"`

	// MaxUnavailable is how many nodes of one rack a roll-out takes down together, as a number or a
	// percentage of the rack. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 1 : self.matches('^([1-9]|[1-9][0-9]|100)%$')`,message=`disruption.maxUnavailable must be a number of nodes from 1, or a percentage of a rack from 1% to 100%`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// Soak is how long the first node of a roll-out serves before others follow. It begins again
	// when its JVM ends. At most 24h. Default: 30s.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('0s') && duration(self) <= duration('24h')`,message=`disruption.soak must be from 0s to 24h`
	Soak *metav1.Duration `json:"soak,omitempty"`

	// HoldAfter has a roll-out wait for a person after its first node, or after each rack. The
	// status then says what resume must be.
	// +optional
	HoldAfter HoldAfter `json:"holdAfter,omitempty"`

	// Resume is the hold of a roll-out that a person has ended, as status.blocked names it. Any
	// later hold has another name.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Resume string `json:"resume,omitempty"`

	// Unprotected says whether nodes may be taken down that hold ranges which no order of restarts
	// can protect: those of keyspaces with too few replicas. Default: Proceed, one at a time.
	// +optional
	// +kubebuilder:default=Proceed
	Unprotected UnprotectedPolicy `json:"unprotected,omitempty"`
}

// ReplacementPolicy says how members are replaced whose disks or hosts are lost.
type ReplacementPolicy struct {
	// Mode: Automatic replaces a member that is lost; Recommend says so in status.recommended, and
	// a person asks for it. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Mode Automation `json:"mode,omitempty"`

	// After is how long a member must have been lost, with no other member seeing it up: from 10m
	// to 168h. Default: 15m.
	// +optional
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('10m') && duration(self) <= duration('168h')`,message=`replacement.after must be from 10m to 168h: for ten minutes a member that nobody hears may start again by itself`
	After *metav1.Duration `json:"after,omitempty"`

	// Repair: Before repairs the other replicas of what the member had before it is replaced: a
	// replacement takes each range from one replica, and would miss a write that this one has
	// missed. After replaces it at once and recommends its repair. While a further member is down
	// it is always After. Default: Before.
	// +optional
	// +kubebuilder:default=Before
	Repair ReplacementRepair `json:"repair,omitempty"`
}

// Exception is a person's word about one node, or the ring, for a time.
//
// +kubebuilder:validation:XValidation:rule=`self.type in ['AcceptUnavailable', 'TurnOffPassword', 'OverrideGuard'] || has(self.node) && self.node != "" && has(self.reason) && self.reason != ""`,messageExpression=`'exception ' + self.name + ' of type ' + self.type + ' needs node and reason'`
// +kubebuilder:validation:XValidation:rule=`!(self.type in ['AcceptUnavailable', 'TurnOffPassword', 'OverrideGuard']) || !has(self.node) && has(self.reason) && self.reason != ""`,messageExpression=`'exception ' + self.name + ' of type ' + self.type + ' needs reason, and takes no node: it is about the ring'`
// +kubebuilder:validation:XValidation:rule=`(self.type == 'OverrideGuard') == has(self.guard)`,messageExpression=`'exception ' + self.name + ' of type ' + self.type + (has(self.guard) ? ' takes no guard: it is for OverrideGuard alone' : ' needs guard: the one that is overruled')`
// +kubebuilder:validation:XValidation:rule=`self.type != 'StartAnyway' || has(self.hostID)`,messageExpression=`'exception ' + self.name + ' of type StartAnyway needs hostID: the host id of the member that is to start, as status.hostID of its CassandraNode says'`
// +kubebuilder:validation:XValidation:rule=`self.type == 'StartAnyway' || !has(self.hostID)`,messageExpression=`'exception ' + self.name + ' of type ' + self.type + ' takes no hostID: it is for StartAnyway alone'`
// +kubebuilder:validation:XValidation:rule=`(self.type in ['AcceptLoss', 'AcceptUnavailable']) == has(self.keyspace)`,messageExpression=`'exception ' + self.name + ' of type ' + self.type + (has(self.keyspace) ? ' takes no keyspace: it is for AcceptLoss and AcceptUnavailable alone' : ' needs keyspace: the one of which writes may be lost, or that may be unavailable')`
type Exception struct {
	// Name of the exception.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,messageExpression=`'name "' + self + '" of an exception must have only lower-case letters, digits and hyphens, with a letter or digit at both ends'`
	Name string `json:"name"`

	// Type says what is asked for.
	// +required
	Type ExceptionType `json:"type"`

	// Node is the name of the CassandraNode that it is about.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Node string `json:"node,omitempty"`

	// HostID of the member that is to start. For the type StartAnyway alone.
	// +optional
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,messageExpression=`'hostID "' + self + '" must be a lower-case UUID'`
	HostID string `json:"hostID,omitempty"`

	// Keyspace of which writes may be lost, or that may be unavailable. For the types AcceptLoss
	// and AcceptUnavailable alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+$`
	Keyspace string `json:"keyspace,omitempty"`

	// Guard that is overruled. For the type OverrideGuard alone.
	// +optional
	Guard OverridableGuard `json:"guard,omitempty"`

	// Reason for people: it is shown wherever the exception has an effect.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// Until when it holds, at most 7 days ahead. After that it has no effect.
	// +required
	Until metav1.Time `json:"until"`
}

// AutomationPolicy says which follow-up operations run without being asked.
type AutomationPolicy struct {
	// Cleanup removes the data that nodes no longer own, after others have joined. Default:
	// Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Cleanup Automation `json:"cleanup,omitempty"`

	// UpgradeSSTables rewrites SSTables after a change of the format that new ones get. Default:
	// Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	UpgradeSSTables Automation `json:"upgradeSSTables,omitempty"`
}

// RepairPolicy says when tables are repaired: each before any replica forgets a deletion that
// another one has missed.
type RepairPolicy struct {
	// Mode: Automatic repairs every table in time, Recommend says in status.recommended which are
	// due, Off does neither. Default: Automatic, but Recommend for a ring that was formed by a
	// release of Helenus that did not repair.
	// +optional
	Mode RepairMode `json:"mode,omitempty"`

	// Window in which repairs begin. Outside of it only what would pass its deadline is repaired.
	// Default: any time.
	// +optional
	Window *RepairWindow `json:"window,omitempty"`

	// Target is how much of a table's gc_grace_seconds may pass until it is repaired again, from 1%
	// to 90%; a gc_grace of less than a day counts as a day. Default: 80%.
	// +optional
	// +kubebuilder:default="80%"
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([1-9]|[1-8][0-9]|90)%$')`,message=`repair.target must be from 1% to 90%`
	Target string `json:"target,omitempty"`

	// Intensity is in how much of the time repairs run at most while any are due, from 5% to 100%;
	// they pause in the rest. Below 100% they pause for longer as long as half of the time until
	// the first deadline is enough for what is due: down to 0.5% of the time. Default: 50%.
	// +optional
	// +kubebuilder:default="50%"
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([5-9]|[1-9][0-9]|100)%$')`,message=`repair.intensity must be from 5% to 100%`
	Intensity string `json:"intensity,omitempty"`

	// ExcludeTables are not repaired: keyspace.table each.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=97
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_]{1,48}[.][A-Za-z0-9_]{1,48}$`
	ExcludeTables []string `json:"excludeTables,omitempty"`
}

// RepairWindow is a time of every day.
type RepairWindow struct {
	// Start of the window, such as 22:30.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')`,message=`repair.window.start must be a time from 00:00 to 23:59`
	Start string `json:"start"`

	// Duration of the window: from 1h to 24h.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration('1h') && duration(self) <= duration('24h')`,message=`repair.window.duration must be from 1h to 24h`
	Duration metav1.Duration `json:"duration"`

	// TimeZone of the start, by its name in the IANA database, such as Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$') && self.lowerAscii() != 'local'`,message=`timeZone must be a name of the IANA database, such as UTC or Europe/Berlin`
	TimeZone string `json:"timeZone,omitempty"`
}

// VolumePolicy says what becomes of claims.
type VolumePolicy struct {
	// OnClusterDeletion: claims of a deleted cluster. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	OnClusterDeletion ClaimPolicy `json:"onClusterDeletion,omitempty"`

	// OnScaleIn: claims of nodes that were decommissioned, or replaced by a task. A retained claim
	// of a decommissioned node blocks a new node of the same name from joining. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	OnScaleIn ClaimPolicy `json:"onScaleIn,omitempty"`
}
