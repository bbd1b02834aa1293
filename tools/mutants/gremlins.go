package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// timeoutCoefficient times the duration of the tests without any mutation is how long a mutant may
// take. It is generous, yet a busy machine meets it: in gremlins' time the mutant is compiled, too.
const timeoutCoefficient = 20

// shortestLimit is the least that the tests alone of a mutant may take, where it is tried through
// an overlay. Only an endless loop shall meet it.
const shortestLimit = time.Minute

// gremlins runs the mutation tool.
type gremlins struct {
	// program and logs are absolute, since the tool runs in the module.
	program, module, logs string
	workers               int
	// limit ends the tests of a mutant that is tried through an overlay.
	limit time.Duration
}

// report is the part of gremlins' result that is used.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Line   int    `json:"line"`
			Column int    `json:"column"`
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"mutations"`
	} `json:"files"`
}

// unleash tries every mutant of a package, and says on the way which have survived.
func (g gremlins) unleash(ctx context.Context, pkg string) ([]mutant, error) {
	// What is compiled once for all mutants does not belong to the duration of the tests.
	if err := goCommand(ctx, g.module, "test", "-run", "^$", "./"+pkg); err != nil {
		return nil, fmt.Errorf("the tests do not begin without any mutation: %w", err)
	}
	begun := time.Now()
	if err := goCommand(ctx, g.module, "test", "-count", "1", "./"+pkg); err != nil {
		return nil, fmt.Errorf("the tests fail without any mutation: %w", err)
	}
	g.limit = max(timeoutCoefficient*time.Since(begun), shortestLimit)
	base := filepath.Join(g.logs, path.Base(pkg))
	result := base + ".json"
	if err := os.Remove(result); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove former result: %w", err)
	}
	if err := g.execute(ctx, pkg, result, base+".log"); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(result)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	var r report
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, fmt.Errorf("read result %s: %w", result, err)
	}
	mutants, err := g.mutants(pkg, r)
	if err != nil {
		return nil, err
	}
	return mutants, g.finish(ctx, pkg, mutants, os.Stdout, g.try)
}

func (g gremlins) execute(ctx context.Context, pkg, result, log string) error {
	file, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.CommandContext(ctx, g.program, "unleash",
		"--workers", strconv.Itoa(g.workers), "--timeout-coefficient", strconv.Itoa(timeoutCoefficient), "--output",
		result,
		"--arithmetic-base", "--conditionals-boundary", "--conditionals-negation", "--increment-decrement",
		"--invert-negatives",
		"--invert-assignments", "--invert-bitwise", "--invert-bwassign", "--invert-logical", "--invert-loopctrl",
		"--remove-self-assignments",
		filepath.Join(g.module, pkg))
	cmd.Dir, cmd.Env = g.module, environment()
	// gremlins removes its copies of the module when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connect to gremlins: %w", err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start gremlins: %w", err)
	}
	follow(out, file, os.Stdout, pkg)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("run gremlins (see %s): %w", log, err)
	}
	return ctx.Err()
}

// follow writes all that gremlins says into the log, and the count of mutants to the reader now and
// then.
func follow(from io.Reader, log, reader io.Writer, pkg string) {
	lines := bufio.NewScanner(from)
	tried := 0
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
		for _, status := range []string{statusKilled, statusLived, statusTimedOut} {
			if strings.HasPrefix(strings.TrimSpace(lines.Text()), status+" ") {
				tried++
				if tried%50 == 0 {
					fmt.Fprintf(reader, "%s: %d mutants tried\n", pkg, tried)
				}
			}
		}
	}
}

// mutants reads the source beside the positions that gremlins names.
func (g gremlins) mutants(pkg string, r report) ([]mutant, error) {
	var out []mutant
	for _, f := range r.Files {
		name := path.Join(pkg, f.Name)
		source, err := readSource(g.module, name)
		if err != nil {
			return nil, err
		}
		for _, m := range f.Mutations {
			found, err := source.mutant(m.Line, m.Column, m.Type, m.Status)
			if err != nil {
				return nil, err
			}
			out = append(out, found)
		}
	}
	return unique(out), nil
}
