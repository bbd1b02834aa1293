package main

import (
	"reflect"
	"strings"
	"testing"
)

const code = `package p

func first(a, b int) bool {
	return a <= b && a-1 != b
}

var limit = 3 - 2

func (t T) second() (n int) {
	n <<= 2
	return
}
`

func mutantAt(t *testing.T, line int, at, operator, status string) mutant {
	t.Helper()
	s, err := parseSource("p/p.go", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.mutant(line, strings.Index(string(s.lines[line-1]), at)+1, operator, status)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheMutantIsTheCodeThatGremlinsMade(t *testing.T) {
	for _, c := range []struct {
		line                       int
		at, operator, in, to, text string
	}{
		{4, "<=", "CONDITIONALS_BOUNDARY", "first", "return a < b && a-1 != b", "return a <= b && a-1 != b"},
		{4, "<=", "CONDITIONALS_NEGATION", "first", "return a > b && a-1 != b", "return a <= b && a-1 != b"},
		{4, "&&", "INVERT_LOGICAL", "first", "return a <= b || a-1 != b", "return a <= b && a-1 != b"},
		{4, "-", "ARITHMETIC_BASE", "first", "return a <= b && a+1 != b", "return a <= b && a-1 != b"},
		{7, "-", "INVERT_NEGATIVES", "", "var limit = 3 + 2", "var limit = 3 - 2"},
		{10, "<<=", "INVERT_BWASSIGN", "second", "n >>= 2", "n <<= 2"},
		{10, "<<=", "REMOVE_SELF_ASSIGNMENTS", "second", "n = 2", "n <<= 2"},
	} {
		m := mutantAt(t, c.line, c.at, c.operator, statusLived)
		if want := (key{File: "p/p.go", Func: c.in, Code: c.text, Mutant: c.to}); m.key != want {
			t.Errorf("%s at line %d: got %+v, want %+v", c.operator, c.line, m.key, want)
		}
		if want := strings.Replace(code, c.text, c.to, 1); string(m.mutated) != want {
			t.Errorf("%s at line %d: the mutated file is\n%s", c.operator, c.line, m.mutated)
		}
	}
}

func TestAPositionWithoutTheOperatorIsAnError(t *testing.T) {
	s, err := parseSource("p/p.go", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range [][2]int{{4, 2}, {99, 1}, {0, 1}, {4, 0}, {4, 400}} {
		if m, err := s.mutant(at[0], at[1], "CONDITIONALS_BOUNDARY", statusLived); err == nil {
			t.Errorf("line %d, column %d: got %+v, want an error", at[0], at[1], m.key)
		}
	}
}

func TestMutantsThatAreAlikeCountOnce(t *testing.T) {
	killed := mutantAt(t, 4, "-", "ARITHMETIC_BASE", statusKilled)
	lived := mutantAt(t, 4, "-", "INVERT_NEGATIVES", statusLived)
	same := killed
	same.Mutant = same.Code
	for _, in := range [][]mutant{{killed, lived, same}, {lived, same, killed}} {
		if got := unique(in); len(got) != 1 || got[0].status != statusLived {
			t.Errorf("got %d mutants, first %q; want the one that lived", len(got), got[0].status)
		}
	}
}

func TestInnerModulesAreNotCopied(t *testing.T) {
	got := ofRootModule([]string{"go.mod", "main.go", "a/a.go", "tool/go.mod", "tool/x/x.go", "toolbox/b.go"})
	if want := []string{"go.mod", "main.go", "a/a.go", "toolbox/b.go"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
