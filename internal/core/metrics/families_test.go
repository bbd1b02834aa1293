package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"helenus.io/helenus/internal/core/metrics"
)

// The guide names every metric with its labels, and no other.
func TestTheGuideNamesEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guide/status.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:helenus|cassandra)_[a-z_]+)` \\| (.*?) \\|").FindAllSubmatch(text, -1) {
		guide[string(row[1])] = string(row[2])
	}
	for _, f := range slices.Concat(metrics.OfCluster, metrics.OfOperator, metrics.OfAgent) {
		labels := ""
		for _, l := range f.Labels {
			if l == "namespace" || l == "cluster" {
				continue // the guide says so above the table
			}
			labels += "`" + l + "`"
		}
		if described, found := guide[f.Name]; !found || described != labels {
			t.Errorf("%s has labels %q, and in the guide %q", f.Name, labels, described)
		}
		delete(guide, f.Name)
	}
	for name := range guide {
		t.Errorf("the guide names %s, which nobody exports", name)
	}
}
