package queries

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/metrics"
	"helenus.io/helenus/tools/generate/dashboards"
)

// recorded are the values of the variables of what was recorded.
var recorded = dashboards.Values{Namespace: "shop", Cluster: "orders", Pod: "orders-dc1-r1-0", Keyspace: "shop"}

// replayed are the recordings in testdata, each for itself: "go test -record" of TestMetrics in
// test/agent, and of TestRecordOperator in internal/simulate/trial, make them.
func replayed(t *testing.T) map[string]*Store {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.gz")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Store{}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		pod := strings.TrimSuffix(filepath.Base(path), ".gz")
		s := NewStore(t)
		if err := s.Replay(t.Context(), text, map[string]string{"namespace": "shop", "pod": pod}); err != nil {
			t.Fatalf("%s: %s", path, err)
		}
		_ = file.Close() // it was only read
		all[pod] = s
	}
	return all
}

// Every expression of dashboards and alerts gives numbers of an operator or of nodes that were
// recorded.
func TestEveryExpressionGivesSomething(t *testing.T) {
	stores := replayed(t)
	empty := func(expression string) bool {
		for _, s := range stores {
			gives, err := s.Gives(t.Context(), expression)
			if err != nil {
				t.Error(err)
			}
			if gives {
				return false
			}
		}
		return true
	}
	all, err := All(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		nothing := empty(q.Expression)
		why, excepted := Silent[q.Where]
		switch {
		case nothing && !excepted:
			t.Errorf("%s gives nothing: %s", q.Where, q.Expression)
		case !nothing && excepted:
			t.Errorf("%s gives something, and is said to be empty: %s", q.Where, why)
		}
	}
	for where := range Silent {
		if !slices.ContainsFunc(all, func(q Query) bool { return q.Where == where }) {
			t.Errorf("%s is said to be empty, and is nowhere", where)
		}
	}
}

const (
	ofTheExporter = "it is of the exporter itself, for those who look into that"
	ofTheUser     = "only who chose it knows what it means"
	byHits        = "the share of hits says whether the cache is large enough"
	byWaiting     = "what waits, and for how long, is shown"
)

// unused are the metrics that no dashboard and no alert shows, and why.
var unused = map[string]string{
	"cassandra_thread_pool_tasks_blocked_total":   byWaiting,
	"cassandra_thread_pool_tasks_completed_total": byWaiting,
	"cassandra_internode_expired_messages_total":  "they count among those that were dropped",
	"cassandra_internode_timeouts_total":          "the timeouts that clients see are shown",
	"cassandra_compaction_tasks_completed_total":  "the bytes compacted are shown",
	"cassandra_hints_in_progress":                 "hints created and kept are shown",
	"cassandra_cache_entries":                     byHits,
	"cassandra_cache_size_bytes":                  byHits,
	"cassandra_cache_capacity_bytes":              byHits,
	"cassandra_commitlog_pending_tasks":           byWaiting,
	"cassandra_commitlog_tasks_completed_total":   byWaiting,
	"cassandra_commitlog_segment_waiting_seconds": byWaiting,
	"cassandra_jvm_gc_collections_total":          "the time spent in collections is shown",
	"cassandra_jvm_memory_max_bytes":              "it is set by the spec",
	"cassandra_jvm_threads":                       "tasks by pool are shown",
	"cassandra_table_disk_total_bytes":            "the size of live SSTables is shown",
	"cassandra_table_tombstones_per_read_p99":     "the most per read is shown",
	"cassandra_extra":                             ofTheUser,
	"cassandra_extra_events_total":                ofTheUser,
	"cassandra_extra_p99":                         ofTheUser,
	"cassandra_exporter_tables":                   ofTheExporter,
	"cassandra_exporter_tables_summed":            ofTheExporter,
	"cassandra_exporter_failures_total":           ofTheExporter,
	"cassandra_exporter_page_seconds":             ofTheExporter,
	"helenus_cluster_notices":                     "notices are shown by reason",
	"helenus_agent_ready":                         "the operator's count of ready nodes is shown",
}

// Every metric is shown by a dashboard or an alert, or there is a reason.
func TestEveryMetricIsUsed(t *testing.T) {
	used := map[string]bool{}
	all, err := All(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		families, err := Families(q.Expression)
		if err != nil {
			t.Fatal(err)
		}
		for name := range families {
			used[name] = true
		}
	}
	var exported []string
	for _, f := range slices.Concat(metrics.OfCluster, metrics.OfOperator, metrics.OfAgent) {
		exported = append(exported, f.Name)
	}
	text, err := os.ReadFile("../../../cmd/helenus-metrics/families.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, found := strings.Cut(line, "\t"); found {
			exported = append(exported, name)
		}
	}
	for _, name := range exported {
		why, excepted := unused[name]
		switch {
		case !used[name] && !excepted:
			t.Errorf("%s is shown nowhere", name)
		case used[name] && excepted:
			t.Errorf("%s is shown, and is said not to be: %s", name, why)
		}
	}
	for name := range unused {
		if !slices.Contains(exported, name) {
			t.Errorf("%s is said to be shown nowhere, and nobody exports it", name)
		}
	}
}
