package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/own"
)

// Release is a version to be published.
type Release struct {
	// Version with its v, such as v0.1.0.
	Version string
	// Created is the time of the commit: the only one that is written anywhere.
	Created time.Time
	// URL is where the files will be, without the slash at the end.
	URL string
	// Repository is the directory of the checkout.
	Repository string
	// Images by their name in the values of the chart.
	Images map[string]own.Image
	// Plugin is the package of the kubectl plugin, Systems those that it is built for.
	Plugin  string
	Systems []string
	Jar     func(ctx context.Context, artifact lock.Artifact) (string, error)
	Lock    func(image string) (*lock.File, error)
	// Key signs the images; nil if nobody does.
	Key *Key
	// Work is an empty directory, Out where the files go.
	Work, Out string
}

var architectures = []string{"amd64", "arm64"}

// Write writes all files.
func (r *Release) Write(ctx context.Context) error {
	values, err := os.ReadFile(filepath.Join(r.Repository, "charts", "helenus", "values.yaml"))
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	for name, i := range r.Images {
		digest, err := r.image(ctx, i)
		if err != nil {
			return fmt.Errorf("write image %s: %w", i.Name, err)
		}
		if r.Key != nil {
			if err := r.signature(i, digest); err != nil {
				return fmt.Errorf("write the signature of image %s: %w", i.Name, err)
			}
		}
		placeholder := "    repository: registry.invalid/helenus/" + name + "\n    tag: \"\"\n    digest: \"\"\n"
		if bytes.Count(values, []byte(placeholder)) != 1 {
			return fmt.Errorf("write the chart: its values have no place for image %s", name)
		}
		values = bytes.ReplaceAll(values, []byte(placeholder),
			fmt.Appendf(nil, "    repository: %s\n    tag: %s\n    digest: %s\n", i.Repository, r.Version, digest))
	}
	if err := r.chart(values); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	if err := r.plugins(ctx); err != nil {
		return fmt.Errorf("write the plugin: %w", err)
	}
	return nil
}

// image writes an image for all architectures as an archive of an OCI layout, and what is in it.
func (r *Release) image(ctx context.Context, i own.Image) (v1.Hash, error) {
	var locked *lock.File
	var err error
	if len(i.Artifacts()) > 0 {
		if locked, err = r.Lock(i.Name); err != nil {
			return v1.Hash{}, err
		}
	}
	index := mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	inside := newContents(r, i)
	for _, architecture := range architectures {
		work := filepath.Join(r.Work, i.Name+"-"+architecture)
		if err := os.Mkdir(work, 0o755); err != nil {
			return v1.Hash{}, err
		}
		builder := &own.Builder{Repository: r.Repository, Architecture: architecture, Tag: r.Version, Jar: r.Jar}
		img, err := builder.Build(ctx, i, locked, work)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
		for path := range i.Binaries {
			if err := inside.addBinary(filepath.Join(work, filepath.Base(path))); err != nil {
				return v1.Hash{}, err
			}
		}
	}
	if err := inside.addJars(i, locked); err != nil {
		return v1.Hash{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	text, err := inside.json(digest)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.WriteFile(filepath.Join(r.Out, i.Name+"-"+r.Version+".spdx.json"), text, 0o644); err != nil {
		return v1.Hash{}, err
	}
	directory := filepath.Join(r.Work, i.Name)
	all, err := layout.Write(directory, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := all.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": i.Repository + ":" + r.Version})); err != nil {
		return v1.Hash{}, err
	}
	_, err = r.archive(i.Name+"-"+r.Version+".oci.tar.gz", directory, "", nil)
	return digest, err
}

// chart writes the chart with other values, of this version.
func (r *Release) chart(values []byte) error {
	directory := filepath.Join(r.Repository, "charts", "helenus")
	about, err := os.ReadFile(filepath.Join(directory, "Chart.yaml"))
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.Version, "v")
	for was, is := range map[string]string{"\nversion: 0.0.0-dev\n": "\nversion: " + number + "\n",
		"\nappVersion: dev\n": "\nappVersion: " + r.Version + "\n"} {
		if bytes.Count(about, []byte(was)) != 1 {
			return fmt.Errorf("find the version in Chart.yaml: it has no line %q", strings.TrimSpace(was))
		}
		about = bytes.ReplaceAll(about, []byte(was), []byte(is))
	}
	_, err = r.archive("helenus-"+number+".tgz", directory, "helenus", layer.Tree{
		"helenus/Chart.yaml":  {Mode: 0o644, Content: about},
		"helenus/values.yaml": {Mode: 0o644, Content: values},
	})
	return err
}

// platform is one that the plugin runs on.
type platform struct{ System, Architecture, URL, SHA256, Program string }

// plugins writes an archive of the plugin for each platform, and the manifest by which krew finds
// them.
func (r *Release) plugins(ctx context.Context) error {
	var all []platform
	for _, system := range r.Systems {
		for _, architecture := range architectures {
			p := platform{System: system, Architecture: architecture, Program: "kubectl-helenus"}
			if system == "windows" {
				p.Program += ".exe"
			}
			file := filepath.Join(r.Work, "plugin-"+system+"-"+architecture)
			if err := own.Compile(ctx, r.Repository, r.Plugin, file, system, architecture, r.Version); err != nil {
				return err
			}
			name := fmt.Sprintf("kubectl-helenus-%s-%s-%s.tar.gz", r.Version, system, architecture)
			sum, err := r.archive(name, "", "", layer.Tree{p.Program: {Mode: 0o755, File: file},
				"LICENSE": {Mode: 0o644, File: filepath.Join(r.Repository, "LICENSE")}})
			if err != nil {
				return err
			}
			p.URL, p.SHA256 = r.URL+"/"+name, sum
			all = append(all, p)
		}
	}
	var out bytes.Buffer
	if err := krew.Execute(&out, map[string]any{"Version": r.Version, "Platforms": all}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, "helenus.yaml"), out.Bytes(), 0o644)
}

// krew is the manifest of a plugin in the index of krew.
var krew = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: helenus
spec:
  version: {{.Version}}
  homepage: https://helenus.io
  shortDescription: Look at and operate Apache Cassandra rings
  description: |
    Shows what the rings of Helenus do and what they wait for, plans changes before they are made,
    starts operations, and looks for what is wrong with the installation.
  platforms:
{{- range .Platforms}}
  - selector:
      matchLabels: {os: {{.System}}, arch: {{.Architecture}}}
    uri: {{.URL}}
    sha256: {{.SHA256}}
    bin: {{.Program}}
{{- end}}
`))

// archive writes the files of a directory below a path, unless it is empty, and others, which win,
// and returns the hash of the archive. Times and owners are the same everywhere.
func (r *Release) archive(name, directory, below string, others layer.Tree) (string, error) {
	tree := layer.Tree{}
	if directory != "" {
		if err := filepath.WalkDir(directory, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			relative, err := filepath.Rel(directory, file)
			if err != nil {
				return err
			}
			return tree.Add(filepath.ToSlash(filepath.Join(below, relative)), layer.Entry{Mode: 0o644, File: file})
		}); err != nil {
			return "", err
		}
	}
	for path, entry := range others {
		tree[path] = entry
	}
	out, err := os.Create(filepath.Join(r.Out, name))
	if err != nil {
		return "", err
	}
	defer out.Close() //nolint:errcheck // what was not written fails below
	sum := sha256.New()
	if err := tree.Write(io.MultiWriter(out, sum)); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), out.Close()
}
