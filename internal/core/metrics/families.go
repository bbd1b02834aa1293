package metrics

// Family is a metric with its labels.
type Family struct {
	Name, Help string
	// Type is gauge, counter or histogram.
	Type   string
	Labels []string
}

// Sample is a value of a family. Values are those of its labels; of a cluster's without namespace
// and cluster.
type Sample struct {
	*Family
	Values []string
	Value  float64
}

// The types.
const (
	gauge     = "gauge"
	counter   = "counter"
	histogram = "histogram"
)

func ofCluster(name, help string, labels ...string) *Family {
	return &Family{"helenus_cluster_" + name, help, gauge, append([]string{"namespace", "cluster"}, labels...)}
}

// Of a cluster, by the operator that leads. What is not known is absent.
var (
	Nodes     = ofCluster("nodes", "Node records.", "datacenter")
	Answering = ofCluster("answering_nodes", "Nodes whose agents answer; absent while one is asked for the first time.",
		"datacenter")
	Ready = ofCluster("ready_nodes", "Nodes that serve clients, by agents that answer; absent while one is asked for "+
		"the first time.", "datacenter")
	Unserved = ofCluster("unserved_ranges", "Ranges with too few replicas up for spec.disruption.consistency; absent "+
		"while the ring is unknown. A range that all datacenters serve together counts in each.", "datacenter")
	Condition  = ofCluster("condition", "1 while a condition of the cluster is True, 0 while it is False.", "condition")
	OpenSteps  = ofCluster("open_steps", "Steps that are open or suspended.")
	StepOpened = ofCluster("step_opened_timestamp_seconds",
		"When the oldest of the open steps of a kind was opened, in Unix time.", "step")
	StepProgress = ofCluster("step_progress_ratio",
		"Share of the current step that is done; absent where it is unknown.", "step")
	Blocked   = ofCluster("blocked_steps", "Entries of status.blocked.")
	BlockedBy = ofCluster("blocked_steps_by_reason", "Entries of status.blocked with a reason; absent for none.",
		"reason")
	Notices   = ofCluster("notices", "Entries of status.notices.")
	NoticesBy = ofCluster("notices_by_reason", "Entries of status.notices with a reason; absent for none.", "reason")
	Repaired  = ofCluster("oldest_repair_timestamp_seconds",
		"When the part of a table with the earliest deadline was last repaired, in Unix time; absent if it never was.")
	RepairDeadline = ofCluster("repair_deadline_timestamp_seconds",
		"The earliest deadline of a repair, in Unix time; absent while no table is known.")
	LastBackup = ofCluster("last_backup_timestamp_seconds",
		"When the latest complete CassandraBackup was taken, in Unix time; absent if there is none.")
	LastVerified = ofCluster("last_verified_backup_timestamp_seconds",
		"When the latest CassandraBackup that was verified was taken, in Unix time; absent if there is none.")
	DamagedFiles = ofCluster("backup_damaged_files",
		"Files of that CassandraBackup that are missing or damaged; absent if there is none.")
	LastPass = ofCluster("last_pass_timestamp_seconds", "When the last pass that saw the cluster ended, in Unix time.")
)

// Of the operator itself.
var (
	FailedPasses = &Family{"helenus_failed_passes_total",
		"Passes over a cluster that failed by an error of the API server.", counter, []string{"namespace", "cluster"}}
	Writes = &Family{"helenus_writes_total", "Writes to the API server by verb.", counter, []string{"verb"}}
	Proven = &Family{"helenus_installation_proven", "1 if the operator has proven that it has its rights and that " +
		"the admission policies bite, 0 if not; absent in a replica that does not lead.", gauge, nil}
	BackupDue = &Family{"helenus_backup_due_timestamp_seconds", "When the next complete backup of a " +
		"CassandraBackupSchedule is or was due, in Unix time; absent while it is suspended.", gauge,
		[]string{"namespace", "cluster", "schedule"}}
	DrillDue = &Family{"helenus_restore_drill_due_timestamp_seconds", "When the backups of a " +
		"CassandraBackupSchedule are or were to be proven again by a restore drill, at the second of its times after " +
		"the last proof, in Unix time; absent where none is wanted.", gauge,
		[]string{"namespace", "cluster", "schedule"}}
	Passes = &Family{"helenus_pass_seconds", "Duration of a pass over one cluster.", histogram, nil}
)

func ofAgent(name, help, kind string, labels ...string) *Family {
	return &Family{"helenus_agent_" + name, help, kind, labels}
}

// Of an agent. The namespace, the pod and so on are added by what scrapes it.
var (
	AgentPhase    = ofAgent("phase", "Phase of the node: 1 for the present one.", gauge, "phase")
	AgentReady    = ofAgent("ready", "Whether the node is NORMAL, gossips and is open to clients.", gauge)
	AgentRestarts = ofAgent("jvm_restarts_total", "Unrequested restarts of the JVM in this pod.", counter)
	AgentFailing  = ofAgent("failing_action", "Actions that fail now, with how often in a row.", gauge, "action")

	AgentCertificateStart = ofAgent("certificate_start_timestamp_seconds",
		"When the certificate begins that Cassandra shows, in Unix time; absent for none.", gauge, "use")
	AgentCertificateEnd = ofAgent("certificate_end_timestamp_seconds",
		"When the certificate ends that Cassandra shows, in Unix time; absent for none.", gauge, "use")
	AgentAPISilence = ofAgent("api_server_silence_seconds",
		"Time since the API server last answered; absent for never.", gauge)
	AgentLogCovered = ofAgent("commit_log_covered_timestamp_seconds",
		"Up to when all that the node has acknowledged is in the store; absent unless its commit log is kept.", gauge)
	AgentJVMSilence = ofAgent("jvm_silence_seconds", "Time since the JVM last answered; absent for never.", gauge)
)

// CassandraUp is before the metrics of the JVM itself, which cmd/helenus-metrics/families.tsv
// names.
var CassandraUp = &Family{"cassandra_up", "Whether the JVM gave its metrics.", gauge, nil}

// OfCluster, OfOperator and OfAgent are all that there are.
var (
	OfCluster = []*Family{Nodes, Answering, Ready, Unserved, Condition, OpenSteps, StepOpened, StepProgress, Blocked,
		BlockedBy, Notices, NoticesBy, Repaired, RepairDeadline, LastBackup, LastVerified,
		DamagedFiles, LastPass}
	OfOperator = []*Family{FailedPasses, Writes, BackupDue, DrillDue, Passes, Proven}
	OfAgent    = []*Family{AgentPhase, AgentReady, AgentRestarts, AgentFailing, AgentCertificateStart,
		AgentCertificateEnd, AgentAPISilence, AgentJVMSilence, AgentLogCovered,
		CassandraUp}
)
