package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"helenus.io/helenus/dev/demo/install"
)

// ManifestPath is the manifest in a checkout, by which the checkout is known too.
const ManifestPath = "config/install.yaml"

// FindRepository is the checkout around a folder.
func FindRepository(from string) (string, error) {
	folder, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, ManifestPath)); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("find the checkout: there is no %s in %s or above; name the checkout by --repo",
				ManifestPath, from)
		}
		folder = filepath.Dir(folder)
	}
}

// Tools are the commands localkube and images, as make builds them into bin.
type Tools struct {
	// Repository is the checkout. Sources are what the project's images are built from, if not it,
	// and Tag is theirs, if not dev.
	Repository, Sources, Tag string
	// Progress receives what the commands report of their steps.
	Progress io.Writer
}

func (t Tools) path(name string) string { return filepath.Join(t.Repository, "bin", name) }

// Check says what to do if one is missing.
func (t Tools) Check() error {
	for _, name := range []string{"localkube", "images"} {
		if _, err := os.Stat(t.path(name)); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is not built: run `make local-tools` in %s, or use another Kubernetes by "+
				"--kubeconfig", t.path(name), t.Repository)
		}
	}
	return nil
}

// run runs one of the commands, shows what it reports, and returns what it prints.
func (t Tools) run(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, t.path(name), args...)
	command.Dir = t.Repository
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, t.Progress
	// A signal reaches it from the terminal too, and it knows best how to end.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return out.String(), nil
}

// Up brings the local cluster up, or what is missing of it.
func (t Tools) Up(ctx context.Context) error {
	_, err := t.run(ctx, "localkube", "up")
	return err
}

// Kubeconfig is that of the local cluster.
func (t Tools) Kubeconfig(ctx context.Context) (string, error) {
	out, err := t.run(ctx, "localkube", "kubeconfig", "--path")
	return strings.TrimSpace(out), err
}

// Names of the project's images, as images knows them.
const (
	OperatorImage = "helenus"
	AgentImage    = "helenus-agent"
)

// Build builds the images of the project and of releases of Cassandra, as far as they are not up to
// date, and returns their files.
func (t Tools) Build(ctx context.Context, versions ...string) ([]string, error) {
	args := []string{"build", OperatorImage, AgentImage, "--repo", cmp.Or(t.Sources, t.Repository),
		"--tag", cmp.Or(t.Tag, "dev")}
	for _, version := range versions {
		args = append(args, "cassandra-"+version)
	}
	out, err := t.run(ctx, "images", args...)
	return strings.Fields(out), err
}

// Load gives the machines of the local cluster the images, and says by which references they are to
// be pulled.
func (t Tools) Load(ctx context.Context, files []string) (install.Images, error) {
	out, err := t.run(ctx, "localkube", append([]string{"load"}, files...)...)
	if err != nil {
		return install.Images{}, err
	}
	return loaded(out)
}

// loaded finds the references in what `localkube load` prints: a line "loaded|present REFERENCE
// DIGEST TIME" for each image. They are pinned by digest, so that images built anew under the same
// tag are really run.
func loaded(out string) (install.Images, error) {
	var images install.Images
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "sha256:") {
			return images, fmt.Errorf("read what localkube load printed: %q has no reference and digest",
				strings.TrimSpace(line))
		}
		pinned := fields[1] + "@" + fields[2]
		repository, _, _ := strings.Cut(fields[1], ":")
		switch repository[strings.LastIndex(repository, "/")+1:] {
		case OperatorImage:
			images.Operator = pinned
		case AgentImage:
			images.Agent = pinned
		}
	}
	if images.Operator == "" || images.Agent == "" {
		return images, fmt.Errorf("read what localkube load printed: the images %s and %s are not in it", OperatorImage,
			AgentImage)
	}
	return images, nil
}
