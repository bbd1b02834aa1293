package build

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"helenus.io/helenus/dev/localkube/step"
)

// workspace is a recipe's folder in the cache: src is the generated module, bin
// the finished binaries.
type workspace struct {
	recipe recipe
	dir    string
}

func (w workspace) src() string { return filepath.Join(w.dir, "src") }

// resolved marks a module whose go.mod and go.sum are complete.
func (w workspace) resolved() string { return filepath.Join(w.dir, "resolved") }

// prepare generates the build module and downloads what it needs. It does
// nothing when an earlier start has done it.
func (w workspace) prepare(ctx context.Context, steps *step.Reporter) error {
	if _, err := os.Stat(w.resolved()); err == nil {
		return nil
	}
	return steps.Run(ctx, "modules of "+w.recipe.Name, func(ctx context.Context, p *step.Progress) error {
		if err := w.generate(ctx); err != nil {
			return err
		}
		args := append([]string{"list", "-deps"}, w.recipe.Flags...)
		for _, pkg := range w.recipe.Packages {
			args = append(args, pkg)
		}
		downloads := 0
		err := w.golang(ctx, func(line string) {
			if strings.HasPrefix(line, "go: downloading") {
				downloads++
				p.Note("%d modules downloaded", downloads)
			}
		}, args...)
		if err != nil {
			return fmt.Errorf("resolve modules: %w", err)
		}
		return writeFile(w.resolved(), "go.mod and go.sum are complete\n")
	})
}

func (w workspace) generate(ctx context.Context) error {
	source := w.recipe.source()
	upstream, err := w.download(ctx, source)
	if err != nil {
		return err
	}
	goMod, err := os.ReadFile(upstream.GoMod)
	if err != nil {
		return fmt.Errorf("read the go.mod of %s: %w", source, err)
	}
	// Upstream's go.sum vouches for all third-party modules from the start.
	goSum, err := os.ReadFile(filepath.Join(upstream.Dir, "go.sum"))
	if err != nil {
		return fmt.Errorf("read the go.sum of %s: %w", source, err)
	}
	var content []byte
	switch {
	case w.recipe.Module != "":
		content, err = moduleGoMod(goMod, w.recipe.Module)
	case w.recipe.Addons == nil:
		content, err = kubernetesGoMod(goMod, w.recipe.Version)
	default:
		content, err = addonsGoMod(goMod, w.recipe.Version, w.recipe.Addons)
	}
	if err != nil {
		return err
	}
	files := map[string]string{"go.mod": string(content), "go.sum": string(goSum)}
	for path, source := range w.recipe.Sources {
		files[path] = source
	}
	for path, text := range files {
		if err := writeFile(filepath.Join(w.src(), path), text); err != nil {
			return err
		}
	}
	return nil
}

type downloaded struct{ Dir, GoMod, Error string }

func (w workspace) download(ctx context.Context, module string) (downloaded, error) {
	cmd := w.command(ctx, "mod", "download", "-json", module)
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	var d downloaded
	if decode := json.Unmarshal(out, &d); decode == nil && d.Error != "" {
		return d, fmt.Errorf("download %s: %s", module, lastLines(d.Error, 5))
	}
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, lastLines(string(exit.Stderr), 5))
		}
		return d, fmt.Errorf("download %s: %w", module, err)
	}
	return d, nil
}

// build compiles one binary and renames it into place.
func (w workspace) build(ctx context.Context, p *step.Progress, binary string) error {
	final := filepath.Join(w.dir, "bin", binary)
	tmp := filepath.Join(w.dir, "unfinished", binary)
	for _, file := range []string{final, tmp} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make a folder for %s: %w", binary, err)
		}
	}
	args := append([]string{"build", "-v"}, w.recipe.Flags...)
	args = append(args, "-ldflags", w.recipe.LDFlags, "-o", tmp, w.recipe.Packages[binary])
	packages := 0
	if err := w.golang(ctx, func(string) {
		packages++
		p.Note("%d packages compiled", packages)
	}, args...); err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil {
		return fmt.Errorf("put %s in its place: %w", binary, err)
	}
	return nil
}

// golang runs the go command in the build module and hands over each line that
// it writes to its standard error.
func (w workspace) golang(ctx context.Context, line func(string), args ...string) error {
	cmd := w.command(ctx, args...)
	cmd.Dir = w.src()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("run go: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go: %w", err)
	}
	var tail []string
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line(scanner.Text())
		tail = append(tail, scanner.Text())
		tail = tail[max(0, len(tail)-20):]
	}
	// A line too long to scan must not block the command on a full pipe.
	_, _ = io.Copy(io.Discard, stderr)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go %s: %w:\n%s", args[0], err, strings.Join(tail, "\n"))
	}
	return nil
}

// command runs go at low priority: a build of minutes must not starve what
// else the machine does.
func (w workspace) command(ctx context.Context, args ...string) *exec.Cmd {
	name := "go"
	if nice, err := exec.LookPath("nice"); err == nil {
		name, args = nice, append([]string{"-n", "5", "go"}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GO111MODULE=on", "GOFLAGS=-buildvcs=false")
	return cmd
}
