package alerts

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"

	"helenus.io/helenus/internal/core/metrics"
)

// series of each alert, minute by minute: one with which it fires, and one with which it does not
// although it is close.
var series = map[string]struct{ fires, silent string }{
	"HelenusRangesUnserved":   {"helenus_cluster_unserved_ranges 0 3x10", "helenus_cluster_unserved_ranges 3 3 0x10"},
	"HelenusNodeNotServing":   {nodes("ready", "2x20"), nodes("ready", "2x12 3x10")},
	"HelenusNodeNotAnswering": {nodes("answering", "2x20"), nodes("answering", "2x12 3x10")},
	"HelenusClusterStalled": {`helenus_cluster_condition{condition="Stalled"} 1x10`,
		`helenus_cluster_condition{condition="Available"} 1x10`},
	"HelenusStepBlocked": {"helenus_cluster_blocked_steps 1x70", "helenus_cluster_blocked_steps 1x55 0 1x55"},
	"HelenusStepTakesLong": {"helenus_cluster_step_opened_timestamp_seconds 0x1500",
		"helenus_cluster_step_opened_timestamp_seconds 0x1400"},
	"HelenusRepairDeadlineMissed": {"helenus_cluster_repair_deadline_timestamp_seconds 600x90",
		"helenus_cluster_repair_deadline_timestamp_seconds 6000x90"},
	"HelenusBackupDamaged": {"helenus_cluster_backup_damaged_files 0 0 2x5", "helenus_cluster_backup_damaged_files 0x9"},
	"HelenusBackupLate": {"helenus_backup_due_timestamp_seconds 3600x430",
		"helenus_backup_due_timestamp_seconds 3600x410 90000x1000"},
	"HelenusBackupNotProven": {"helenus_restore_drill_due_timestamp_seconds 3600x90",
		"helenus_restore_drill_due_timestamp_seconds 3600x62 90000x100"},
	"HelenusCertificateEnds": {certificate("7200x180"), certificate("7200x97 360000x1500")},
	"HelenusOperatorAbsent":  {"other 1x20", "helenus_pass_seconds_count 7x1500"},
	"HelenusPassesFail":      {"helenus_failed_passes_total 0+1x30", "helenus_failed_passes_total 4 5 5x30"},
	"HelenusJVMRestarts": {"helenus_agent_jvm_restarts_total 0 0 1 2 3x10",
		"helenus_agent_jvm_restarts_total 5 6x10"},
	"HelenusJVMUnreachable": {"helenus_agent_jvm_silence_seconds 0+60x20", "helenus_agent_jvm_silence_seconds 299x20"},
	"HelenusAPIServerUnreachable": {"helenus_agent_api_server_silence_seconds 0+60x30",
		"helenus_agent_api_server_silence_seconds 599x30"},
	"HelenusCommitLogBehind": {"helenus_agent_commit_log_covered_timestamp_seconds 0x30",
		"helenus_agent_commit_log_covered_timestamp_seconds 0+60x30"},
	"HelenusAgentFails":      {"helenus_agent_failing_action 0+1x30", "helenus_agent_failing_action 0+1x12 0x9"},
	"CassandraMetricsAbsent": {"cassandra_up 1 0x20", "cassandra_up 0x14 1 0x14 1"},
	"CassandraRequestsUnavailable": {`cassandra_client_request_unavailables_total{operation="Read"} 0+1x20`,
		`cassandra_client_request_unavailables_total{operation="Read"} 7x20`},
	"CassandraMessagesDropped": {
		`cassandra_dropped_messages_total{verb="READ_REQ"} 0+40x40` + "\n  " +
			`cassandra_dropped_messages_total{verb="MUTATION_REQ"} 0+40x40`,
		`cassandra_dropped_messages_total{verb="READ_REQ"} 0+40x40`},
	"CassandraCompactionsPending": {"cassandra_compaction_pending_tasks 101x70",
		"cassandra_compaction_pending_tasks 101x50 100 101x50"},
	"CassandraSeriesDropped": {"cassandra_exporter_series_dropped 5x20", "cassandra_exporter_series_dropped 5x10 0x10"},
}

// certificate that begins with the test, and ends as said.
func certificate(end string) string {
	return `helenus_agent_certificate_start_timestamp_seconds{use="Clients"} 0x1600` + "\n  " +
		`helenus_agent_certificate_end_timestamp_seconds{use="Clients"} ` + end
}

func nodes(kind, values string) string {
	return "helenus_cluster_nodes 3x30\n  helenus_cluster_" + kind + "_nodes " + values
}

func TestEachAlertFiresAndDoesNot(t *testing.T) {
	for _, a := range All() {
		s, found := series[a.Name]
		if !found {
			t.Errorf("%s has no series", a.Name)
			continue
		}
		if !fires(t, a, s.fires) {
			t.Errorf("%s does not fire with %s", a.Name, s.fires)
		}
		if fires(t, a, s.silent) {
			t.Errorf("%s fires with %s", a.Name, s.silent)
		}
	}
}

// fires says that an alert fires at any minute of a series: its expression gives something all the
// time that it must hold.
func fires(t *testing.T, a Alert, load string) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+load+"\n")
	engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute})
	const aDay = 25 * time.Hour
	query, err := engine.NewRangeQuery(t.Context(), storage, nil, a.Expression, time.Unix(0, 0),
		time.Unix(0, 0).Add(aDay), time.Minute)
	if err != nil {
		t.Fatalf("%s: %s", a.Name, err)
	}
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %s", a.Name, err)
	}
	for _, of := range matrix {
		since := of.Floats[0].T
		for i, at := range of.Floats {
			if i > 0 && at.T-of.Floats[i-1].T > time.Minute.Milliseconds() {
				since = at.T
			}
			if at.T-since >= a.For.Milliseconds() {
				return true
			}
		}
	}
	return false
}

// Alerts go by what is exported, and no label of theirs is another one's.
func TestAlertsGoByMetricsThatExist(t *testing.T) {
	var known []string
	for _, f := range slices.Concat(metrics.OfCluster, metrics.OfOperator, metrics.OfAgent) {
		known = append(known, f.Name, f.Name+"_count")
	}
	text, err := os.ReadFile("../../../cmd/helenus-metrics/families.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "\t")
		known = append(known, name)
	}
	for _, a := range All() {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expression)
		if err != nil {
			t.Fatalf("%s: %s", a.Name, err)
		}
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			if v, is := node.(*parser.VectorSelector); is && !slices.Contains(known, v.Name) {
				t.Errorf("%s goes by %s, which nobody exports", a.Name, v.Name)
			}
			return nil
		})
	}
}
