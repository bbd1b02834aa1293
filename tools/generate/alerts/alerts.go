package alerts

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"helenus.io/helenus/internal/core/metrics"
)

// Severity is how soon somebody has to look.
type Severity string

// The severities.
const (
	// Critical: requests of clients fail, or failures are not noticed.
	Critical Severity = "critical"
	// Warning: user action is required, or will be.
	Warning Severity = "warning"
)

// Alert is a rule of Prometheus, and what a person does about it.
type Alert struct {
	Name     string
	Severity Severity
	// Expression is PromQL, and For how long it must hold.
	Expression string
	For        time.Duration
	// Summary is a sentence with the labels of the series; Means and Look are prose of the guide.
	Summary, Means, Look string
	// Commands can be pasted, for a cluster orders.
	Commands []string
}

const (
	ofCluster = "{{ $labels.namespace }}/{{ $labels.cluster }}"
	ofPod     = "{{ $labels.namespace }}/{{ $labels.pod }}"
	ofLog     = "kubectl logs orders-dc1-r1-0 -c cassandra --tail 100"
)

// All alerts: those of clusters, of the operator, of agents, of Cassandra.
func All() []Alert {
	return []Alert{
		{
			Name: "HelenusRangesUnserved", Severity: Critical, For: 2 * time.Minute,
			Expression: metrics.Unserved.Name + " > 0",
			Summary: "{{ $value }} ranges of datacenter {{ $labels.datacenter }} of " + ofCluster +
				" have too few replicas up",
			Means: "Requests for these ranges fail at the consistency level of `spec.disruption.consistency`. The " +
				"condition `Available` is False.",
			Look: "The message of `Available` names a range, `status.unhealthy` the nodes that are down, and the " +
				"status of each CassandraNode what its agent waits for.",
			Commands: []string{"kubectl helenus status orders", "kubectl get cassandranodes"},
		},
		{
			Name: "HelenusNodeNotServing", Severity: Warning, For: 15 * time.Minute,
			Expression: metrics.Nodes.Name + " - " + metrics.Ready.Name + " > 0",
			Summary:    "{{ $value }} nodes of datacenter {{ $labels.datacenter }} of " + ofCluster + " are not ready",
			Means: "Nodes have not served clients for longer than a restart takes. The alert also fires while a ring " +
				"is stopped by `spec.stopped`, and while a node joins for longer than 15 minutes.",
			Look: "The phase and the message of each CassandraNode, and the log of Cassandra.",
			Commands: []string{"kubectl get cassandranodes",
				ofLog},
		},
		{
			Name: "HelenusNodeNotAnswering", Severity: Warning, For: 15 * time.Minute,
			Expression: metrics.Nodes.Name + " - " + metrics.Answering.Name + " > 0",
			Summary: "{{ $value }} agents of datacenter {{ $labels.datacenter }} of " + ofCluster +
				" do not answer the operator",
			Means: "The pod is not running, its host is down, or the operator cannot connect to it. Steps that need " +
				"the state of this node are blocked.",
			Look:     "The pods, their hosts, and network policies between the operator and port 7780.",
			Commands: []string{"kubectl get pods -l helenus.io/cluster=orders -o wide"},
		},
		{
			Name: "HelenusClusterStalled", Severity: Warning, For: 5 * time.Minute,
			Expression: metrics.Condition.Name + `{condition="Stalled"} == 1`,
			Summary:    ofCluster + " is stalled: user action is required",
			Means:      "The operator rejects the spec, or cannot apply it. It does not change running nodes.",
			Look:       "The message of the condition `Stalled` names the field, its value and what is allowed.",
			Commands:   []string{"kubectl describe cassandracluster orders"},
		},
		{
			Name: "HelenusStepBlocked", Severity: Warning, For: time.Hour,
			Expression: metrics.Blocked.Name + " > 0",
			Summary:    "{{ $value }} steps of " + ofCluster + " are blocked",
			Means:      "A step has been blocked for an hour.",
			Look: "`status.blocked` has the reason and what would help. The " +
				"[table of reasons](status.md#blocked-steps-and-notices) describes each reason.",
			Commands: []string{"kubectl helenus status orders"},
		},
		{
			Name: "HelenusStepTakesLong", Severity: Warning, For: 5 * time.Minute,
			Expression: "time() - " + metrics.StepOpened.Name + " > 86400",
			Summary:    "{{ $labels.step }} of " + ofCluster + " has been open for {{ humanizeDuration $value }}",
			Means:      "A step has been open for a day: it streams much data, or does not make progress.",
			Look:       "`status.step` has its progress and what it waits for.",
			Commands:   []string{"kubectl helenus status orders", "kubectl get cassandranodes"},
		},
		{
			Name: "HelenusRepairDeadlineMissed", Severity: Warning, For: time.Hour,
			Expression: "time() - " + metrics.RepairDeadline.Name + " > 0",
			Summary:    "a table of " + ofCluster + " was not repaired for longer than it keeps deletions",
			Means: "A replica may have forgotten a deletion that another one has missed: " +
				"deleted rows may come back.",
			Look: "`status.repair.oldest` names the table and its range, `status.notices` and `status.blocked` what holds " +
				"its repair up.",
			Commands: []string{"kubectl helenus status orders"},
		},
		{
			Name: "HelenusBackupDamaged", Severity: Warning,
			Expression: metrics.DamagedFiles.Name + " > 0",
			Summary: "{{ $value }} files of the backup of " + ofCluster + " that was verified last are missing or " +
				"damaged",
			Means: "No ring of the same shape can be made from this backup, and one of another shape only if others " +
				"have a quorum of each range. The next backup uploads damaged files again that a node has yet, and " +
				"is verified in its turn.",
			Look: "`status.verified.damaged` of the CassandraBackup names the files, and the nodes whose files " +
				"cover the same ranges. Take another backup, and find out who changes objects of the bucket.",
			Commands: []string{"kubectl helenus backups orders", "kubectl helenus backup orders --store main --wait"},
		},
		{
			Name: "HelenusBackupLate", Severity: Warning, For: 5 * time.Minute,
			Expression: "time() - " + metrics.BackupDue.Name + " > 21600",
			Summary: "schedule {{ $labels.schedule }} of " + ofCluster + " has had no complete backup for " +
				"{{ humanizeDuration $value }} since one was due",
			Means: "A time of a CassandraBackupSchedule was six hours ago, and no complete backup has been taken at " +
				"or after it: backups fail or are incomplete, none is made, or one takes longer than that.",
			Look: "The conditions of the schedule and of its store, `status.lastBackup`, and what its last backup says.",
			Commands: []string{"kubectl get cassandrabackupschedules", "kubectl helenus backups orders",
				"kubectl describe cassandrabackups"},
		},
		{
			Name: "HelenusBackupNotProven", Severity: Warning, For: 5 * time.Minute,
			Expression: "time() - " + metrics.DrillDue.Name + " > 0",
			Summary: "no restore drill of schedule {{ $labels.schedule }} of " + ofCluster +
				" has succeeded at the last two of its times",
			Means: "No ring was made of a backup that serves: drills fail, or none is begun because no backup is " +
				"complete. Whether a ring could be made from the backups is not known.",
			Look:     "`status.restoreDrill.lastFailed` of the schedule, and its Events.",
			Commands: []string{"kubectl describe cassandrabackupschedules", "kubectl get cassandraclusters"},
		},

		{
			Name: "HelenusOperatorAbsent", Severity: Critical, For: 10 * time.Minute,
			Expression: "absent(" + metrics.Passes.Name + "_count)",
			Summary:    "no operator of Helenus is scraped",
			Means: "The operator does not run, or Prometheus cannot scrape it. Without it rings serve clients and " +
				"nodes restart, but nothing is changed, replaced or reported.",
			Look: "The Deployment, its events, and whether Prometheus can connect to port 8080 of its pods.",
			Commands: []string{"kubectl -n helenus-system get pods",
				"kubectl -n helenus-system logs deployment/helenus"},
		},
		{
			Name: "HelenusPassesFail", Severity: Warning, For: 10 * time.Minute,
			Expression: "rate(" + metrics.FailedPasses.Name + "[10m]) > 0",
			Summary:    "reconciliations of " + ofCluster + " fail",
			Means:      "The API server refuses a request of the operator, or does not answer.",
			Look:       "The log of the operator has each error.",
			Commands:   []string{"kubectl -n helenus-system logs deployment/helenus | grep -i error"},
		},

		{
			Name: "HelenusJVMRestarts", Severity: Warning,
			Expression: "increase(" + metrics.AgentRestarts.Name + "[1h]) > 2",
			Summary:    "the JVM of " + ofPod + " restarted {{ $value }} times in an hour",
			Means:      "Cassandra crashes repeatedly: it runs out of memory or disk space, or a setting is wrong.",
			Look:       "`status.restarts` of the CassandraNode has the reason; the log of the container has the error.",
			Commands: []string{"kubectl get cassandranode orders-dc1-r1-0 -o yaml",
				ofLog},
		},
		{
			Name: "HelenusJVMUnreachable", Severity: Warning, For: 5 * time.Minute,
			Expression: metrics.AgentJVMSilence.Name + " > 300",
			Summary:    "the JVM of " + ofPod + " has not answered its agent for {{ humanizeDuration $value }}",
			Means:      "The JVM is down, frozen, or in long garbage collections.",
			Look:       "The phase of the CassandraNode, and the memory of the container.",
			Commands: []string{"kubectl get cassandranode orders-dc1-r1-0",
				"kubectl top pod orders-dc1-r1-0 --containers"},
		},
		{
			Name: "HelenusAPIServerUnreachable", Severity: Warning, For: 5 * time.Minute,
			Expression: metrics.AgentAPISilence.Name + " > 600",
			Summary: "the agent of " + ofPod + " has had no answer of the API server for " +
				"{{ humanizeDuration $value }}",
			Means:    "The node serves clients and can restart, but its agent receives no changes.",
			Look:     "The network of its host, and the rights of the ServiceAccount of the agents.",
			Commands: []string{"kubectl get events --field-selector involvedObject.name=orders-dc1-r1-0"},
		},
		{
			Name: "HelenusAgentFails", Severity: Warning, For: 10 * time.Minute,
			Expression: metrics.AgentFailing.Name + " > 5",
			Summary:    "{{ $labels.action }} has failed {{ $value }} times in a row on " + ofPod,
			Means:      "An action of the agent fails repeatedly.",
			Look:       "`status.message` of the CassandraNode has the error.",
			Commands:   []string{"kubectl get cassandranode orders-dc1-r1-0 -o jsonpath='{.status.message}'"},
		},
		{
			Name: "HelenusCertificateEnds", Severity: Warning, For: time.Hour,
			Expression: "(" + metrics.AgentCertificateEnd.Name + " - time()) / (" + metrics.AgentCertificateEnd.Name +
				" - " + metrics.AgentCertificateStart.Name + ") < 0.2",
			Summary: "the certificate of " + ofPod + " for {{ $labels.use }} has {{ humanizePercentage $value }} of " +
				"its life left",
			Means: "Certificates are renewed after two thirds of their life, and Cassandra does not show a new one. " +
				"When this one ends, nodes and clients refuse each other.",
			Look: "The notice `CertificateNotRenewed` and the message of the CassandraNode say what is wrong with " +
				"the certificate that it is given. Your own must be replaced in their Secret.",
			Commands: []string{"kubectl helenus status orders",
				"kubectl get cassandranode orders-dc1-r1-0 -o jsonpath='{.status.message}'"},
		},
		{
			Name: "HelenusCommitLogBehind", Severity: Warning, For: time.Minute,
			Expression: "time() - " + metrics.AgentLogCovered.Name + " > 300",
			Summary:    "What the store has of the commit log of " + ofPod + " ended {{ $value }} s ago",
			Means: "`pointInTime` of a CassandraBackupSchedule is Enabled, and the node does not send its commit log. What " +
				"was not sent yet may take a share of its disk; of more the oldest is deleted, which leaves a time " +
				"that cannot be restored.",
			Look: "`status.commitLog.problem` of the CassandraNode, and whether the CassandraBackupStore is `Ready`.",
			Commands: []string{"kubectl get cassandranode orders-dc1-r1-0 -o jsonpath='{.status.commitLog}'",
				"kubectl get cassstore"},
		},

		{
			Name: "CassandraMetricsAbsent", Severity: Warning, For: 15 * time.Minute,
			Expression: metrics.CassandraUp.Name + " == 0",
			Summary:    "Cassandra of " + ofPod + " gives no metrics",
			Means:      "The JVM does not run, or does not answer within 10 s.",
			Look:       "The phase of the CassandraNode; if it is Normal, the garbage collections in Cassandra's log.",
			Commands:   []string{"kubectl get cassandranode orders-dc1-r1-0", ofLog},
		},
		{
			Name: "CassandraRequestsUnavailable", Severity: Critical, For: 2 * time.Minute,
			Expression: "rate(cassandra_client_request_unavailables_total[5m]) > 0",
			Summary:    ofPod + " refuses requests of kind {{ $labels.operation }}: too few replicas are up",
			Means:      "Requests fail at the consistency level that clients ask for.",
			Look:       "Which nodes are down, and whether the level needs more replicas than the keyspace has.",
			Commands:   []string{"kubectl helenus status orders", "kubectl get cassandranodes"},
		},
		{
			Name: "CassandraMessagesDropped", Severity: Warning, For: 15 * time.Minute,
			Expression: "sum without (verb) (rate(cassandra_dropped_messages_total[5m])) > 1",
			Summary:    ofPod + " drops {{ humanize $value }} messages a second",
			Means: "The node does not keep up: what waits longer than its timeout is dropped. Dropped writes are " +
				"repaired by hints, read repair and repair.",
			Look:     "`cassandra_thread_pool_pending_tasks`, garbage collections, and the disk.",
			Commands: []string{"kubectl helenus nodetool orders-dc1-r1-0 tpstats", ofLog},
		},
		{
			Name: "CassandraCompactionsPending", Severity: Warning, For: time.Hour,
			Expression: "cassandra_compaction_pending_tasks > 100",
			Summary:    "{{ $value }} compactions are pending on " + ofPod,
			Means:      "More is written than is compacted: reads touch more SSTables, and the disk fills.",
			Look:       "`cassandra_table_sstables` names the tables. Raise `compaction_throughput`, or add nodes.",
			Commands:   []string{"kubectl helenus nodetool orders-dc1-r1-0 compactionstats"},
		},
		{
			Name: "CassandraSeriesDropped", Severity: Warning, For: 15 * time.Minute,
			Expression: "cassandra_exporter_series_dropped > 0",
			Summary:    "{{ $value }} series of " + ofPod + " are not on its page of metrics",
			Means:      "There are more tables, keyspaces or peers than the limit of the page allows for.",
			Look:       "Which keyspaces there are; exclude tables, or raise `metrics.tables.limit`.",
			Commands:   []string{"kubectl explain cassandracluster.spec.metrics.tables"},
		},
	}
}

// runbooks is where the guide is.
const runbooks = "https://helenus.io/docs/guide/alerts.md#"

// Rules are the alerts as a file of rules, which Prometheus reads and a PrometheusRule has as its
// spec.
func Rules() ([]byte, error) {
	type rule struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for,omitempty"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	var rules []rule
	for _, a := range All() {
		r := rule{Alert: a.Name, Expr: a.Expression, Labels: map[string]string{"severity": string(a.Severity)},
			Annotations: map[string]string{"summary": a.Summary, "runbook_url": runbooks + strings.ToLower(a.Name)}}
		r.For = held(a)
		rules = append(rules, r)
	}
	out, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "helenus", "rules": rules}}})
	if err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	return append([]byte("# Made by \"make generate\" from tools/generate/alerts; change that.\n"), out...), nil
}

// Guide is the page of the guide about the alerts.
func Guide() []byte {
	var out strings.Builder
	out.WriteString(`<!-- Made by "make generate" from tools/generate/alerts; change that. -->
# Alerts

What to do when an alert of Helenus fires. The rules are in [charts/helenus/rules](../../charts/helenus/rules), in a
form that Prometheus reads; the chart makes a PrometheusRule of them with ` + "`metrics.rules.enabled`" + `
([installing](installing.md)). The operator's metrics must be scraped for those of clusters, and the agents' for those
of nodes ([metrics](status.md#metrics)).

| alert | severity | fires when |
|---|---|---|
`)
	for _, a := range All() {
		when := "`" + a.Expression + "`"
		if a.For > 0 {
			when += " for " + held(a)
		}
		fmt.Fprintf(&out, "| [%s](#%s) | %s | %s |\n", a.Name, strings.ToLower(a.Name), a.Severity, when)
	}
	for _, a := range All() {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n%s\n\n```sh\n%s\n```\n", a.Name, wrapped(a.Means), wrapped(a.Look),
			strings.Join(a.Commands, "\n"))
	}
	return []byte(out.String())
}

// held is how long an alert must hold until it fires, for Prometheus; empty for at once.
func held(a Alert) string {
	if a.For == 0 {
		return ""
	}
	return fmt.Sprintf("%dm", int(a.For.Minutes()))
}

// wrapped is prose in lines of at most 120 columns.
func wrapped(prose string) string {
	const most = 120
	var out strings.Builder
	column := 0
	for word := range strings.FieldsSeq(prose) {
		switch {
		case column == 0:
		case column+1+len(word) > most:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}
