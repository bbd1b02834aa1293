package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What gremlins leaves undone is tried on a module of one function.
func TestMutantsThatGremlinsDidNotTry(t *testing.T) {
	g := gremlins{module: t.TempDir()}
	for name, content := range map[string]string{
		"go.mod":      "module example.org/m\n\ngo 1.26.0\n",
		"p/p.go":      "package p\n\nfunc Sign(n int, s string) string {\n\tswitch {\n\tcase n < 0:\n\t\treturn \"-\" + s\n\tcase n > 99:\n\t\treturn s\n\t}\n\treturn s\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSign(t *testing.T) {\n\tif Sign(-1, \"1\") != \"-1\" || Sign(0, \"0\") != \"0\" {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		file := filepath.Join(g.module, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readSource(g.module, "p/p.go")
	if err != nil {
		t.Fatal(err)
	}
	var mutants []mutant
	for _, c := range []struct {
		line, column int
		operator     string
		status       string
	}{
		{5, 9, "CONDITIONALS_BOUNDARY", statusNotCovered},
		{7, 9, "CONDITIONALS_BOUNDARY", statusNotCovered},
		{6, 14, "ARITHMETIC_BASE", statusKilled},
		{6, 14, "ARITHMETIC_BASE", statusNotCovered},
		{5, 9, "CONDITIONALS_NEGATION", statusKilled},
	} {
		m, err := s.mutant(c.line, c.column, c.operator, c.status)
		if err != nil {
			t.Fatal(err)
		}
		mutants = append(mutants, m)
	}
	if err := g.finish(t.Context(), "p", mutants, io.Discard); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{statusKilled, statusNotCovered, statusNotViable, statusNotViable, statusKilled} {
		if mutants[i].status != want {
			t.Errorf("%s: %s, want %s", mutants[i].Mutant, mutants[i].status, want)
		}
	}
}
