package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// mayNotCompile are the kinds of mutation that can make code which the compiler refuses, such as
// the difference of two strings.
var mayNotCompile = map[string]bool{
	"ARITHMETIC_BASE": true, "INVERT_ASSIGNMENTS": true, "INVERT_BITWISE": true, "INVERT_BWASSIGN": true,
	"INVERT_LOOPCTRL":         true,
	"REMOVE_SELF_ASSIGNMENTS": true,
}

// finish does for the mutants what gremlins leaves undone. It does not try those to which no test
// comes by Go's coverage, which knows neither conditions of a case nor package variables. What does
// not compile counts for it as killed, although no test has killed it. And a mutant that timed out
// beside others may be one that loops or one of a slow machine, so that it is tried again alone.
func (g gremlins) finish(ctx context.Context, pkg string, mutants []mutant, reader io.Writer,
	try func(context.Context, string, *mutant) error) error {
	if open := count(mutants, statusNotCovered); open > 0 {
		fmt.Fprintf(reader, "%s: trying %d mutants to which no test seems to come\n", pkg, open)
	}
	once := func(ctx context.Context, m *mutant) error { return try(ctx, pkg, m) }
	if err := each(ctx, mutants, max(g.workers, 1), func(m mutant) bool { return m.status != statusTimedOut },
		once); err != nil {
		return err
	}
	if late := count(mutants, statusTimedOut); late > 0 {
		fmt.Fprintf(reader, "%s: trying %d mutants alone that timed out\n", pkg, late)
	}
	return each(ctx, mutants, 1, func(m mutant) bool { return m.status == statusTimedOut }, once)
}

// each tries those mutants, at most so many at a time.
func each(ctx context.Context, mutants []mutant, atOnce int, which func(mutant) bool,
	try func(context.Context, *mutant) error) error {
	tries, ctx := errgroup.WithContext(ctx)
	tries.SetLimit(atOnce)
	for i := range mutants {
		if which(mutants[i]) {
			tries.Go(func() error { return try(ctx, &mutants[i]) })
		}
	}
	return tries.Wait()
}

func count(mutants []mutant, status string) (n int) {
	for _, m := range mutants {
		if m.status == status {
			n++
		}
	}
	return n
}

// try finds out what became of one mutant, if that is not known.
func (g gremlins) try(ctx context.Context, pkg string, m *mutant) error {
	if again := m.status == statusTimedOut; again || m.status == statusNotCovered {
		failure, err := g.with(ctx, m, "test", "-failfast", "-timeout", g.limit.String(), "./"+pkg)
		hung := strings.Contains(failure, "panic: test timed out")
		switch {
		case err != nil:
			return err
		case failure == "" && again:
			m.status = statusLived
		case failure == "":
		case hung && again:
			m.status = statusHangs
		case hung:
			m.status = statusTimedOut
		default:
			m.status = statusKilled
		}
	}
	if m.status == statusKilled && mayNotCompile[m.operator] {
		failure, err := g.with(ctx, m, "build", "./"+pkg)
		if err != nil {
			return err
		}
		if failure != "" {
			m.status = statusNotViable
		}
	}
	return nil
}

// with runs go as if the mutant stood in the module, and returns what go said if it failed.
func (g gremlins) with(ctx context.Context, m *mutant, command string, args ...string) (failure string, err error) {
	folder, err := os.MkdirTemp("", "mutant-*")
	if err != nil {
		return "", fmt.Errorf("make folder for a mutant: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	changed, overlay := filepath.Join(folder, "mutant.go.txt"), filepath.Join(folder, "overlay.json")
	content, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(g.module, m.File): changed}})
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	for file, content := range map[string][]byte{overlay: content, changed: m.mutated} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return "", fmt.Errorf("write mutant: %w", err)
		}
	}
	err = goCommand(ctx, g.module, append([]string{command, "-overlay", overlay}, args...)...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return err.Error(), nil
	}
	return "", err
}
