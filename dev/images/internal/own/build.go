package own

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/image"
	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
)

// Builder builds the project's images from a checkout.
type Builder struct {
	// Repository is the directory of the checkout.
	Repository string
	// Architecture is Go's name of the processor: amd64 or arm64.
	Architecture string
	// Tag of the image; the binaries get it as main.version.
	Tag string
	// Jar returns the local file of a locked artifact.
	Jar func(ctx context.Context, artifact lock.Artifact) (string, error)
}

// Build compiles and assembles i. Locked may be nil if i has no jars. Work is an
// empty directory, needed until the image has been written.
func (b *Builder) Build(ctx context.Context, i Image, locked *lock.File, work string) (v1.Image, error) {
	tree := layer.Tree{}
	for _, path := range slices.Sorted(maps.Keys(i.Binaries)) {
		file := filepath.Join(work, filepath.Base(path))
		if err := Compile(ctx, b.Repository, i.Binaries[path], file, "linux", b.Architecture, b.Tag); err != nil {
			return nil, err
		}
		if err := tree.Add(path, layer.Entry{Mode: 0o755, File: file}); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(i.Jars)) {
		artifact, err := find(locked, i.Jars[path])
		if err != nil {
			return nil, err
		}
		file, err := b.Jar(ctx, artifact)
		if err != nil {
			return nil, err
		}
		if err := tree.Add(path, layer.Entry{Mode: 0o644, File: file}); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(i.Java)) {
		file, err := b.compileJava(ctx, i.Java[path], locked, work)
		if err != nil {
			return nil, err
		}
		if err := tree.Add(path, layer.Entry{Mode: 0o644, File: file}); err != nil {
			return nil, err
		}
	}
	layerFile := filepath.Join(work, "layer.tar.gz")
	if err := cache.WriteFile(layerFile, func(w io.Writer) error { return tree.Write(w) }); err != nil {
		return nil, fmt.Errorf("write layer: %w", err)
	}
	return image.Assemble(image.Spec{Architecture: b.Architecture, Layers: []string{layerFile}, Config: b.config(i)})
}

// Reference is the name of the image with its tag.
func (b *Builder) Reference(i Image) string { return i.Repository + ":" + b.Tag }

func (b *Builder) config(i Image) v1.Config {
	return v1.Config{
		User:       i.User,
		Entrypoint: i.Entrypoint,
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       i.Name,
			"org.opencontainers.image.description": i.Description,
			"org.opencontainers.image.version":     b.Tag,
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
}

// Compile builds a static program of a package of a checkout for a system and an architecture. Its
// bytes depend on the source alone. It gets the version as main.version.
func Compile(ctx context.Context, repository, pkg, file, system, architecture, version string) error {
	if _, err := os.Stat(filepath.Join(repository, pkg)); err != nil {
		return fmt.Errorf("compile %s: there is no such package in %s: %w", pkg, repository, err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+version, "-o", file, pkg)
	command.Dir = repository
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture, "GOFLAGS=",
		"GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", pkg, err, bytes.TrimSpace(out))
	}
	// `go build` of a package that is no command succeeds and writes an archive.
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("compile %s: %w", pkg, err)
	}
	if bytes.HasPrefix(content, []byte("!<arch>")) {
		return fmt.Errorf("compile %s: it is not a command: its package is not main", pkg)
	}
	return nil
}

func find(locked *lock.File, c lock.Coordinates) (lock.Artifact, error) {
	if locked != nil {
		for _, a := range locked.Maven {
			if a.Name == c.String() {
				return a, nil
			}
		}
	}
	return lock.Artifact{}, fmt.Errorf("no lock file lists %s: run `lock`", c)
}

// CheckRepository says whether directory is a checkout of the project.
func CheckRepository(directory string) error {
	text, err := os.ReadFile(filepath.Join(directory, "go.mod"))
	if err != nil {
		return fmt.Errorf("find the repository (name it by --repo): %w", err)
	}
	if first, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(first) != "module "+Module {
		return fmt.Errorf("find the repository: %s is not the module %s; name its directory by --repo", directory,
			Module)
	}
	return nil
}
