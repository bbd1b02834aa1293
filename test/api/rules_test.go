package api

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

const definitions = "../../config/crd"

// TestRules tries every case, and then asks whether each rule of the schemas has refused and
// accepted something.
func TestRules(t *testing.T) {
	all, err := rules(definitions)
	must(t, err)
	if len(all) == 0 {
		t.Fatal("the definitions have no rules")
	}
	shown := newCoverage(all)
	files, err := caseFiles()
	must(t, err)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		t.Run(file, func(t *testing.T) { runCases(t, files[file], shown) })
	}
	t.Run("owned-options", func(t *testing.T) { runCases(t, ownedOptions(), shown) })
	t.Run("owned-variables", func(t *testing.T) { runCases(t, ownedVariables(), shown) })
	t.Run("every-rule-was-shown", func(t *testing.T) {
		for _, gap := range shown.missing() {
			t.Error(gap)
		}
		t.Logf("%d rules", len(all))
	})
}

func runCases(t *testing.T, cases []testCase, shown *coverage) {
	for _, c := range cases {
		if len(c.At) == 0 {
			t.Errorf("%s: no place to try it at", c.Name)
		}
		for _, at := range c.At {
			t.Run(c.Name+"/"+strings.ReplaceAll(at, " ", ":"), func(t *testing.T) { c.run(t, at, shown) })
		}
	}
}

// settingsAt and the next are the places that have the settings of a node.
var (
	levels = []string{"CassandraCluster spec.node", "CassandraCluster spec.datacenters[0].node",
		"CassandraCluster spec.datacenters[0].racks[0].node"}
	settingsAt = append(slices.Clone(levels), "CassandraNode spec.configuration")
)

func ownedOptions() []testCase {
	cases := []testCase{{
		Name: "others are free", At: settingsAt,
		Value: map[string]any{"jvm": map[string]any{"options": []any{"-XX:+UseG1GC",
			"-Dcassandra.available_processors=4", "-Xss512k"}}},
	}}
	for _, group := range v1alpha1.OwnedJVMOptions {
		for _, name := range group.Names {
			option := name + "=1"
			cases = append(cases, testCase{
				Name: name, At: settingsAt, Refused: "option " + option + " is set by Helenus: " + group.Instead,
				Value: map[string]any{"jvm": map[string]any{"options": []any{"-Xss512k", option}}},
			})
		}
	}
	return cases
}

func ownedVariables() []testCase {
	cases := []testCase{{
		Name: "others are free", At: settingsAt,
		Value: map[string]any{"environment": []any{map[string]any{"name": "EXTRA_CLASSPATH", "value": "/x"}}},
	}}
	for _, group := range v1alpha1.OwnedVariables {
		for _, name := range group.Names {
			cases = append(cases, testCase{
				Name: name, At: settingsAt, Refused: "variable " + name + " is set by Helenus: " + group.Instead,
				Value: map[string]any{"environment": []any{map[string]any{"name": name, "value": "x"}}},
			})
		}
	}
	return cases
}

// TestCoverageSeesGaps holds the account of rules to its word: a rule that nothing refused is
// missed, and so is one that nothing was accepted by.
func TestCoverageSeesGaps(t *testing.T) {
	r := rule{kind: "K", path: ".spec.names[]", expression: "self != ''",
		words: regexp.MustCompile(`must not be empty$`)}
	shown := newCoverage([]rule{r})
	shown.refusal("K", []metav1.StatusCause{{Field: "spec.names[3]", Message: `Invalid value: "string": is too long`}})
	shown.refusal("K", []metav1.StatusCause{{Field: "spec.other[3]", Message: `must not be empty`}})
	shown.refusal("L", []metav1.StatusCause{{Field: "spec.names[3]", Message: `must not be empty`}})
	shown.acceptance("K", map[string]any{"spec": map[string]any{"names": []any{}}}, nil)
	if got := shown.missing(); len(got) != 2 {
		t.Fatalf("missing = %q, want the refused and the accepted object", got)
	}
	shown.refusal("K", []metav1.StatusCause{{Field: "spec.names[3]",
		Message: `Invalid value: "string": must not be empty`}})
	shown.acceptance("K", map[string]any{"spec": map[string]any{"names": []any{"x"}}}, nil)
	if got := shown.missing(); len(got) != 0 {
		t.Fatalf("missing = %q, want none", got)
	}
}
