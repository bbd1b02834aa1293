package v1alpha1

// ConsistencyLevel is a consistency level of Cassandra, in the notation of this API.
//
// +kubebuilder:validation:Enum=One;LocalOne;Two;Three;Quorum;LocalQuorum;EachQuorum;All
type ConsistencyLevel string

// The consistency levels that a disruption can be planned for.
const (
	ConsistencyOne         ConsistencyLevel = "One"
	ConsistencyLocalOne    ConsistencyLevel = "LocalOne"
	ConsistencyTwo         ConsistencyLevel = "Two"
	ConsistencyThree       ConsistencyLevel = "Three"
	ConsistencyQuorum      ConsistencyLevel = "Quorum"
	ConsistencyLocalQuorum ConsistencyLevel = "LocalQuorum"
	ConsistencyEachQuorum  ConsistencyLevel = "EachQuorum"
	// ConsistencyAll leaves no node that may be taken down: every range is unprotectable.
	ConsistencyAll ConsistencyLevel = "All"
)

// HoldAfter is where a roll-out waits for a person.
//
// +kubebuilder:validation:Enum=FirstNode;Rack
type HoldAfter string

const (
	// HoldAfterFirstNode – after the first node, which has served for the soak.
	HoldAfterFirstNode HoldAfter = "FirstNode"
	// HoldAfterRack – after the first node, and after each rack.
	HoldAfterRack HoldAfter = "Rack"
)

// UnprotectedPolicy says what becomes of ranges that no order of restarts can protect.
//
// +kubebuilder:validation:Enum=Proceed;Block
type UnprotectedPolicy string

const (
	// UnprotectedProceed – their nodes are taken down one at a time.
	UnprotectedProceed UnprotectedPolicy = "Proceed"
	// UnprotectedBlock – their nodes are not taken down.
	UnprotectedBlock UnprotectedPolicy = "Block"
)

// ExceptionType is what a person asks for.
//
// +kubebuilder:validation:Enum=Debug;StartAnyway;Repair;Replace;AcceptLoss;AcceptUnavailable;RemoveFirst;RolesReady;TurnOffPassword;OverrideGuard
type ExceptionType string

const (
	// ExceptionDebug – Cassandra on the node is stopped in order as soon as the ring allows it, and
	// its pod stays, for a person to look into it.
	ExceptionDebug ExceptionType = "Debug"
	// ExceptionStartAnyway – a member with the given host id may start although it was down for
	// longer than deletions are kept: rows that were deleted meanwhile can come back.
	ExceptionStartAnyway ExceptionType = "StartAnyway"
	// ExceptionRepair – a repair that is due for the node is carried out.
	ExceptionRepair ExceptionType = "Repair"
	// ExceptionReplace – a replacement that is recommended for the node is carried out.
	ExceptionReplace ExceptionType = "Replace"
	// ExceptionAcceptLoss – the node is replaced although writes of the given keyspace may have
	// been on its disk alone, or on that and on disks of nodes that are down.
	ExceptionAcceptLoss ExceptionType = "AcceptLoss"
	// ExceptionAcceptUnavailable – a datacenter may be stopped although the given keyspace has
	// ranges with replicas there alone. It takes no node.
	ExceptionAcceptUnavailable ExceptionType = "AcceptUnavailable"
	// ExceptionRemoveFirst – the node leaves before others of its rack, once the spec has fewer of
	// them than there are.
	ExceptionRemoveFirst ExceptionType = "RemoveFirst"
	// ExceptionRolesReady – the roles of the applications are made, at the node, which is the first
	// of the ring to ask for passwords: it opens to clients, and others follow.
	ExceptionRolesReady ExceptionType = "RolesReady"
	// ExceptionTurnOffPassword – a ring that asks for passwords may get the authentication mode
	// None: every client that reaches it has all permissions. It takes no node.
	ExceptionTurnOffPassword ExceptionType = "TurnOffPassword"
	// ExceptionOverrideGuard – what the given guard of the operator finds holds nothing back. It
	// takes no node.
	ExceptionOverrideGuard ExceptionType = "OverrideGuard"
)

// OverridableGuard is a reason of status.blocked that a person may overrule. What it protects is
// time, room, or clients that a person knows better; no write that was acknowledged, no disk, no
// release, and not that a node is one process with one identity.
//
// +kubebuilder:validation:Enum=HostCordoned;StreamInProgress;TooLittleDisk;CleanupDue;NoHostHasRoom;PlainClients
type OverridableGuard string

// The guards that can be overruled.
const (
	// OverrideHostCordoned – the pod of a member may be evicted while ranges move: that is refused
	// meanwhile, and its host cannot be drained.
	OverrideHostCordoned OverridableGuard = "HostCordoned"
	// OverrideStreamInProgress – a stream, such as that of a repair by hand, fails when its node
	// restarts, and is to be begun again.
	OverrideStreamInProgress OverridableGuard = "StreamInProgress"
	// OverrideTooLittleDisk – a node that stays fills more of its volume than is thought to be
	// safe: a compaction may not find room.
	OverrideTooLittleDisk OverridableGuard = "TooLittleDisk"
	// OverrideCleanupDue – a node that stays gets ranges back of which it still has what it held
	// before: rows that were deleted since can come back.
	OverrideCleanupDue OverridableGuard = "CleanupDue"
	// OverrideNoHostHasRoom – a pod may not find a host, and its node stays down until it does.
	OverrideNoHostHasRoom OverridableGuard = "NoHostHasRoom"
	// OverridePlainClients – clients that are connected without encryption are cut off.
	OverridePlainClients OverridableGuard = "PlainClients"
)

// ExceptionState is what became of an exception.
//
// +kubebuilder:validation:MaxLength=64
type ExceptionState string

const (
	// ExceptionWaiting – it cannot have its effect yet; message says why.
	ExceptionWaiting ExceptionState = "Waiting"
	// ExceptionActive – the node has been told.
	ExceptionActive ExceptionState = "Active"
	// ExceptionOver – its time is over, and it can be taken out of the spec.
	ExceptionOver ExceptionState = "Over"
	// ExceptionRefused – it has no effect; message says why.
	ExceptionRefused ExceptionState = "Refused"
)

// Automation says who starts an operation that follows from a topology change.
//
// +kubebuilder:validation:Enum=Automatic;Recommend
type Automation string

const (
	// AutomationAutomatic – the operator runs it.
	AutomationAutomatic Automation = "Automatic"
	// AutomationRecommend – it is shown in status.recommended and a person starts it.
	AutomationRecommend Automation = "Recommend"
)

// RepairMode says who repairs the tables of a ring.
//
// +kubebuilder:validation:Enum=Automatic;Recommend;Off
type RepairMode string

const (
	// RepairAutomatic – the operator repairs them before their deadlines.
	RepairAutomatic RepairMode = "Automatic"
	// RepairRecommend – it is shown in status.recommended which are due.
	RepairRecommend RepairMode = "Recommend"
	// RepairOff – the user sees to it.
	RepairOff RepairMode = "Off"
)

// ReplacementRepair says when the data that a lost node had is repaired.
//
// +kubebuilder:validation:Enum=Before;After
type ReplacementRepair string

const (
	// ReplacementRepairBefore – the other replicas are repaired before the node is replaced, which
	// takes each range from one of them.
	ReplacementRepairBefore ReplacementRepair = "Before"
	// ReplacementRepairAfter – the node is replaced at once, and its repair is due then.
	ReplacementRepairAfter ReplacementRepair = "After"
)

// ClaimPolicy says what becomes of the persistent volume claims of nodes that are gone.
//
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimPolicy string

const (
	// ClaimRetain keeps the claims; a later cluster can take them over with bootstrap.adopt.
	ClaimRetain ClaimPolicy = "Retain"
	// ClaimDelete deletes the claims, and with them the data.
	ClaimDelete ClaimPolicy = "Delete"
)

// HostAntiAffinity says whether two nodes of one cluster may share a host.
//
// +kubebuilder:validation:Enum=Required;Preferred;None
type HostAntiAffinity string

const (
	// HostAntiAffinityRequired – never; a pod without a host of its own stays Pending.
	HostAntiAffinityRequired HostAntiAffinity = "Required"
	// HostAntiAffinityPreferred – only where there are too few hosts.
	HostAntiAffinityPreferred HostAntiAffinity = "Preferred"
	// HostAntiAffinityNone – the scheduler is not asked to keep them apart.
	HostAntiAffinityNone HostAntiAffinity = "None"
)

// PullPolicy says when the image of a container is pulled.
//
// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
type PullPolicy string

// The policies of Kubernetes.
const (
	PullAlways       PullPolicy = "Always"
	PullIfNotPresent PullPolicy = "IfNotPresent"
	PullNever        PullPolicy = "Never"
)

// IPFamily is a version of the Internet Protocol.
//
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// The two that there are.
const (
	IPv4 IPFamily = "IPv4"
	IPv6 IPFamily = "IPv6"
)

// ServiceType is how a service can be reached.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

const (
	// ServiceClusterIP – inside the Kubernetes cluster.
	ServiceClusterIP ServiceType = "ClusterIP"
	// ServiceNodePort – also by a port of every host.
	ServiceNodePort ServiceType = "NodePort"
	// ServiceLoadBalancer – also by a load balancer of the cloud.
	ServiceLoadBalancer ServiceType = "LoadBalancer"
)

// AccessMode is the access mode of a persistent volume claim.
//
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod
type AccessMode string

const (
	// AccessReadWriteOnce – pods of one host can write on the volume.
	AccessReadWriteOnce AccessMode = "ReadWriteOnce"
	// AccessReadWriteOncePod – one pod alone can write on the volume.
	AccessReadWriteOncePod AccessMode = "ReadWriteOncePod"
)

// GCLog says where the JVM writes its garbage collection log.
//
// +kubebuilder:validation:Enum=Stdout;File;None
type GCLog string

const (
	// GCLogStdout writes it to the container's log.
	GCLogStdout GCLog = "Stdout"
	// GCLogFile writes it where the image's own options say, a file that the pod loses with its
	// end.
	GCLogFile GCLog = "File"
	// GCLogNone writes none.
	GCLogNone GCLog = "None"
)

// NodeState is what the operator wants of a node.
//
// +kubebuilder:validation:Enum=Running;Stopped;Decommissioned
type NodeState string

const (
	// StateRunning – the JVM runs, once the node has a ticket or is a member by its disk.
	StateRunning NodeState = "Running"
	// StateStopped – drained and stopped in order; the pod may then be deleted. The node stays a
	// member.
	StateStopped NodeState = "Stopped"
	// StateDecommissioned – it has left the ring for good: nothing of it is started any more, and
	// its pod and its record go.
	StateDecommissioned NodeState = "Decommissioned"
)

// JoinMode is how a node becomes a member.
//
// +kubebuilder:validation:Enum=New;Bootstrap;Replace
type JoinMode string

const (
	// JoinNew starts with auto_bootstrap=false and the given tokens, streaming nothing. Only while
	// a datacenter forms and no client was served.
	JoinNew JoinMode = "New"
	// JoinBootstrap streams the ranges of its tokens from the nodes that own them.
	JoinBootstrap JoinMode = "Bootstrap"
	// JoinReplace takes over the tokens of a dead member and streams its data.
	JoinReplace JoinMode = "Replace"
)

// ClientTraffic is for whom the native transport (CQL) of a node is open.
//
// +kubebuilder:validation:MaxLength=64
type ClientTraffic string

const (
	// TrafficClosed – for nobody.
	TrafficClosed ClientTraffic = "Closed"
	// TrafficAdministrative – on the loopback address of the pod alone, for system keyspaces and
	// roles.
	TrafficAdministrative ClientTraffic = "Administrative"
	// TrafficOpen – for clients. A node can be Ready only in this state.
	TrafficOpen ClientTraffic = "Open"
)

// NodePhase is what an agent says about its node in one word.
//
// +kubebuilder:validation:MaxLength=64
type NodePhase string

const (
	// PhaseWaiting – the pod is prepared and no JVM runs, because no ticket is there or the next
	// start waits for something that message names.
	PhaseWaiting NodePhase = "Waiting"
	// PhaseStarting – the JVM was started and has no place in the ring yet.
	PhaseStarting NodePhase = "Starting"
	// PhaseJoining – it is joining by its ticket.
	PhaseJoining NodePhase = "Joining"
	// PhaseNormal – a member, in Cassandra's mode NORMAL.
	PhaseNormal NodePhase = "Normal"
	// PhaseLeaving – it streams its data away.
	PhaseLeaving NodePhase = "Leaving"
	// PhaseLeft – decommissioned; its disk never starts again.
	PhaseLeft NodePhase = "Left"
	// PhaseStopping – it drains and stops.
	PhaseStopping NodePhase = "Stopping"
	// PhaseStopped – stopped in order.
	PhaseStopped NodePhase = "Stopped"
	// PhaseDeferred – it was to be taken down, and the agent's guard said no; blocked says why.
	PhaseDeferred NodePhase = "Deferred"
	// PhaseDataLost – a member by its record whose data volume is not the one it had. Starts only
	// with a Replace ticket.
	PhaseDataLost NodePhase = "DataLost"
	// PhaseDownTooLong – away longer than deleted data is remembered; starting it could bring
	// deleted rows back. A person decides.
	PhaseDownTooLong NodePhase = "DownTooLong"
	// PhaseAddressTaken – the ring still knows its address as another member's. Needs a pod with
	// another address.
	PhaseAddressTaken NodePhase = "AddressTaken"
	// PhaseFailed – the JVM does not stay up; restarts and message say why and when it is tried
	// again.
	PhaseFailed NodePhase = "Failed"
)

// DiskState is what an agent found on the data volume before it started anything.
//
// +kubebuilder:validation:MaxLength=64
type DiskState string

const (
	// DiskEmpty – no marker of Helenus and no data of Cassandra.
	DiskEmpty DiskState = "Empty"
	// DiskJoining – this node started to join and was never NORMAL on it.
	DiskJoining DiskState = "Joining"
	// DiskMember – the data of a member; diskOwner says of which cluster.
	DiskMember DiskState = "Member"
	// DiskLeft – the data of a node that was decommissioned.
	DiskLeft DiskState = "Left"
	// DiskForeign – data that is not of this node: of another cluster, another node, or of no known
	// origin.
	DiskForeign DiskState = "Foreign"
	// DiskUnreadable – it cannot be read, or contradicts itself. Nothing is started and nothing
	// wiped.
	DiskUnreadable DiskState = "Unreadable"
)

// RepairReason says why the data of a node must be repaired.
//
// +kubebuilder:validation:MaxLength=64
type RepairReason string

const (
	// RepairAwayLongerThanHintWindow – the node was down for longer than its peers keep writes for
	// it.
	RepairAwayLongerThanHintWindow RepairReason = "AwayLongerThanHintWindow"
	// RepairCommitLogLost – the node started with another commit log volume than it had: what was
	// acknowledged and not flushed is gone there.
	RepairCommitLogLost RepairReason = "CommitLogLost"
	// RepairDownLongerThanGCGrace – the node was started although it was down for longer than
	// deletions are kept.
	RepairDownLongerThanGCGrace RepairReason = "DownLongerThanGCGrace"
	// RepairScrubbed – a scrub has rewritten its SSTables, and left out what could not be read.
	RepairScrubbed RepairReason = "Scrubbed"
	// RepairReplaced – the node has replaced a lost member, and took each range from one replica
	// that was not repaired before.
	RepairReplaced RepairReason = "Replaced"
)
