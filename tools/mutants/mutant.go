package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What gremlins says of a mutant.
const (
	statusKilled     = "KILLED"
	statusLived      = "LIVED"
	statusNotCovered = "NOT COVERED"
	statusTimedOut   = "TIMED OUT"
	statusNotViable  = "NOT VIABLE"
)

// statusHangs is a mutant that timed out when it was tried alone, too.
const statusHangs = "HANGS"

// mutant is one changed operator.
type mutant struct {
	key
	line, column int
	operator     string // of gremlins, such as CONDITIONALS_BOUNDARY
	status       string
	// mutated is the whole file with the change.
	mutated []byte
}

// key names a mutant by what it is and not by where it stands, so that it has the same name when
// lines are added above it.
type key struct {
	File   string `json:"file"`
	Func   string `json:"func,omitempty"`
	Code   string `json:"code"`
	Mutant string `json:"mutant"`
}

func (m mutant) survived() bool { return m.status == statusLived || m.status == statusNotCovered }

// replaced is what gremlins puts in the place of an operator, by the kind of the mutation.
var replaced = map[string]map[string]string{
	"ARITHMETIC_BASE":       {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
	"CONDITIONALS_BOUNDARY": {">=": ">", ">": ">=", "<=": "<", "<": "<="},
	"CONDITIONALS_NEGATION": {"==": "!=", "!=": "==", ">=": "<", "<": ">=", ">": "<=", "<=": ">"},
	"INCREMENT_DECREMENT":   {"++": "--", "--": "++"},
	"INVERT_ASSIGNMENTS":    {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "%=": "%="},
	"INVERT_BITWISE":        {"&": "|", "|": "&", "^": "&", "&^": "&", "<<": ">>", ">>": "<<"},
	"INVERT_BWASSIGN":       {"&=": "|=", "|=": "&=", "^=": "&=", "&^=": "&=", "<<=": ">>=", ">>=": "<<="},
	"INVERT_LOGICAL":        {"&&": "||", "||": "&&"},
	"INVERT_LOOPCTRL":       {"break": "continue", "continue": "break"},
	"INVERT_NEGATIVES":      {"-": "+"},
	"REMOVE_SELF_ASSIGNMENTS": {"+=": "=", "-=": "=", "*=": "=", "/=": "=", "%=": "=", "&=": "=", "|=": "=", "^=": "=",
		"<<=": "=", ">>=": "=", "&^=": "="},
}

// source is a file of Go code.
type source struct {
	name  string
	lines [][]byte
	funcs []function
}

// function spans lines, both ends included.
type function struct {
	name     string
	from, to int
}

func readSource(module, name string) (*source, error) {
	content, err := os.ReadFile(filepath.Join(module, name))
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	return parseSource(name, content)
}

func parseSource(name string, content []byte) (*source, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse source: %w", err)
	}
	s := &source{name: name, lines: bytes.SplitAfter(content, []byte("\n"))}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			s.funcs = append(s.funcs, function{name: f.Name.Name, from: files.Position(f.Pos()).Line,
				to: files.Position(f.End()).Line})
		}
	}
	return s, nil
}

// mutant makes the change again that gremlins made at a position.
func (s *source) mutant(line, column int, operator, status string) (mutant, error) {
	at := fmt.Sprintf("%s:%d:%d", s.name, line, column)
	if line < 1 || line > len(s.lines) || column < 1 || column > len(s.lines[line-1]) {
		return mutant{}, fmt.Errorf("%s is not in the file", at)
	}
	text := s.lines[line-1]
	before, rest := text[:column-1], text[column-1:]
	// The longest operator counts: the one at "<<=" is not "<".
	var from string
	for have := range replaced[operator] {
		if bytes.HasPrefix(rest, []byte(have)) && len(have) > len(from) {
			from = have
		}
	}
	if from == "" {
		return mutant{}, fmt.Errorf("%s: %q does not begin with an operator of %s: it is another release of gremlins "+
			"than this program knows", at, rest, operator)
	}
	changed := slices.Concat(before, []byte(replaced[operator][from]), rest[len(from):])
	m := mutant{line: line, column: column, operator: operator, status: status}
	m.key = key{File: s.name, Func: s.funcAt(line), Code: strings.TrimSpace(string(text)),
		Mutant: strings.TrimSpace(string(changed))}
	m.mutated = slices.Concat(bytes.Join(s.lines[:line-1], nil), changed, bytes.Join(s.lines[line:], nil))
	return m, nil
}

func (s *source) funcAt(line int) string {
	for _, f := range s.funcs {
		if f.from <= line && line <= f.to {
			return f.name
		}
	}
	return ""
}

// unique drops mutants that change nothing, and those that two kinds of mutation make alike, of
// which the one that survived is kept.
func unique(in []mutant) []mutant {
	slices.SortStableFunc(in, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column),
			cmp.Compare(a.Mutant, b.Mutant))
	})
	var out []mutant
	for _, m := range in {
		if m.Code == m.Mutant {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].key == m.key && out[last].line == m.line &&
			out[last].column == m.column {
			if m.survived() {
				out[last] = m
			}
			continue
		}
		out = append(out, m)
	}
	return out
}
