package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helenus.io/helenus/tools/generate/alerts"
	"helenus.io/helenus/tools/generate/dashboards"
)

const metricsHead = `<!-- Made by "make generate" from cmd/helenus-metrics/families.tsv; change that. -->
# Metrics of Cassandra

The agent of each node serves them on port 7782, behind [its own](status.md#metrics), as text or as OpenMetrics, and
compressed if Prometheus asks for it. They are the same of Cassandra 4.1 and 5.0. Namespace, cluster, datacenter, rack
and pod are labels that Prometheus adds.
` + "`cassandra_up`" + ` is 0, and nothing else of Cassandra is there, while the JVM is down, or does not answer within 10 s.
How it works: [ADR 21](../adr/0021-metrics-agent.md).

- Latencies are histograms, counted since the JVM started, so that they can be added over nodes: ` + "`histogram_quantile(" +
	"0.99, sum by (le) (rate(cassandra_client_request_latency_seconds_bucket{operation=\"Read\"}[5m])))`" + `. Cassandra's own
  buckets grow by a fifth; each counts at its upper bound.
- What walks the disk or all SSTables of a table is read at most once a minute: *slow* below.
- The sources are beans of ` + "`org.apache.cassandra.metrics`" + ` as type and name; others are of the JVM and of the Java agent.

## Metrics of tables

Each table has 46 series on each node. Which tables have them says the cluster; a change restarts nothing:

` + "```yaml" + `
spec:
  metrics:
    tables:
      mode: Top            # Top, All (up to 1,000 tables), None; default: Top
      limit: 100           # of Top, 1 to 1000
      include: ["shop.*"]  # come first, in every mode
      exclude: ["*.tmp_*"] # only in the sum, even if included
` + "```" + `

Top are the tables with the most reads and writes of the last minutes; one that is shown stays until another has twice
as many. The others are summed per keyspace, with an empty label ` + "`table`" + `; of quantiles and greatest values the
sum is the greatest. A sum of counters counts what happened while tables were in it, and never goes back when one
leaves it. A page has at most limit × 46 + 2,500 series: ` + "`cassandra_exporter_series_dropped`" + ` is how many more there were.

## Metrics beside these

` + "`spec.metrics.extra`" + ` names other metrics of Cassandra's registry, with ` + "`*`" + ` for any number of characters. A change restarts nothing:

` + "```yaml" + `
spec:
  metrics:
    extra: ["org.apache.cassandra.metrics.Index.*"]  # at most 32, and 2,000 series on each node
` + "```" + `

They are shown by their name in the registry and in the unit of Cassandra: ` + "`cassandra_extra`" + ` has gauges and counters,
` + "`cassandra_extra_events_total`" + ` how often a meter, timer or histogram was used, ` + "`cassandra_extra_p99`" + ` the 99th percentile of the
last two. What is no number is left out, and what is beyond the 2,000 counts in ` + "`cassandra_exporter_series_dropped`" + `. Each
gauge is read at each scrape, also one that walks the disk.

## Scraping

Where Kubernetes has the kind PodMonitor of the operator of Prometheus, Helenus makes one for each ring, of the
cluster's name, and removes it with the cluster. It comes as soon as the kind does, is restored if somebody deletes or
changes it, and adds the labels ` + "`cluster`, `datacenter` and `rack`" + `; Prometheus itself adds ` + "`namespace` and `pod`" + `, which
[alerts](alerts.md) and dashboards go by. A PodMonitor of the same name that somebody else has made stays as it is.

` + "```yaml" + `
spec:
  metrics:
    podMonitor:
      mode: Auto               # Auto or None; default: Auto
      interval: 30s            # 5s to 1h
      labels: {release: prom}  # by which your Prometheus selects PodMonitors
` + "```" + `

Without that operator: the port of the agent's container is called ` + "`metrics`" + `.

The NetworkPolicy of a new ring allows scrapes only from the peers in [` + "`security.networkPolicy.metrics`" + `](security.md#who-may-reach-a-ring).

## All metrics

| metric | type | labels | source | what | dashboards and alerts |
|---|---|---|---|---|---|
`

// uses of a metric by dashboards and alerts.
func uses(name string) (out []string) {
	word := regexp.MustCompile(`\b` + name + `(_bucket|_count)?\b`)
	for _, d := range dashboards.All() {
		if slices.ContainsFunc(d.Panels, func(p dashboards.Panel) bool { return word.MatchString(p.Expression) }) {
			out = append(out, d.Name)
		}
	}
	for _, a := range alerts.All() {
		if word.MatchString(a.Expression) {
			out = append(out, fmt.Sprintf("[%s](alerts.md#%s)", a.Name, strings.ToLower(a.Name)))
		}
	}
	return out
}

// writeMetrics writes the page of Cassandra's metrics from their table.
func writeMetrics(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "cmd", "helenus-metrics", "families.tsv"))
	if err != nil {
		return fmt.Errorf("read the metrics of Cassandra: %w", err)
	}
	out := bytes.NewBufferString(metricsHead)
	for line := range strings.Lines("cassandra_up\tgauge\tagent\tnone\t1\tnone\tWhether the JVM gave its metrics.\n" +
		string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 7 {
			return fmt.Errorf("read the metrics of Cassandra: %q has not seven fields", line)
		}
		labels := map[string]string{"none": "", "table": "`keyspace` `table`", "peer": "`peer_datacenter`"}
		label, named := labels[f[3]]
		if !named {
			label = "`" + f[3] + "`"
		}
		source := "`" + strings.ReplaceAll(f[2], ",", "` `") + "`"
		if strings.HasSuffix(f[4], "slow") {
			source += ", slow"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s |\n", f[0], f[1], label, source, f[6],
			strings.Join(uses(f[0]), " "))
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "guide", "metrics.md"), out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the metrics of Cassandra: %w", err)
	}
	return nil
}
