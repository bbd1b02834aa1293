package v1alpha1

// Reason names the problem of a blocked step, or of a notice. Statuses hold it as an open string,
// since a later release may know more. docs/guide/status.md explains each one.
//
// +kubebuilder:validation:MaxLength=64
type Reason string

// Guards of the operator on a step, internal/core/guard. In status.blocked of a CassandraCluster.
const (
	// BlockedInitialNodeNotReady – the agent of a node that the ring is to form with does not
	// answer from its present pod.
	BlockedInitialNodeNotReady Reason = "InitialNodeNotReady"
	// BlockedDiskNotEmpty – the disk of a node that the ring is to form with holds data.
	BlockedDiskNotEmpty Reason = "DiskNotEmpty"
	// BlockedClientTrafficAlreadyOpened – a disk, or a datacenter, was open to clients before, so
	// that it may hold the only copy of writes.
	BlockedClientTrafficAlreadyOpened Reason = "ClientTrafficAlreadyOpened"
	// BlockedDiskNotAdoptable – a disk is not one of the cluster that is to be adopted.
	BlockedDiskNotAdoptable Reason = "DiskNotAdoptable"
	// BlockedDuplicateHostID – two disks have the same host ID: one is a copy of the other.
	BlockedDuplicateHostID Reason = "DuplicateHostID"
	// BlockedBackupUnreadable – what the backup holds that the ring is to be made from is not
	// known.
	BlockedBackupUnreadable Reason = "BackupUnreadable"
	// BlockedBackupDoesNotFit – no ring as the spec describes can be made from the backup.
	BlockedBackupDoesNotFit Reason = "BackupDoesNotFit"
	// BlockedJVMNotAbsent – a JVM runs, or may run, on a node that has no ticket yet.
	BlockedJVMNotAbsent Reason = "JVMNotAbsent"
	// BlockedLocalConsistencyNotConfirmed – the spec does not confirm that clients stay in their
	// datacenter while another one is added.
	BlockedLocalConsistencyNotConfirmed Reason = "LocalConsistencyNotConfirmed"
	// BlockedReplicasAlreadyPlaced – a keyspace places replicas in a datacenter that has no nodes
	// yet.
	BlockedReplicasAlreadyPlaced Reason = "ReplicasAlreadyPlaced"
	// BlockedExtensionSourceMissing – a keyspace that is to be extended, or the datacenter to
	// copy it from, does not exist or lacks replicas.
	BlockedExtensionSourceMissing Reason = "ExtensionSourceMissing"
	// BlockedJoiningNodeNotReady – the agent of a node that is to join does not answer from its
	// present pod.
	BlockedJoiningNodeNotReady Reason = "JoiningNodeNotReady"
	// BlockedJoiningDiskNotEmpty – the disk of a node that is to join holds data.
	BlockedJoiningDiskNotEmpty Reason = "JoiningDiskNotEmpty"
	// BlockedMemberDown – a member of the ring is down, or its agent is unreachable.
	BlockedMemberDown Reason = "MemberDown"
	// BlockedTopologyChangeInProgress – a node joins, leaves or moves, or ranges are pending.
	BlockedTopologyChangeInProgress Reason = "TopologyChangeInProgress"
	// BlockedRingViewsDiffer – two members see different rings.
	BlockedRingViewsDiffer Reason = "RingViewsDiffer"
	// BlockedMemberSeenDown – a member does not see another one as NORMAL and up.
	BlockedMemberSeenDown Reason = "MemberSeenDown"
	// BlockedStreamInProgress – a member sends or receives a stream.
	BlockedStreamInProgress Reason = "StreamInProgress"
	// BlockedIncrementalRepairRunning – a member takes part in an incremental repair that would
	// have to end in another release.
	BlockedIncrementalRepairRunning Reason = "IncrementalRepairRunning"
	// BlockedNoHostHasRoom – a new pod would ask for more than the one host has where its volumes
	// are.
	BlockedNoHostHasRoom Reason = "NoHostHasRoom"
	// BlockedPodNotResized – the host of a pod has no room for more at present, or the kubelet has
	// failed to resize it.
	BlockedPodNotResized Reason = "PodNotResized"
	// BlockedHintsNotDelivered – members keep hints for nodes that were just restarted, or, before
	// the release changes or the ring stops, for any, or batches. In status.notices once they are
	// no longer waited for.
	BlockedHintsNotDelivered Reason = "HintsNotDelivered"
	// BlockedEncryptionStageIncomplete – a node does not run the stage of encryption yet that the
	// next one rests on, or has no certificate for that.
	BlockedEncryptionStageIncomplete Reason = "EncryptionStageIncomplete"
	// BlockedPlainClients – clients that are to be refused are connected without encryption.
	BlockedPlainClients Reason = "PlainClients"
	// BlockedClientTrafficOpen – a node of a ring that is to stop is still open to clients, or
	// nobody knows whether it is.
	BlockedClientTrafficOpen Reason = "ClientTrafficOpen"
	// BlockedUnknownRingMember – the ring has a member that has no CassandraNode.
	BlockedUnknownRingMember Reason = "UnknownRingMember"
	// BlockedSchemaVersionsDiffer – the members have different schema versions.
	BlockedSchemaVersionsDiffer Reason = "SchemaVersionsDiffer"
	// BlockedReplicationNotUnderstood – a keyspace has transient replicas, or a replication
	// strategy that Helenus does not know.
	BlockedReplicationNotUnderstood Reason = "ReplicationNotUnderstood"
	// BlockedReleasesDiffer – the members have different releases of Cassandra, or another than the
	// spec describes.
	BlockedReleasesDiffer Reason = "ReleasesDiffer"
	// BlockedHostCordoned – a member is on a host that is cordoned, and may be about to be evicted.
	BlockedHostCordoned Reason = "HostCordoned"
	// BlockedRacksUnbalanced – a rack would have so few nodes that each of them holds more than
	// twice the average.
	BlockedRacksUnbalanced Reason = "RacksUnbalanced"
	// BlockedDataVolumeTooSmall – a node that joins would fill too much of its data volume.
	BlockedDataVolumeTooSmall Reason = "DataVolumeTooSmall"
	// BlockedDatacenterInUse – a datacenter that the spec lacks has replicas of keyspaces.
	BlockedDatacenterInUse Reason = "DatacenterInUse"
	// BlockedOnlyReplicas – a keyspace has no replicas but those that it is to lose, or that are to
	// stop.
	BlockedOnlyReplicas Reason = "OnlyReplicas"
	// BlockedTooManyReplicas – a keyspace has more replicas than nodes would be left.
	BlockedTooManyReplicas Reason = "TooManyReplicas"
	// BlockedTooFewRacks – a keyspace has more replicas than racks would be left.
	BlockedTooFewRacks Reason = "TooFewRacks"
	// BlockedTooLittleDisk – a node that stays would fill too much of its data volume once others
	// have left, or does not say how full that is.
	BlockedTooLittleDisk Reason = "TooLittleDisk"
	// BlockedDataVolumeFull – the data volume of a member is more than 90 % full before a backup,
	// or the member does not say how full it is.
	BlockedDataVolumeFull Reason = "DataVolumeFull"
	// BlockedCleanupDue – a node that stays holds data which it no longer owns.
	BlockedCleanupDue Reason = "CleanupDue"
	// BlockedRepairDue – the data of a node that stays must be repaired.
	BlockedRepairDue Reason = "RepairDue"
	// BlockedSecondRackDown – beside a lost member one of another rack is down, and the replicas
	// that are left may lack writes.
	BlockedSecondRackDown Reason = "SecondRackDown"
	// BlockedLossNotAccepted – the replicas that are left without a lost member may lack writes, or
	// there are none.
	BlockedLossNotAccepted Reason = "LossNotAccepted"
	// BlockedReplacedMemberSeenUp – a member sees a lost member up.
	BlockedReplacedMemberSeenUp Reason = "ReplacedMemberSeenUp"
)

// What else the operator holds back. In status.blocked of a CassandraCluster.
const (
	// BlockedAuthorityStageIncomplete – a node has not proven yet the certificate, or the trust,
	// that the next stage of the replacement of an authority rests on.
	BlockedAuthorityStageIncomplete Reason = "AuthorityStageIncomplete"
	// BlockedCAModified – the Secret of the certificate authority was edited.
	BlockedCAModified Reason = "CAModified"
	// BlockedCAMissing – the Secret of the certificate authority was deleted.
	BlockedCAMissing Reason = "CAMissing"
	// BlockedPasswordsMissing – a Secret with passwords of the ring's roles was deleted.
	BlockedPasswordsMissing Reason = "PasswordsMissing"
	// BlockedSuperuserInvalid – the Secret of the superuser has a user name or a password that
	// cannot be applied.
	BlockedSuperuserInvalid Reason = "SuperuserInvalid"
	// BlockedSuperuserPasswordUnknown – the superuser's password was changed by somebody else.
	BlockedSuperuserPasswordUnknown Reason = "SuperuserPasswordUnknown"
	// BlockedStaleEndpointRemains – gossip still lists a failed join, and the operator could not
	// remove it.
	BlockedStaleEndpointRemains Reason = "StaleEndpointRemains"
	// BlockedAbandonedPodStillRunning – the pod of an abandoned join still exists and may go on
	// joining.
	BlockedAbandonedPodStillRunning Reason = "AbandonedPodStillRunning"
	// BlockedDisksUnknown – the ledger is lost, and not every node has reported its disk.
	BlockedDisksUnknown Reason = "DisksUnknown"
	// BlockedRemovedHostStillAnswers – an agent answers from a host that has no Node object or is
	// tainted as out of service, or a member sees the node on it alive.
	BlockedRemovedHostStillAnswers Reason = "RemovedHostStillAnswers"
	// BlockedHostUnreachable – a host is not ready, and Cassandra may still run on it.
	BlockedHostUnreachable Reason = "HostUnreachable"
	// BlockedStragglerInRing – a node did not report that it joined, but another node or its disk
	// says that it is in the ring.
	BlockedStragglerInRing Reason = "StragglerInRing"
	// BlockedMemberClaimMissing – a volume claim of a member is gone.
	BlockedMemberClaimMissing Reason = "MemberClaimMissing"
	// BlockedAgentUnreachable – an agent does not answer, so that nobody knows whether its node
	// is down.
	BlockedAgentUnreachable Reason = "AgentUnreachable"
	// BlockedRollOutHeld – disruption.holdAfter has a roll-out wait for a person.
	BlockedRollOutHeld Reason = "RollOutHeld"
	// BlockedRoleInvalid – the Secret of a role of an application is missing, or has a password
	// that cannot be.
	BlockedRoleInvalid Reason = "RoleInvalid"
	// BlockedRolesNotReady – the first node that asks for passwords is closed to clients until a
	// person says that the roles of the applications are made.
	BlockedRolesNotReady Reason = "RolesNotReady"
	// BlockedChangedNodeDown – a node that a roll-out has changed does not come up again.
	BlockedChangedNodeDown Reason = "ChangedNodeDown"
	// BlockedMaintenanceRunning – an operation of maintenance has run for long that another step
	// waits for.
	BlockedMaintenanceRunning Reason = "MaintenanceRunning"
	// BlockedOtherStepOpen – the ring or a datacenter is to stop or start, and another step is
	// open.
	BlockedOtherStepOpen Reason = "OtherStepOpen"
	// BlockedRecordMissing – the CassandraNode of a member was deleted while the spec is rejected.
	BlockedRecordMissing Reason = "RecordMissing"
)

// What an agent holds back. In status.blocked of a CassandraNode. It also uses
// BlockedClientTrafficAlreadyOpened, BlockedMemberDown and BlockedTopologyChangeInProgress.
const (
	// BlockedRecordOfOtherCluster – CassandraNode and pod belong to different clusters.
	BlockedRecordOfOtherCluster Reason = "RecordOfOtherCluster"
	// BlockedPodIncomplete – the pod lacks what the operator gives to each pod.
	BlockedPodIncomplete Reason = "PodIncomplete"
	// BlockedDataVolumeInUse – another process, such as the JVM of the node's former pod, holds the
	// lock of the data volume, or it cannot be locked.
	BlockedDataVolumeInUse Reason = "DataVolumeInUse"
	// BlockedFormerPodAnswers – the agent of another pod of the node answers.
	BlockedFormerPodAnswers Reason = "FormerPodAnswers"
	// BlockedHostIDAlive – a peer sees the node's host ID alive at another address.
	BlockedHostIDAlive Reason = "HostIDAlive"
	// BlockedDiskUnreadable – the data volume, its journal or Cassandra's system tables cannot be
	// read or contradict each other.
	BlockedDiskUnreadable Reason = "DiskUnreadable"
	// BlockedDiskOfLaterRelease – the node was NORMAL on its disk with a later line of Cassandra.
	BlockedDiskOfLaterRelease Reason = "DiskOfLaterRelease"
	// BlockedImageOfOtherRelease – the image of the pod has another line of Cassandra than the
	// node.
	BlockedImageOfOtherRelease Reason = "ImageOfOtherRelease"
	// BlockedDiskOfOtherNode – the disk belongs to another node or cluster.
	BlockedDiskOfOtherNode Reason = "DiskOfOtherNode"
	// BlockedNodeHasLeft – the node left the ring, or had begun to leave.
	BlockedNodeHasLeft Reason = "NodeHasLeft"
	// BlockedDiskOfOtherTicket – the disk holds an unfinished join by another ticket.
	BlockedDiskOfOtherTicket Reason = "DiskOfOtherTicket"
	// BlockedDiskContradictsJournal – the journal and Cassandra's files disagree on whether the
	// node joined.
	BlockedDiskContradictsJournal Reason = "DiskContradictsJournal"
	// BlockedMemberDiskMissing – the node is a member, and its disk is empty or another one.
	BlockedMemberDiskMissing Reason = "MemberDiskMissing"
	// BlockedTicketModeUnsupported – the ticket has a mode that this release cannot carry out.
	BlockedTicketModeUnsupported Reason = "TicketModeUnsupported"
	// BlockedTicketForMember – a node that the record names as a member got a ticket to join.
	BlockedTicketForMember Reason = "TicketForMember"
	// BlockedStaleEndpointInGossip – a peer still sees an earlier join of this node at another
	// address.
	BlockedStaleEndpointInGossip Reason = "StaleEndpointInGossip"
	// BlockedNoSeedAnswers – no seed answers as a member whose JVM runs.
	BlockedNoSeedAnswers Reason = "NoSeedAnswers"
	// BlockedClusterNameDiffers – the disk and the record have different cluster names.
	BlockedClusterNameDiffers Reason = "ClusterNameDiffers"
	// BlockedDownLongerThanGCGrace – the node was down for longer than the smallest
	// gc_grace_seconds of a table.
	BlockedDownLongerThanGCGrace Reason = "DownLongerThanGCGrace"
	// BlockedJoinLongerThanGCGrace – the join has rows from longer ago than deletions are kept.
	BlockedJoinLongerThanGCGrace Reason = "JoinLongerThanGCGrace"
	// BlockedConfigurationRenderingFailed – the agent cannot render the configuration of the
	// record.
	BlockedConfigurationRenderingFailed Reason = "ConfigurationRenderingFailed"
	// BlockedNoContactWithCluster – neither the API server nor another agent has answered for a
	// long time.
	BlockedNoContactWithCluster Reason = "NoContactWithCluster"
	// BlockedHostIDReplaced – another node has replaced this member.
	BlockedHostIDReplaced Reason = "HostIDReplaced"
	// BlockedAddressTaken – another member has the address of this pod.
	BlockedAddressTaken Reason = "AddressTaken"
	// BlockedPeerSeesNodeUp – the JVM does not answer its agent, but a peer sees the node up.
	BlockedPeerSeesNodeUp Reason = "PeerSeesNodeUp"
	// BlockedPeersNotSeen – the node does not see members up that others see up.
	BlockedPeersNotSeen Reason = "PeersNotSeen"
	// BlockedJVMNotAnswering – the JVM does not answer.
	BlockedJVMNotAnswering Reason = "JVMNotAnswering"
	// BlockedConsistencyWouldBeLost – without this node some ranges would lose the consistency
	// level, or nobody can tell.
	BlockedConsistencyWouldBeLost Reason = "ConsistencyWouldBeLost"
	// BlockedTokensDifferFromTicket – the node joined with other tokens than its ticket has.
	BlockedTokensDifferFromTicket Reason = "TokensDifferFromTicket"
	// BlockedUnknownOperation – the agent does not know the type of the operation.
	BlockedUnknownOperation Reason = "UnknownOperation"
	// BlockedConflictingOperation – the node runs another operation that cannot run beside this
	// one.
	BlockedConflictingOperation Reason = "ConflictingOperation"
	// BlockedNodeNotNormal – the node is not NORMAL.
	BlockedNodeNotNormal Reason = "NodeNotNormal"
	// BlockedNativeTransportClosed – the native transport is closed.
	BlockedNativeTransportClosed Reason = "NativeTransportClosed"
	// BlockedMemberNotNormal – another member is not NORMAL.
	BlockedMemberNotNormal Reason = "MemberNotNormal"
	// BlockedReplicationUnknown – the node does not know the replication that the operation needs
	// yet.
	BlockedReplicationUnknown Reason = "ReplicationUnknown"
	// BlockedDrainedAgain – Cassandra was drained by hand again, soon after it was restarted for
	// that.
	BlockedDrainedAgain Reason = "DrainedAgain"
	// BlockedPendingRanges – ranges are pending, or a node joins or leaves.
	BlockedPendingRanges Reason = "PendingRanges"
	// BlockedActionFailing – an action of the agent fails and is retried.
	BlockedActionFailing Reason = "ActionFailing"
)

// Notices: they hold nothing back. In status.notices of a CassandraCluster.
const (
	// NoticeNodeDown – an operation waits for a node that is down.
	NoticeNodeDown Reason = "NodeDown"
	// NoticePodBackoff – a pod failed and is recreated after a backoff.
	NoticePodBackoff Reason = "PodBackoff"
	// NoticeJoinFailed – a join failed and is retried.
	NoticeJoinFailed Reason = "JoinFailed"
	// NoticeVolumeHostUnavailable – the only host that can use a volume is gone or unreachable.
	NoticeVolumeHostUnavailable Reason = "VolumeHostUnavailable"
	// NoticeMemberLost – the disk or the host of a member is lost, and it is replaced later.
	NoticeMemberLost Reason = "MemberLost"
	// NoticeDiskFailing – the agent of a node cannot write to one of its volumes.
	NoticeDiskFailing Reason = "DiskFailing"
	// NoticeSystemKeyspacesNotSet – altering the system keyspaces failed and is retried.
	NoticeSystemKeyspacesNotSet Reason = "SystemKeyspacesNotSet"
	// NoticeOperationFailed – an operation failed and is retried.
	NoticeOperationFailed Reason = "OperationFailed"
	// NoticeOperationPostponed – an operation of maintenance failed too often on a node, or the
	// node or another one that it needs is down for long. It stays due and is retried later.
	NoticeOperationPostponed Reason = "OperationPostponed"
	// NoticeNodeNotStarting – the pod or the JVM of a member does not start.
	NoticeNodeNotStarting Reason = "NodeNotStarting"
	// NoticeDatacenterStopped – a datacenter is stopped, or is to be: when its nodes need a repair
	// and when they start by a person's word alone.
	NoticeDatacenterStopped Reason = "DatacenterStopped"
	// NoticeKeyspaceMissing – a role is granted something in a keyspace that does not exist yet.
	NoticeKeyspaceMissing Reason = "KeyspaceMissing"
	// NoticePasswordsTurnedOff – the ring stops asking for passwords, node by node.
	NoticePasswordsTurnedOff Reason = "PasswordsTurnedOff"
	// NoticeUpdateAvailable – nodes are made by the rules of an earlier release of Helenus.
	NoticeUpdateAvailable Reason = "UpdateAvailable"
	// NoticeAgentOutdated – an agent is of another release, and somebody has taken the image of
	// the present one back.
	NoticeAgentOutdated Reason = "AgentOutdated"
	// NoticeClaimUnused – a claim with a volume is left of a node that was abandoned before it
	// joined, or that has left the ring.
	NoticeClaimUnused Reason = "ClaimUnused"
	// NoticeVolumeGrows – a claim asks for more than its volume has yet.
	NoticeVolumeGrows Reason = "VolumeGrows"
	// NoticeRepairedByOthers – Cassandra's own auto-repair is on, or the keyspace of Reaper is
	// there: tables are left to it.
	NoticeRepairedByOthers Reason = "RepairedByOthers"
	// NoticeRepairScheduled – a node must be repaired, which is done before other repairs.
	NoticeRepairScheduled Reason = "RepairScheduled"
	// NoticeRepairDeadlineMissed – a table was not repaired before its deadline.
	NoticeRepairDeadlineMissed Reason = "RepairDeadlineMissed"
	// NoticeShortGCGrace – a table keeps deletions for less than a day, which counts as a day.
	NoticeShortGCGrace Reason = "ShortGCGrace"
	// NoticeClocksDiffer – the clock of a node differs from those of most others.
	NoticeClocksDiffer Reason = "ClocksDiffer"
	// NoticeClientsAuthorityChanges – clients have time to take over the authority by which they
	// know the nodes.
	NoticeClientsAuthorityChanges Reason = "ClientsAuthorityChanges"
	// NoticeCertificateNotRenewed – Cassandra does not take over a certificate, or one ends soon.
	NoticeCertificateNotRenewed Reason = "CertificateNotRenewed"
	// NoticeNetworkPolicyNotEnforced – the operator reaches a port that the network policy of the
	// ring forbids to it.
	NoticeNetworkPolicyNotEnforced Reason = "NetworkPolicyNotEnforced"
	// NoticePodRenderingFailed – a pod cannot be rendered from its record.
	NoticePodRenderingFailed Reason = "PodRenderingFailed"
	// NoticeAddressConflict – a pod got the address of another member and is recreated.
	NoticeAddressConflict Reason = "AddressConflict"
)
