//go:build cassandra

package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/layout"
)

var record = flag.String("record", "", "`directory` into which TestMetrics writes pages for the tests of "+
	"dashboards and alerts (default: none)")

// envAgentImage is the file of the agent's image, as `images path helenus-agent` prints it.
const envAgentImage = "HELENUS_AGENT_IMAGE"

// takeMetricsJar takes the Java agent out of the agent's image.
func (w *world) takeMetricsJar() {
	w.t.Helper()
	image := os.Getenv(envAgentImage)
	if image == "" {
		w.t.Skipf("%s is not set", envAgentImage)
	}
	unpacked := filepath.Join(w.directory, "agent-image")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		w.t.Fatal(err)
	}
	run(w.t, "tar", "-xf", image, "-C", unpacked)
	var manifest []struct{ Layers []string }
	read(w.t, filepath.Join(unpacked, "manifest.json"), &manifest)
	for _, layer := range manifest[0].Layers {
		run(w.t, "tar", "-xzf", filepath.Join(unpacked, layer), "-C", unpacked)
	}
	run(w.t, "cp", filepath.Join(unpacked, layout.InstallDir, "helenus-metrics.jar"), w.bin)
}

// page is what Prometheus gets of a pod: types by family, values by series.
type page struct {
	types  map[string]string
	series map[string]float64
}

var sampleLine = regexp.MustCompile(`^([a-z_0-9]+(?:\{.*\})?) (\S+)$`)

func (p *pod) text(t *testing.T) string {
	t.Helper()
	return run(t, "curl", "-sS", "--fail", "--compressed", "--max-time", "20",
		fmt.Sprintf("http://%s:%d%s", p.address, layout.MetricsPort, layout.MetricsPath))
}

func (p *pod) scrape(t *testing.T) page {
	t.Helper()
	text := p.text(t)
	got := page{types: map[string]string{}, series: map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if kind, found := strings.CutPrefix(line, "# TYPE "); found {
			name, kind, _ := strings.Cut(kind, " ")
			got.types[name] = kind
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		match := sampleLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("line %q", line)
		}
		value, err := strconv.ParseFloat(match[2], 64)
		if err != nil || math.IsNaN(value) {
			t.Fatalf("line %q: %v", line, err)
		}
		if _, twice := got.series[match[1]]; twice {
			t.Errorf("%s is there twice", match[1])
		}
		got.series[match[1]] = value
	}
	return got
}

// tablesOf are the tables of a keyspace with a series of their own; the sum is the empty name.
func (p page) tablesOf(keyspace string) []string {
	var tables []string
	for series := range p.series {
		if rest, found := strings.CutPrefix(series, `cassandra_table_sstables{keyspace="`+keyspace+`",table="`); found {
			tables = append(tables, strings.TrimSuffix(rest, `"}`))
		}
	}
	slices.Sort(tables)
	return tables
}

// registry begins the names of Cassandra's registry.
const registry = "org.apache.cassandra.metrics."

const sumOfWrites = `cassandra_table_write_latency_seconds_count{keyspace="shop",table=""}`

// TestMetrics has two nodes, of which each has a peer, and a hundred tables: every metric of the
// table of metrics is there with its type, whatever the release; what is not shown is summed.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.takeMetricsJar()
	pods := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(pods[0].address)
	internode, clients := newTrust(t), newTrust(t)
	for _, p := range pods {
		w.change(p.name, encrypts(v1alpha1.EncryptionOptional, v1alpha1.ClientCertificatesNone))
		internode.give(p, v1alpha1.UseInternode)
		clients.give(p, v1alpha1.UseClients)
		p.start()
	}
	w.awaitEmpty(pods...)
	p := pods[0]
	if up := p.scrape(t).series["cassandra_up"]; up != 0 {
		t.Errorf("cassandra_up %v before the JVM runs", up)
	}
	w.form(pods...)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	session, err := p.logIn(ctx, cassandra.Login{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	change := func(statement string) {
		t.Helper()
		if err := session.Change(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	const tables, rows = 100, 5
	change("CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2}")
	for i := range tables {
		change(fmt.Sprintf("CREATE TABLE shop.t%03d (k int PRIMARY KEY, v text)", i))
	}
	write := func(rows int) {
		t.Helper()
		for i := range tables {
			for k := range rows {
				change(fmt.Sprintf("INSERT INTO shop.t%03d (k, v) VALUES (%d, 'x')", i, k))
			}
		}
	}
	write(rows)

	// The agent gets a change by its watch of the record.
	until := func(what string, ok func(page) bool) page {
		t.Helper()
		for range 60 {
			if got := p.scrape(t); ok(got) {
				return got
			}
			_ = exec.CommandContext(ctx, "sleep", "0.5").Run()
		}
		t.Fatalf("%s did not come", what)
		return page{}
	}
	w.part("every metric", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.ExtraMetrics = []v1alpha1.MetricPattern{registry + "Table.*.shop.t007", registry + "Client.*"}
		})
		got := until("the extra metrics", func(got page) bool { return got.types["cassandra_extra"] != "" })
		text, err := os.ReadFile("../../cmd/helenus-metrics/families.tsv")
		if err != nil {
			t.Fatal(err)
		}
		families := 1 // cassandra_up
		for line := range strings.Lines(string(text)) {
			if field := strings.Split(line, "\t"); !strings.HasPrefix(line, "#") {
				families++
				if got.types[field[0]] != field[1] {
					t.Errorf("%s is %q, want %q", field[0], got.types[field[0]], field[1])
				}
			}
		}
		for name := range got.types {
			if strings.HasPrefix(name, "cassandra_") {
				families--
			}
		}
		if families != 0 {
			t.Errorf("%d metrics too few", families)
		}
		for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
			start := got.series[`helenus_agent_certificate_start_timestamp_seconds{use="`+string(use)+`"}`]
			end := got.series[`helenus_agent_certificate_end_timestamp_seconds{use="`+string(use)+`"}`]
			if life := end - start; life < time.Hour.Seconds() || life > 2*time.Hour.Seconds() {
				t.Errorf("the certificate for %s is valid from %v to %v", use, start, end)
			}
		}
		for series, want := range map[string]float64{
			"cassandra_up": 1, "cassandra_exporter_failures_total": 0, "cassandra_exporter_series_dropped": 0,
			`cassandra_table_write_latency_seconds_count{keyspace="shop",table="t007"}`:            rows,
			`cassandra_table_write_latency_seconds_bucket{keyspace="shop",table="t007",le="+Inf"}`: rows,
			`cassandra_internode_pending_messages{peer_datacenter="dc1"}`:                          0,
			`cassandra_extra_events_total{name="` + registry + `Table.WriteLatency.shop.t007"}`:    rows,
		} {
			if value, found := got.series[series]; !found || value != want {
				t.Errorf("%s is %v, %v, want %v", series, value, found, want)
			}
		}
		if n := got.series[`cassandra_extra{name="`+registry+`Client.ConnectedNativeClients"}`]; n == 0 ||
			n != got.series["cassandra_client_connections"] {
			t.Errorf("%v clients are connected", n)
		}
		if p99 := got.series[`cassandra_extra_p99{name="`+registry+`Table.WriteLatency.shop.t007"}`]; p99 <= 0 {
			t.Errorf("the 99th percentile of writes is %v", p99)
		}
		if sum := got.series[`cassandra_table_write_latency_seconds_sum{keyspace="shop",table="t007"}`]; sum <= 0 ||
			sum > 60 {
			t.Errorf("the writes of a table took %v s", sum)
		}
		t.Logf("%d series of %d tables", len(got.series), int(got.series["cassandra_exporter_tables"]))
	})
	if *record != "" {
		w.part("pages are recorded", func(t *testing.T) {
			for _, p := range pods {
				w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
					s.TableMetrics = &v1alpha1.TableMetrics{Limit: 2, Include: []v1alpha1.TablePattern{"shop.t01*"}}
				})
			}
			until("two tables", func(got page) bool { return len(got.tablesOf("shop")) == 3 })
			pages := make([]bytes.Buffer, len(pods))
			for range 4 {
				for i, p := range pods {
					fmt.Fprintf(&pages[i], "# page %d\n%s\n", time.Now().Unix(), p.text(t))
				}
				write(1)
				for i := range tables / 4 {
					change(fmt.Sprintf("SELECT v FROM shop.t%03d WHERE k = 0", i))
				}
			}
			for i, p := range pods {
				keep(t, filepath.Join(*record, p.name+".gz"), pages[i].Bytes())
			}
		})
	}
	w.part("the rest is summed, and no sum goes back", func(t *testing.T) {
		choose := func(m *v1alpha1.TableMetrics) {
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.TableMetrics = m })
		}
		choose(&v1alpha1.TableMetrics{Limit: 3, Include: []v1alpha1.TablePattern{"shop.t01*"},
			Exclude: []v1alpha1.TablePattern{"*.t010"}})
		got := until("three tables", func(got page) bool { return len(got.tablesOf("shop")) == 4 })
		if tables := got.tablesOf("shop"); !slices.Equal(tables, []string{"", "t011", "t012", "t013"}) {
			t.Errorf("tables %q", tables)
		}
		if n := got.series["cassandra_exporter_tables"] - got.series["cassandra_exporter_tables_summed"]; n != 3 {
			t.Errorf("%v tables have metrics of their own", n)
		}
		before := got.series[sumOfWrites]
		write(2)
		got = p.scrape(t)
		if more := got.series[sumOfWrites] - before; more != 2*(tables-3) {
			t.Errorf("the sum has grown by %v, want %d", more, 2*(tables-3))
		}
		before = got.series[sumOfWrites]
		choose(&v1alpha1.TableMetrics{Mode: v1alpha1.TableMetricsNone})
		got = until("no table", func(got page) bool { return slices.Equal(got.tablesOf("shop"), []string{""}) })
		if after := got.series[sumOfWrites]; after != before {
			t.Errorf("the sum went from %v to %v though nothing was written", before, after)
		}
	})
	w.part("a scrape", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.TableMetrics = nil })
		for range 8 {
			p.scrape(t)
		}
		const scrapes = 20
		var took []time.Duration
		before := processorTicks(t, p.jvm())
		for range scrapes {
			began := time.Now()
			p.scrape(t)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("median %s, most %s, %.0f ms of the JVM's processor time each, %.0f ms in it", took[scrapes/2],
			took[scrapes-1], float64(processorTicks(t, p.jvm())-before)*10/scrapes,
			1000*p.scrape(t).series["cassandra_exporter_page_seconds"])
	})
	w.part("JVM frozen", func(t *testing.T) {
		p.kill(p.jvm(), 19)
		began := time.Now()
		if up := p.scrape(t).series["cassandra_up"]; up != 0 || time.Since(began) > 15*time.Second {
			t.Errorf("cassandra_up %v after %s", up, time.Since(began))
		}
		p.kill(p.jvm(), 18)
	})
}

func keep(t *testing.T, path string, pages []byte) {
	t.Helper()
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
	if _, err := w.Write(pages); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), os.WriteFile(path, out.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// processorTicks of a process: hundredths of a second.
func processorTicks(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+2:])
	var sum int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
