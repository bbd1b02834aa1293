package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// try is a mutant and what is known of it.
type try struct {
	line, column     int
	operator, status string
}

// finished says what becomes of mutants of a module of one package.
func finished(t *testing.T, g gremlins, code, test string, tries ...try) []mutant {
	t.Helper()
	g.module = t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.org/m\n\ngo 1.26.0\n", "p/p.go": code,
		"p/p_test.go": test} {
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
	for _, c := range tries {
		m, err := s.mutant(c.line, c.column, c.operator, c.status)
		if err != nil {
			t.Fatal(err)
		}
		mutants = append(mutants, m)
	}
	if err := g.finish(t.Context(), "p", mutants, io.Discard, g.try); err != nil {
		t.Fatal(err)
	}
	return mutants
}

// What gremlins leaves undone is tried on a module of one function.
func TestMutantsThatGremlinsDidNotTry(t *testing.T) {
	mutants := finished(t, gremlins{limit: time.Minute},
		"package p\n\nfunc Sign(n int, s string) string {\n\tswitch {\n\tcase n < 0:\n\t\treturn \"-\" + s\n\tcase n "+
			"> 99:\n\t\treturn s\n\t}\n\treturn s\n}\n",
		"package p\n\nimport \"testing\"\n\nfunc TestSign(t *testing.T) {\n\tif Sign(-1, \"1\") != \"-1\" || Sign(0, "+
			"\"0\") != \"0\" {\n\t\tt.Fatal()\n\t}\n}\n",
		try{5, 9, "CONDITIONALS_BOUNDARY", statusNotCovered},
		try{7, 9, "CONDITIONALS_BOUNDARY", statusNotCovered},
		try{6, 14, "ARITHMETIC_BASE", statusKilled},
		try{6, 14, "ARITHMETIC_BASE", statusNotCovered},
		try{5, 9, "CONDITIONALS_NEGATION", statusKilled},
		try{5, 9, "CONDITIONALS_BOUNDARY", statusTimedOut},
		try{7, 9, "CONDITIONALS_BOUNDARY", statusTimedOut},
		try{6, 14, "ARITHMETIC_BASE", statusTimedOut},
	)
	for i, want := range []string{
		statusKilled, statusNotCovered, statusNotViable, statusNotViable, statusKilled,
		statusKilled, statusLived, statusNotViable,
	} {
		if mutants[i].status != want {
			t.Errorf("%d, %s: %s, want %s", i, mutants[i].Mutant, mutants[i].status, want)
		}
	}
}

func TestOnlyAMutantThatTimesOutAloneHangs(t *testing.T) {
	mutants := finished(t, gremlins{workers: 2, limit: time.Second},
		"package p\n\nfunc Half(n int) (h int) {\n\tfor ; n > 1; n -= 2 {\n\t\th++\n\t}\n\treturn h\n}\n",
		"package p\n\nimport \"testing\"\n\nfunc TestHalf(t *testing.T) {\n\tif Half(5) != 2 "+
			"{\n\t\tt.Fatal()\n\t}\n}\n",
		try{4, 17, "REMOVE_SELF_ASSIGNMENTS", statusTimedOut},
		try{4, 17, "REMOVE_SELF_ASSIGNMENTS", statusNotCovered},
	)
	for i, m := range mutants {
		if m.status != statusHangs {
			t.Errorf("%d, %s: %s, want %s", i, m.Mutant, m.status, statusHangs)
		}
	}
}

// Those that time out beside others are among them. All that may run at once do, before one of them
// ends.
func TestMutantsThatTimedOutAreTriedAgainOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mutants := []mutant{{status: statusNotCovered}, {status: statusTimedOut}, {status: statusNotCovered},
			{status: statusTimedOut}}
		begun, release, ended := atomic.Int32{}, make(chan struct{}), make(chan error, 1)
		try := func(_ context.Context, _ string, m *mutant) error {
			begun.Add(1)
			<-release
			m.status = map[string]string{statusNotCovered: statusTimedOut, statusTimedOut: statusHangs}[m.status]
			return nil
		}
		go func() { ended <- gremlins{workers: 4}.finish(t.Context(), "p", mutants, io.Discard, try) }()
		for _, want := range []int{2, 2, 3, 4, 5, 6} { // two together, and all four alone
			synctest.Wait()
			if n := int(begun.Load()); n != want {
				t.Errorf("%d tries have begun, want %d", n, want)
			}
			release <- struct{}{}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if n := count(mutants, statusHangs); n != 4 {
			t.Errorf("%d mutants hang, want 4: %v", n, mutants)
		}
	})
}
