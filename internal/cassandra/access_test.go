package cassandra

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/config"
)

// What agents call is what Jolokia is allowed: one that is missing would be refused at run time.
func TestEveryOperationIsAllowed(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`"([a-zA-Z]+)\([^ "]*\)"`).FindAllSubmatch(text, -1) {
			found++
			if operation := string(match[1]); !config.Calls(operation) {
				t.Errorf("%s: Jolokia is not allowed to call %s", name, operation)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d operations were found", found)
	}
}
