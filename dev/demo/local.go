package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"helenus.io/helenus/dev/demo/install"
)

// manifestPath is the manifest in a checkout, by which the checkout is known too.
const manifestPath = "config/install.yaml"

// findRepository is the checkout around a folder.
func findRepository(from string) (string, error) {
	folder, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, manifestPath)); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("find the checkout: there is no %s in %s or above; name the checkout by --repo", manifestPath, from)
		}
		folder = filepath.Dir(folder)
	}
}

// tools are the commands beside this one, as make builds them.
type tools struct{ repository string }

func (t tools) path(name string) string { return filepath.Join(t.repository, "bin", name) }

// check says what to do if one is missing.
func (t tools) check() error {
	for _, name := range []string{"localkube", "images"} {
		if _, err := os.Stat(t.path(name)); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is not built: run `make localkube images` in %s, or use another Kubernetes by --kubeconfig", t.path(name), t.repository)
		}
	}
	return nil
}

// run runs one of the commands, shows what it reports, and returns what it prints.
func (t tools) run(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, t.path(name), args...)
	command.Dir = t.repository
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	// A signal reaches it from the terminal too, and it knows best how to end.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return out.String(), nil
}

// kubeconfig is that of the local cluster.
func (t tools) kubeconfig(ctx context.Context) (string, error) {
	out, err := t.run(ctx, "localkube", "kubeconfig", "--path")
	return strings.TrimSpace(out), err
}

// Names of the project's images, as images knows them.
const (
	operatorImage = "helenus"
	agentImage    = "helenus-agent"
)

// build builds the images and returns their files.
func (t tools) build(ctx context.Context, version string) ([]string, error) {
	out, err := t.run(ctx, "images", "build", "cassandra-"+version, operatorImage, agentImage, "--repo", t.repository)
	return strings.Fields(out), err
}

// load gives the machines the images, and says by which references they are to be pulled.
func (t tools) load(ctx context.Context, files []string) (install.Images, error) {
	out, err := t.run(ctx, "localkube", append([]string{"load"}, files...)...)
	if err != nil {
		return install.Images{}, err
	}
	return loaded(out)
}

// loaded finds the references in what `localkube load` prints: a line "loaded|present REFERENCE DIGEST TIME" for each image. They are pinned by digest, so
// that images built anew under the same tag are really run.
func loaded(out string) (install.Images, error) {
	var images install.Images
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "sha256:") {
			return images, fmt.Errorf("read what localkube load printed: %q has no reference and digest", strings.TrimSpace(line))
		}
		pinned := fields[1] + "@" + fields[2]
		repository, _, _ := strings.Cut(fields[1], ":")
		switch repository[strings.LastIndex(repository, "/")+1:] {
		case operatorImage:
			images.Operator = pinned
		case agentImage:
			images.Agent = pinned
		}
	}
	if images.Operator == "" || images.Agent == "" {
		return images, fmt.Errorf("read what localkube load printed: the images %s and %s are not in it", operatorImage, agentImage)
	}
	return images, nil
}
