package dashboards

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"helenus.io/helenus/internal/core/metrics"
)

// labels that a scrape adds.
var scraped = []string{"namespace", "pod"}

// known are the labels of every metric by name.
func known(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	add := func(name, kind string, labels []string) {
		labels = slices.Concat(labels, scraped)
		if kind == "histogram" {
			all[name+"_count"], all[name+"_bucket"] = labels, append(slices.Clone(labels), "le")
			return
		}
		all[name] = labels
	}
	for _, f := range slices.Concat(metrics.OfCluster, metrics.OfOperator, metrics.OfAgent) {
		add(f.Name, f.Type, f.Labels)
	}
	text, err := os.ReadFile("../../../cmd/helenus-metrics/families.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); len(f) == 7 {
			labels := map[string][]string{"none": nil, "table": {"keyspace", "table"}, "peer": {"peer_datacenter"}}
			of, named := labels[f[3]]
			if !named {
				of = []string{f[3]}
			}
			add(f[0], f[1], of)
		}
	}
	return all
}

// Every expression parses, and selects and groups by labels that the metric has; a legend names
// only what the result has.
func TestEveryExpressionHasItsMetricsAndLabels(t *testing.T) {
	all := known(t)
	chosen := Values{"shop", "orders", "orders-dc1-r1-0", "cart"}
	for _, d := range All() {
		if _, err := d.JSON(); err != nil {
			t.Error(err)
		}
		for _, p := range d.Panels {
			if d.Fleet && strings.Contains(p.Expression, "$namespace") {
				t.Errorf("%s, %s goes by a choice that the fleet has not", d.Name, p.Title)
			}
			expression, err := parser.NewParser(parser.Options{}).ParseExpr(chosen.Substitute(p.Expression))
			if err != nil {
				t.Errorf("%s, %s: %v", d.Name, p.Title, err)
				continue
			}
			var has, groups []string
			parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
				switch n := node.(type) {
				case *parser.VectorSelector:
					labels, found := all[n.Name]
					if !found {
						t.Errorf("%s, %s goes by %s, which nobody exports", d.Name, p.Title, n.Name)
					}
					has = append(has, labels...)
					for _, m := range n.LabelMatchers {
						if m.Name != "__name__" && !slices.Contains(labels, m.Name) {
							t.Errorf("%s, %s: %s has no label %s", d.Name, p.Title, n.Name, m.Name)
						}
					}
				case *parser.AggregateExpr:
					groups = append(groups, n.Grouping...)
				}
				return nil
			})
			for _, g := range groups {
				if !slices.Contains(has, g) {
					t.Errorf("%s, %s groups by %s, which its metrics have not", d.Name, p.Title, g)
				}
			}
			for part := range strings.SplitSeq(p.Legend, "{{") {
				if name, _, found := strings.Cut(part, "}}"); found && !slices.Contains(has, name) {
					t.Errorf("%s, %s: the legend names %s", d.Name, p.Title, name)
				}
			}
		}
	}
}
