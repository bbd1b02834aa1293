package v1alpha1

// Conditions of a CassandraCluster. They follow kstatus: Reconciling and Stalled are present only
// while they are True.
const (
	// ConditionReady – every wanted node serves clients. True means that applications can use the
	// cluster as it is described.
	ConditionReady = "Ready"
	// ConditionAvailable – a node serves clients, and every protectable range is available at the
	// configured consistency level.
	ConditionAvailable = "Available"
	// ConditionHealthy – no node is down, in doubt or waiting for a person.
	ConditionHealthy = "Healthy"
	// ConditionUpToDate – every node runs what the spec asks for.
	ConditionUpToDate = "UpToDate"
	// ConditionReconciling – the operator works, or waits for something it expects to happen.
	ConditionReconciling = "Reconciling"
	// ConditionStalled – the operator cannot go on unless the user changes the spec or resolves
	// what the message names.
	ConditionStalled = "Stalled"
)

// ConditionConfigurationApplied of a CassandraNode says that its JVM runs with the configuration of
// the spec. CassandraNodes have ConditionReady too.
const ConditionConfigurationApplied = "ConfigurationApplied"

// ConditionDiskFailing of a CassandraNode is present only while it is True: the data volume, or the
// one of the commit log, cannot be written, by two probes of its agent in a row; until five in a
// row could.
const ConditionDiskFailing = "DiskFailing"

// Reasons of ConditionDiskFailing.
const (
	// ReasonDiskIOError – the device or the file system of the volume returns errors.
	ReasonDiskIOError = "IOError"
	// ReasonDiskReadOnly – the volume is mounted read-only, as kernels do after errors.
	ReasonDiskReadOnly = "ReadOnly"
	// ReasonDiskMountChanged – another file system is where the volume was mounted.
	ReasonDiskMountChanged = "MountChanged"
	// ReasonDiskHangs – a write of a few bytes does not end.
	ReasonDiskHangs = "Hangs"
)

// Conditions of a CassandraTask that has finished, as those of a Job. CassandraTasks have
// ConditionReconciling and ConditionStalled, too.
const (
	// ConditionComplete – it is done on every node.
	ConditionComplete = "Complete"
	// ConditionFailed – it is over, and not done on every node.
	ConditionFailed = "Failed"
)

// Reasons of the conditions of a CassandraTask; ReasonWaiting is one of Reconciling, too.
const (
	ReasonTaskRunning   = "Running"
	ReasonTaskSucceeded = "Succeeded"
	// ReasonTaskNodesFailed – it failed on a node as often as it may.
	ReasonTaskNodesFailed = "NodesFailed"
	// ReasonTaskDeadlineExceeded – it had not begun on a node when its time was over.
	ReasonTaskDeadlineExceeded = "DeadlineExceeded"
	// ReasonTaskInvalidTarget – it names what the cluster does not have. Nothing was run.
	ReasonTaskInvalidTarget = "InvalidTarget"
	// ReasonNotPrepared – no ring could be made as it was at the time that a restore names, or it
	// could not be backed up. No row has come back.
	ReasonNotPrepared = "NotPrepared"
)

// Reasons of ConditionReady, of both kinds.
const (
	ReasonAllNodesReady = "AllNodesReady"
	ReasonNodesNotReady = "NodesNotReady"
	ReasonForming       = "Forming"
	ReasonDeleting      = "Deleting"
	// ReasonStopped – spec.stopped is true, and the ring is stopped or about to be. It is one of
	// ConditionAvailable and ConditionHealthy, too.
	ReasonStopped = "Stopped"
	// ReasonServing and the next are of a CassandraNode.
	ReasonServing          = "Serving"
	ReasonNotNormal        = "NotNormal"
	ReasonNotOpenToClients = "NotOpenToClients"
	ReasonGossipStopped    = "GossipStopped"
)

// Reasons of ConditionAvailable.
const (
	ReasonConsistencyKept = "ConsistencyKept"
	ReasonRangesAtRisk    = "RangesAtRisk"
	ReasonRingUnknown     = "RingUnknown"
)

// Reasons of ConditionHealthy.
const (
	ReasonAllNodesHealthy = "AllNodesHealthy"
	ReasonNodesDown       = "NodesDown"
	ReasonNodeFailed      = "NodeFailed"
	ReasonNodeUnreachable = "NodeUnreachable"
	ReasonSchemaDisagrees = "SchemaDisagrees"
	ReasonLedgerLost      = "LedgerLost"
)

// Reasons of ConditionUpToDate and ConditionConfigurationApplied.
const (
	ReasonApplied       = "Applied"
	ReasonChangePending = "ChangePending"
	ReasonRestartNeeded = "RestartNeeded"
)

// Reasons of ConditionReconciling.
const (
	ReasonStepOpen = "StepOpen"
	ReasonWaiting  = "Waiting"
)

// Reasons of ConditionStalled. Each asks for something that only the user can do.
const (
	// ReasonSuperuserPasswordUnknown – the superuser's password was changed by somebody else.
	ReasonSuperuserPasswordUnknown = "SuperuserPasswordUnknown"
	// ReasonIssuerNotFound – Kubernetes has no cert-manager, or not the issuer that the spec names.
	ReasonIssuerNotFound = "IssuerNotFound"
	// ReasonInvalidDefaults – the ConfigMap helenus-defaults of the namespace cannot be read.
	ReasonInvalidDefaults = "InvalidDefaults"
	// ReasonInvalidSpec – the spec contradicts itself in a way that the schema cannot see.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonUnknownSetting – cassandraYaml, a JVM option or the version is unknown to this release
	// of Helenus or Cassandra.
	ReasonUnknownSetting = "UnknownSetting"
	// ReasonUnsupportedChange – the change is not supported yet; nothing was touched.
	ReasonUnsupportedChange = "UnsupportedChange"
	// ReasonNameTaken – an object that is not Helenus' has a name that this cluster needs.
	ReasonNameTaken = "NameTaken"
	// ReasonLeftovers – objects of an earlier cluster of the name are there, and nothing removes
	// them.
	ReasonLeftovers = "Leftovers"
	// ReasonForeignDisks – disks hold data of another cluster, or some hold data and others none.
	ReasonForeignDisks = "ForeignDisks"
	// ReasonAdoptionIncomplete – not all disks of the cluster that is to be adopted are there, or
	// they contradict each other.
	ReasonAdoptionIncomplete = "AdoptionIncomplete"
	// ReasonRestoreImpossible – the ring cannot be made from the backup that bootstrap.restore
	// names.
	ReasonRestoreImpossible = "RestoreImpossible"
	// ReasonCheckFailed – the restored ring does not give the answers that bootstrap.restore.checks
	// asks for. It serves no clients.
	ReasonCheckFailed = "CheckFailed"
	// ReasonPodRejected – the API server refuses the pod, for instance because of the overlay or a
	// quota.
	ReasonPodRejected = "PodRejected"
)
