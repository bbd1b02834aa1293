package dashboards

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Panel is a graph: one line for each series of its expression.
type Panel struct {
	Title, Expression, Legend, Unit string
}

// Dashboard is a page of panels over what its variables choose: namespace and cluster, and for some
// one more of Cassandra's labels. One of the fleet is over all clusters.
type Dashboard struct {
	Name, Title string
	Variable    string
	Fleet       bool
	Panels      []Panel
}

// pods are those of the chosen cluster, by namespace and pod as the alerts are: a name has no other
// hyphens behind the cluster's.
const pods = `namespace="$namespace",pod=~"$cluster-[a-z0-9]+-[a-z0-9]+-[0-9]+"`

const ofCluster = `namespace="$namespace",cluster="$cluster"`

func rate(metric, selector, by string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[$__rate_interval]))", by, metric, selector)
}

func p99(metric, selector, by string) string {
	return "histogram_quantile(0.99, " + rate(metric+"_bucket", selector, by+", le") + ")"
}

// All dashboards.
func All() []Dashboard {
	node := `namespace="$namespace",pod="$pod"`
	table := pods + `,keyspace="$keyspace"`
	worst := func(metric string) string { return fmt.Sprintf("max by (table) (%s{%s})", metric, table) }
	each := func(expression string) string { return "sum by (namespace, cluster) (" + expression + ")" }
	const name = "{{namespace}}/{{cluster}}"
	return []Dashboard{
		{Name: "fleet", Title: "Helenus / Fleet", Fleet: true, Panels: []Panel{
			{"Stalled: the user has to act", `helenus_cluster_condition{condition="Stalled"} == 1`, name, "short"},
			{"Not available", `helenus_cluster_condition{condition="Available"} == 0`, name, "short"},
			{"Nodes that are not ready", each("helenus_cluster_nodes - helenus_cluster_ready_nodes") + " > 0", name,
				"short"},
			{"Ranges with too few replicas up", each("helenus_cluster_unserved_ranges") + " > 0", name, "short"},
			{"Agents that do not answer", each("helenus_cluster_nodes - helenus_cluster_answering_nodes") + " > 0",
				name, "short"},
			{"Steps that are blocked", "sum by (namespace, cluster, reason) (helenus_cluster_blocked_steps_by_reason)",
				name + " {{reason}}", "short"},
			{"Age of the oldest step", "time() - min by (namespace, cluster) " +
				"(helenus_cluster_step_opened_timestamp_seconds)", name, "s"},
			{"Time until the next deadline of a repair", "helenus_cluster_repair_deadline_timestamp_seconds - time()",
				name, "s"},
			{"Notices", "sum by (namespace, cluster, reason) (helenus_cluster_notices_by_reason)", name + " {{reason}}",
				"short"},
			{"Time until the first certificate ends", "min by (namespace) " +
				"(helenus_agent_certificate_end_timestamp_seconds) - time()", "{{namespace}}", "s"},
			{"Clusters", "count(helenus_cluster_condition{condition=\"Ready\"})", "clusters", "short"},
			{"Nodes", each("helenus_cluster_nodes"), name, "short"},
		}},
		{Name: "ring", Title: "Helenus / Ring", Panels: []Panel{
			{"Nodes that are not ready", "helenus_cluster_nodes{" + ofCluster + "} - helenus_cluster_ready_nodes{" +
				ofCluster + "}", "{{datacenter}}", "short"},
			{"Ranges with too few replicas up", "helenus_cluster_unserved_ranges{" + ofCluster + "}", "{{datacenter}}",
				"short"},
			{"Requests", rate("cassandra_client_request_latency_seconds_count", pods, "operation"), "{{operation}}",
				"reqps"},
			{"Latency, 99th percentile", p99("cassandra_client_request_latency_seconds", pods, "operation"),
				"{{operation}}", "s"},
			{"Timeouts", rate("cassandra_client_request_timeouts_total", pods, "operation"), "{{operation}}", "reqps"},
			{"Unavailable", rate("cassandra_client_request_unavailables_total", pods, "operation"), "{{operation}}",
				"reqps"},
			{"Requests that failed on a replica", rate("cassandra_client_request_failures_total", pods, "operation"),
				"{{operation}}", "reqps"},
			{"Logins refused", rate("cassandra_client_authentication_failures_total", pods, "pod"), "{{pod}}", "ops"},
			{"Messages dropped", rate("cassandra_dropped_messages_total", pods, "pod"), "{{pod}}", "ops"},
			{"Hints kept", "cassandra_hints_size_bytes{" + pods + "}", "{{pod}}", "bytes"},
			{"Load", "cassandra_storage_load_bytes{" + pods + "}", "{{pod}}", "bytes"},
			{"Compactions pending", "cassandra_compaction_pending_tasks{" + pods + "}", "{{pod}}", "short"},
			{"Steps that are blocked", "helenus_cluster_blocked_steps{" + ofCluster + "}", "blocked", "short"},
			{"Progress of the step", "helenus_cluster_step_progress_ratio{" + ofCluster + "}", "{{step}}",
				"percentunit"},
		}},
		{Name: "node", Title: "Helenus / Node", Variable: "pod", Panels: []Panel{
			{"JVM gives metrics", "cassandra_up{" + node + "}", "up", "short"},
			{"Connections of clients", "cassandra_client_connections{" + node + "}", "connections", "short"},
			{"Requests coordinated", rate("cassandra_client_request_latency_seconds_count", node, "operation"),
				"{{operation}}", "reqps"},
			{"Latency, 99th percentile", p99("cassandra_client_request_latency_seconds", node, "operation"),
				"{{operation}}", "s"},
			{"Tasks that wait", "cassandra_thread_pool_pending_tasks{" + node + "} > 0", "{{pool}}", "short"},
			{"Tasks that wait for room in a queue", "cassandra_thread_pool_blocked_tasks{" + node + "} > 0", "{{pool}}",
				"short"},
			{"Requests discarded by overload", rate("cassandra_client_requests_discarded_total", node, "pod"),
				"{{pod}}", "reqps"},
			{"Messages dropped", rate("cassandra_dropped_messages_total", node, "verb") + " > 0", "{{verb}}", "ops"},
			{"Messages to other nodes dropped", rate("cassandra_internode_dropped_messages_total", node,
				"peer_datacenter"), "{{peer_datacenter}}", "ops"},
			{"Messages to other nodes that wait", "cassandra_internode_pending_messages{" + node + "}",
				"{{peer_datacenter}}", "short"},
			{"Exceptions that nothing caught, in an hour",
				"increase(cassandra_storage_exceptions_total{" + node + "}[1h])", "{{pod}}", "short"},
			{"Compactions not begun for lack of disk space, in an hour",
				"increase(cassandra_compaction_aborted_total{" + node + "}[1h])", "{{pod}}", "short"},
			{"Flushes that wait", "cassandra_memtable_pending_flushes{" + node + "}", "{{pod}}", "short"},
			{"Writes that waited for room in memtables",
				rate("cassandra_memtable_allocation_blocked_seconds_count", node, "pod"), "{{pod}}", "ops"},
			{"Commit log", "cassandra_commitlog_size_bytes{" + node + "}", "{{pod}}", "bytes"},
			{"Compaction", "rate(cassandra_compaction_bytes_total{" + node + "}[$__rate_interval])", "bytes", "Bps"},
			{"Hits of caches", rate("cassandra_cache_hits_total", node, "cache") + " / " +
				rate("cassandra_cache_requests_total", node, "cache"), "{{cache}}", "percentunit"},
			{"Waiting for the commit log, 99th percentile", p99("cassandra_commitlog_commit_waiting_seconds", node,
				"pod"),
				"{{pod}}", "s"},
			{"Garbage collection", rate("cassandra_jvm_gc_seconds_total", node, "collector"), "{{collector}}",
				"percentunit"},
			{"Memory", "cassandra_jvm_memory_used_bytes{" + node + "}", "{{area}}", "bytes"},
			{"Processors", "rate(cassandra_jvm_cpu_seconds_total{" + node + "}[$__rate_interval])", "used", "short"},
			{"Open files", "cassandra_jvm_open_files{" + node + "}", "files", "short"},
			{"Time since the JVM started", "time() - cassandra_jvm_start_time_seconds{" + node + "}", "{{pod}}", "s"},
		}},
		{Name: "tables", Title: "Helenus / Tables", Variable: "keyspace", Panels: []Panel{
			{"Local reads", rate("cassandra_table_read_latency_seconds_count", table, "table"), "{{table}}", "reqps"},
			{"Local writes", rate("cassandra_table_write_latency_seconds_count", table, "table"), "{{table}}", "reqps"},
			{"Local reads, 99th percentile", p99("cassandra_table_read_latency_seconds", table, "table"), "{{table}}",
				"s"},
			{"Local writes, 99th percentile", p99("cassandra_table_write_latency_seconds", table, "table"), "{{table}}",
				"s"},
			{"Size", "sum by (table) (cassandra_table_disk_live_bytes{" + table + "})", "{{table}}", "bytes"},
			{"Snapshots", "sum by (table) (cassandra_table_snapshots_bytes{" + table + "})", "{{table}}", "bytes"},
			{"SSTables per read, 99th percentile", worst("cassandra_table_sstables_per_read_p99"), "{{table}}",
				"short"},
			{"Tombstones per read, most", worst("cassandra_table_tombstones_per_read_max"), "{{table}}", "short"},
			{"Partitions", "sum by (table) (cassandra_table_partitions{" + table + "})", "{{table}}", "short"},
			{"Size of partitions, 99th percentile", worst("cassandra_table_partition_p99_bytes"), "{{table}}", "bytes"},
			{"Greatest partition", worst("cassandra_table_partition_max_bytes"), "{{table}}", "bytes"},
			{"Bloom filter, false answers", worst("cassandra_table_bloom_filter_false_ratio"), "{{table}}",
				"percentunit"},
			{"Repaired", "min by (table) (cassandra_table_repaired_ratio{" + table + "})", "{{table}}", "percentunit"},
			{"Memtables", "sum by (table) (cassandra_table_memtable_bytes{" + table + "})", "{{table}}", "bytes"},
		}},
		{Name: "backup-and-repair", Title: "Helenus / Backup and repair", Panels: []Panel{
			{"Time since the last complete backup", "time() - helenus_cluster_last_backup_timestamp_seconds{" +
				ofCluster + "}", "time", "s"},
			{"Age of the verified backup",
				"time() - helenus_cluster_last_verified_backup_timestamp_seconds{" + ofCluster + "}", "time", "s"},
			{"Backups of schedules: how late the next complete one is",
				"clamp_min(time() - helenus_backup_due_timestamp_seconds{" + ofCluster + "}, 0)", "{{schedule}}", "s"},
			{"Time until the next backup of a schedule",
				"clamp_min(helenus_backup_due_timestamp_seconds{" + ofCluster + "} - time(), 0)", "{{schedule}}", "s"},
			{"Snapshots", "sum by (pod) (cassandra_table_snapshots_bytes{" + pods + "})", "{{pod}}", "bytes"},
			{"Time until the next deadline of a repair",
				"helenus_cluster_repair_deadline_timestamp_seconds{" + ofCluster + "} - time()", "time left", "s"},
			{"Time since the oldest repair", "time() - helenus_cluster_oldest_repair_timestamp_seconds{" + ofCluster +
				"}", "time", "s"},
			{"Repaired, least of a keyspace", "min by (keyspace) (cassandra_table_repaired_ratio{" + pods + "})",
				"{{keyspace}}", "percentunit"},
			{"Bytes that wait to be marked as repaired",
				"sum by (keyspace) (cassandra_table_pending_repair_bytes{" + pods + "})", "{{keyspace}}", "bytes"},
			{"Tasks of validation and repair", "cassandra_thread_pool_active_tasks{" + pods +
				`,pool=~".*(Validation|AntiEntropy|Repair).*"} > 0`, "{{pod}} {{pool}}", "short"},
			{"Hints written, which a repair makes good if they expire",
				rate("cassandra_hints_created_total", pods, "pod"), "{{pod}}", "ops"},
			{"Time until certificates end", "min by (use) (helenus_agent_certificate_end_timestamp_seconds{" + pods +
				"}) - time()", "{{use}}", "s"},
			{"Time since certificates were renewed", "time() - min by (use) " +
				"(helenus_agent_certificate_start_timestamp_seconds{" + pods + "})", "{{use}}", "s"},
		}},
		{Name: "operator", Title: "Helenus / Operator", Panels: []Panel{
			{"Passes", "sum(rate(helenus_pass_seconds_count[$__rate_interval]))", "passes", "ops"},
			{"Passes that fail", rate("helenus_failed_passes_total", ofCluster, "cluster"), "{{cluster}}", "ops"},
			{"Writes to the API server", "sum by (verb) (rate(helenus_writes_total[$__rate_interval]))", "{{verb}}",
				"ops"},
			{"Time since the last pass", "time() - helenus_cluster_last_pass_timestamp_seconds{" + ofCluster + "}",
				"time",
				"s"},
			{"Conditions", "helenus_cluster_condition{" + ofCluster + "}", "{{condition}}", "short"},
			{"Agents that do not answer",
				"helenus_cluster_nodes{" + ofCluster + "} - helenus_cluster_answering_nodes{" +
					ofCluster + "}", "{{datacenter}}", "short"},
			{"Steps that are open", "helenus_cluster_open_steps{" + ofCluster + "}", "{{cluster}}", "short"},
			{"Nodes by phase", "count by (phase) (helenus_agent_phase{" + pods + "} == 1)", "{{phase}}", "short"},
			{"Rights and policies are proven", "helenus_installation_proven", "{{pod}}", "short"},
			{"Restarts of JVMs", "increase(helenus_agent_jvm_restarts_total{" + pods + "}[1h])", "{{pod}}", "short"},
			{"Actions of agents that fail", "helenus_agent_failing_action{" + pods + "}", "{{pod}} {{action}}",
				"short"},
		}},
	}
}

// Variable is one that a person chooses, among the values of a label.
type Variable struct{ Name, Selector, Label string }

// Variables of a dashboard, in the order in which they are chosen.
func (d Dashboard) Variables() (out []Variable) {
	if !d.Fleet {
		out = append(out, Variable{"namespace", "helenus_cluster_nodes", "namespace"},
			Variable{"cluster", `helenus_cluster_nodes{namespace="$namespace"}`, "cluster"})
	}
	if d.Variable != "" {
		out = append(out, Variable{d.Variable, "cassandra_table_sstables{" + pods + "}", d.Variable})
	}
	return out
}

type object = map[string]any

// JSON is a dashboard as Grafana imports it. Two panels stand side by side.
func (d Dashboard) JSON() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	variables := []object{{"name": "datasource", "type": "datasource", "query": "prometheus"}}
	for _, c := range d.Variables() {
		variables = append(variables, object{"name": c.Name, "type": "query", "datasource": source, "refresh": 2,
			"sort": 1, "query": fmt.Sprintf("label_values(%s, %s)", c.Selector, c.Label)})
	}
	var panels []object
	for i, p := range d.Panels {
		panels = append(panels, object{"id": i + 1, "type": "timeseries", "title": p.Title, "datasource": source,
			"gridPos":     object{"h": 8, "w": 12, "x": i % 2 * 12, "y": i / 2 * 8},
			"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": []any{}},
			"targets": []object{{"refId": "A", "expr": p.Expression, "legendFormat": p.Legend,
				"datasource": source}}})
	}
	text, err := json.MarshalIndent(object{"title": d.Title, "uid": "helenus-" + d.Name, "tags": []string{"helenus"},
		"schemaVersion": 39, "refresh": "30s", "time": object{"from": "now-1h", "to": "now"},
		"templating": object{"list": variables}, "panels": panels}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode dashboard %s: %w", d.Name, err)
	}
	return append(text, '\n'), nil
}

// Values of the variables.
type Values struct{ Namespace, Cluster, Pod, Keyspace string }

// Substitute puts them into an expression.
func (v Values) Substitute(expression string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$namespace", v.Namespace, "$cluster", v.Cluster, "$pod",
		v.Pod, "$keyspace", v.Keyspace).Replace(expression)
}
