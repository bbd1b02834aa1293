package trial

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// The table of docs/reliability.md says which scenario, which fault and which test on real
// Cassandra show a case. All of them are there, and no scenario is missing from the document.
func TestTheDocumentNamesWhatThereIs(t *testing.T) {
	const root = "../../.."
	text, err := os.ReadFile(root + "/docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []string
	for _, s := range Catalogue() {
		scenarios = append(scenarios, s.Name)
		if !strings.Contains(string(text), "\n| "+s.Name+" |") && !strings.Contains(string(text), "`"+s.Name+"`") {
			t.Errorf("scenario %s is not in the document", s.Name)
		}
	}
	tests := testsOf(t, root+"/test/e2e", root+"/test/agent")
	_, rest, _ := strings.Cut(string(text), "| case | scenario | fault | on real Cassandra |")
	table, _, _ := strings.Cut(rest, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || strings.HasPrefix(cells[1], "---") || cells[2] == "" {
			continue
		}
		rows++
		for column, there := range map[int][]string{2: append(scenarios, "internal/simulate/pod"), 3: Kinds(),
			4: append(tests, "test/agent", "cassandra")} {
			for _, found := range quoted.FindAllStringSubmatch(cells[column], -1) {
				if !slices.ContainsFunc(there, func(name string) bool {
					is, err := path.Match(found[1], name)
					return err == nil && is
				}) {
					t.Errorf("%s: there is no %s", strings.TrimSpace(cells[1]), found[1])
				}
			}
		}
	}
	if rows == 0 {
		t.Error("the table was not found")
	}
}

// testsOf are the names of the tests in directories, whatever they are built for.
func testsOf(t *testing.T, directories ...string) []string {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	var names []string
	for _, directory := range directories {
		files, err := filepath.Glob(directory + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range function.FindAllStringSubmatch(string(source), -1) {
				names = append(names, found[1])
			}
		}
	}
	return names
}
