package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// copyModule copies the files of a module that git knows or would take, without those of the
// modules inside it.
func copyModule(ctx context.Context, root, to string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list files of %s: %w", root, err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for _, file := range ofRootModule(files) {
		content, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(file)), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, file), content, 0o644); err != nil {
			return fmt.Errorf("write copy: %w", err)
		}
	}
	return nil
}

// ofRootModule leaves out the files below a folder that has a go.mod of its own.
func ofRootModule(files []string) []string {
	inner := map[string]bool{}
	for _, f := range files {
		if dir, name := filepath.Split(f); name == "go.mod" && dir != "" {
			inner[filepath.Clean(dir)] = true
		}
	}
	var out []string
	for _, f := range files {
		own := true
		for dir := filepath.Dir(f); dir != "."; dir = filepath.Dir(dir) {
			own = own && !inner[dir]
		}
		if own {
			out = append(out, f)
		}
	}
	return out
}

// goCommand runs go in a module and returns what it printed when it fails.
func goCommand(ctx context.Context, module string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = module, environment()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

// environment is that of all Go commands. Only a failing test kills a mutant, so vet is off;
// results are not taken from the cache, since gremlins derives its timeout from a first run;
// property tests draw the same values for every mutant.
func environment() []string {
	return append(os.Environ(), "GOFLAGS=-buildvcs=false -trimpath -vet=off -count=1 -ldflags=-w", "GOGC=400",
		"RAPID_SEED=1")
}
