package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// packages are those in which every decision about a ring is made.
var packages = []string{"internal/core/cluster", "internal/core/guard", "internal/core/node"}

// minScore is the share of mutants in percent that the tests of a package must kill.
const minScore = 90

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	sound, err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case !sound:
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (sound bool, err error) {
	flags := flag.NewFlagSet("mutants", flag.ExitOnError)
	root := flags.String("root", ".", "root `folder` of the module whose tests are measured")
	tool := flags.String("gremlins", "gremlins", "the gremlins `program`")
	listed := flags.String("survivors", "survivors.yaml", "`file` with the mutants that may survive")
	logs := flags.String("logs", filepath.Join(os.TempDir(), "mutants"),
		"`folder` for the complete output and result of gremlins")
	workers := flags.Int("workers", 1, "how many mutants are tried at a time; each worker wants a core")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: mutants [flags] [package ...]\n\nMutates packages (folders below the "+
			"root; by default %v) and tells what their tests did not notice.\n\n", packages)
		flags.PrintDefaults()
	}
	_ = flags.Parse(args) // it ends the program
	wanted := packages
	if flags.NArg() > 0 {
		wanted = flags.Args()
	}
	allowed, err := readSurvivors(*listed)
	if err != nil {
		return false, err
	}
	g := gremlins{workers: *workers}
	if g.program, err = filepath.Abs(*tool); err != nil {
		return false, fmt.Errorf("find gremlins: %w", err)
	}
	if g.logs, err = filepath.Abs(*logs); err != nil {
		return false, fmt.Errorf("find folder for logs: %w", err)
	}
	if err := os.MkdirAll(g.logs, 0o755); err != nil {
		return false, fmt.Errorf("make folder for logs: %w", err)
	}
	// The tests run on a copy, so that nobody's editing comes in between.
	if g.module, err = os.MkdirTemp("", "mutants-*"); err != nil {
		return false, fmt.Errorf("make work folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(g.module) }()
	if err := copyModule(ctx, *root, g.module); err != nil {
		return false, err
	}
	sound = true
	for _, pkg := range wanted {
		begun := time.Now()
		mutants, err := g.unleash(ctx, filepath.ToSlash(filepath.Clean(pkg)))
		if err != nil {
			return false, fmt.Errorf("mutate %s: %w", pkg, err)
		}
		v := judge(pkg, mutants, allowed)
		v.print(os.Stdout, time.Since(begun))
		sound = sound && v.sound()
	}
	return sound, nil
}
