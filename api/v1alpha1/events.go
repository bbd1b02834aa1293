package v1alpha1

// Reasons of the Events that follow from a change of the status of a CassandraCluster, a schedule,
// a CassandraBackup, a CassandraRestore or a CassandraBackupStore, one Event for each change.
// docs/guide/status.md explains each one.
const (
	// EventFormed – the ring of datacenters exists.
	EventFormed = "Formed"
	// EventStepStarted – a step was opened.
	EventStepStarted = "StepStarted"
	// EventStepFinished – a step has ended with what was wanted.
	EventStepFinished = "StepFinished"
	// EventStepFailed – a step has ended without what was wanted.
	EventStepFailed = "StepFailed"
	// EventStepWithdrawn – a step was taken back before it had an effect.
	EventStepWithdrawn = "StepWithdrawn"
	// EventStepBlocked – a step waits, for a reason for which it did not wait before.
	EventStepBlocked = "StepBlocked"
	// EventStalled – only the user can bring the cluster on.
	EventStalled = "Stalled"
	// EventUnavailable – a range is not served at the configured consistency any more.
	EventUnavailable = "Unavailable"
	// EventAvailable – every range is served at the configured consistency again.
	EventAvailable = "Available"
	// EventNodeDown – a member is down, and no step works on it.
	EventNodeDown = "NodeDown"
	// EventNodeUp – a member that was down is NORMAL again.
	EventNodeUp = "NodeUp"
	// EventNodeFailed – a node waits for the user.
	EventNodeFailed = "NodeFailed"
	// EventDataLost – the data of a member is not on its disk.
	EventDataLost = "DataLost"
	// EventCertificateEnds – a certificate or an authority ends within 14, 7 or 1 days.
	EventCertificateEnds = "CertificateEnds"
	// EventCertificateNotRenewed – Cassandra does not take over a certificate, or one ends soon.
	EventCertificateNotRenewed = "CertificateNotRenewed"
	// EventDiskFailing – the agent of a node cannot write to one of its volumes.
	EventDiskFailing = "DiskFailing"
	// EventGuardOverruled – a guard has found what a person had overruled beforehand.
	EventGuardOverruled = "GuardOverruled"
	// EventJVMRestarted – a JVM has ended that nobody had asked to end, and is started again.
	EventJVMRestarted = "JVMRestarted"
	// EventTaskCreated – a schedule has made a task.
	EventTaskCreated = "TaskCreated"
	// EventBackupCreated – a schedule has made a backup.
	EventBackupCreated = "BackupCreated"
	// EventBackupDeleted – a backup was deleted in its store.
	EventBackupDeleted = "BackupDeleted"
	// EventBackupNotDeleted – a backup is to be deleted in its store and was not, or stays there.
	EventBackupNotDeleted = "BackupNotDeleted"
	// EventBackupVerified – a backup was verified, and nothing of it is missing or damaged.
	EventBackupVerified = "BackupVerified"
	// EventBackupDamaged – files of a backup are missing or damaged.
	EventBackupDamaged = "BackupDamaged"
	// EventBackupNotVerified – a backup could not be verified, for a reason that is new.
	EventBackupNotVerified = "BackupNotVerified"
	// EventDrillStarted – a ring is made from a backup, to prove that this can be done.
	EventDrillStarted = "DrillStarted"
	// EventDrillSucceeded – a ring that was made from a backup serves.
	EventDrillSucceeded = "DrillSucceeded"
	// EventDrillFailed – a ring that was to be made from a backup does not serve in time.
	EventDrillFailed = "DrillFailed"
	// EventRestorePreparing – a ring is made as it was at the time that a restore names.
	EventRestorePreparing = "RestorePreparing"
	// EventRestorePrepared – a restore has the backup of that ring.
	EventRestorePrepared = "RestorePrepared"
	// EventRunSkipped – a schedule has made no task or backup at a time of it.
	EventRunSkipped = "RunSkipped"
	// EventStoreSwept – files that no backup needs were deleted in a store.
	EventStoreSwept = "StoreSwept"
	// EventStoreNotSwept – a store could not be swept, for a reason that is new.
	EventStoreNotSwept = "StoreNotSwept"
	// EventStoreUsable – backups can rely on a store, and could not before.
	EventStoreUsable = "StoreUsable"
	// EventStoreNotUsable – backups cannot rely on a store, for a reason that is new.
	EventStoreNotUsable = "StoreNotUsable"
)
