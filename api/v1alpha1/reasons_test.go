package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasons of a file: values of the constants by their names.
func reasons(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			name := spec.Names[0].Name
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(spec.Doc.Text(), name+" – ") {
				t.Errorf("%s has no sentence that says what it means", name)
			}
			out[name] = value
		}
		return true
	})
	if len(out) == 0 {
		t.Fatal("no reason was found")
	}
	return out
}

func TestReasonsNameTheProblem(t *testing.T) {
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	seen := map[string]string{}
	for name, value := range reasons(t, "reasons.go") {
		if name != "Blocked"+value && name != "Notice"+value {
			t.Errorf("the constant %s is %q", name, value)
		}
		if !camelCase.MatchString(value) || len(value) > 64 {
			t.Errorf("%q is not a reason in CamelCase", value)
		}
		if other := seen[value]; other != "" {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[value] = name
	}
}

// The tables of docs/guide/status.md have a row for each reason, and for nothing else.
func TestEveryReasonIsInTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/status.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Blocked steps and notices")
	tables, rest, _ := strings.Cut(rest, "## Phases of a node")
	_, rest, _ = strings.Cut(rest, "### Why an agent does not act")
	agent, _, found := strings.Cut(rest, "### Operations")
	if !found {
		t.Fatal("docs/guide/status.md has other headings")
	}
	var rows []string
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(tables+agent, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 {
			continue
		}
		of := cells[0]
		if len(cells) == 4 {
			of = cells[1] // the step comes first
		}
		for _, m := range quoted.FindAllStringSubmatch(of, -1) {
			rows = append(rows, m[1])
		}
	}
	all := reasons(t, "reasons.go")
	for name, value := range all {
		if !slices.Contains(rows, value) {
			t.Errorf("%s is not in docs/guide/status.md", name)
		}
	}
	for _, row := range rows {
		if all["Blocked"+row] == "" && all["Notice"+row] == "" {
			t.Errorf("docs/guide/status.md explains %s, which is no reason", row)
		}
	}
}

// The table of events has a row for each reason of events.go, and for nothing else.
func TestEveryEventIsInTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/status.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Events")
	table, _, found := strings.Cut(rest, "## Metrics")
	if !found {
		t.Fatal("docs/guide/status.md has other headings")
	}
	var want []string
	for name, value := range reasons(t, "events.go") {
		if name != "Event"+value {
			t.Errorf("the constant %s is %q", name, value)
		}
		want = append(want, value)
	}
	var rows []string
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:Normal|Warning) \\| .+ \\|$")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1])
	}
	slices.Sort(want)
	slices.Sort(rows)
	if !slices.Equal(rows, want) {
		t.Errorf("docs/guide/status.md has the events %q, events.go %q", rows, want)
	}
}

// The guide to stores has a row for each reason, and for nothing else.
func TestEveryReasonOfAStoreIsInTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/backup-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	all := reasons(t, "backupstore_reasons.go")
	rows := regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\|").FindAllStringSubmatch(string(text), -1)
	for _, row := range rows {
		if !slices.Contains(slices.Collect(maps.Values(all)), row[1]) {
			t.Errorf("docs/guide/backup-stores.md explains %s, which is no reason", row[1])
		}
	}
	for name, value := range all {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[1] == value }) {
			t.Errorf("%s is not in docs/guide/backup-stores.md", name)
		}
	}
}
