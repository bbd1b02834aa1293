package own

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"helenus.io/helenus/dev/images/internal/lock"
)

const sha = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

var (
	agent   = lock.Coordinates{Group: "g", ID: "agent", Version: "1"}
	fixture = Image{
		Name: "fixture", Repository: "registry.example/fixture", Description: "A fixture", User: "65532:65532",
		Binaries:   map[string]string{"/opt/hello": "./hello"},
		Jars:       map[string]lock.Coordinates{"/opt/agent.jar": agent},
		Entrypoint: []string{"/opt/hello"},
	}
	locked = &lock.File{Image: "fixture", Architecture: AnyArchitecture,
		Maven: []lock.Artifact{{Name: agent.String(), SHA256: sha}}}
)

func builder(t *testing.T, architecture string) *Builder {
	t.Helper()
	jar := filepath.Join(t.TempDir(), "agent.jar")
	if err := os.WriteFile(jar, []byte("jar"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Builder{
		Repository: "testdata/repository", Architecture: architecture, Tag: "v1",
		Jar: func(_ context.Context, a lock.Artifact) (string, error) {
			if a.SHA256 != sha {
				t.Errorf("asked for the jar with hash %s", a.SHA256)
			}
			return jar, nil
		},
	}
}

func build(t *testing.T, architecture string) v1.Image {
	t.Helper()
	img, err := builder(t, architecture).Build(t.Context(), fixture, locked, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Two builds in other directories give the same image, another machine another.
func TestBuildIsReproducible(t *testing.T) {
	digests := map[string]string{}
	for _, b := range []struct{ name, architecture string }{{"first", "amd64"}, {"second", "amd64"},
		{"other", "arm64"}} {
		digest, err := build(t, b.architecture).Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[b.name] = digest.String()
	}
	if digests["first"] != digests["second"] {
		t.Errorf("two builds: %s and %s", digests["first"], digests["second"])
	}
	if digests["first"] == digests["other"] {
		t.Error("amd64 and arm64 gave the same image")
	}
}

func TestImageHoldsWhatItDeclares(t *testing.T) {
	img := build(t, "amd64")
	files := mutate.Extract(img)
	defer func() { _ = files.Close() }()
	got := map[string]int64{}
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			got[header.Name] = header.Mode
		}
	}
	if len(got) != 2 || got["opt/hello"] != 0o755 || got["opt/agent.jar"] != 0o644 {
		t.Errorf("got files %v", got)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/opt/hello" ||
		config.Config.Labels["org.opencontainers.image.version"] != "v1" {
		t.Errorf("got configuration %+v", config.Config)
	}
}

func TestBuildFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Image)
		want   string
	}{
		"package missing": {func(i *Image) { i.Binaries = map[string]string{"/x": "./nothing"} }, "no such package"},
		"not a command":   {func(i *Image) { i.Binaries = map[string]string{"/x": "./library"} }, "not main"},
		"jar not locked": {func(i *Image) {
			i.Jars = map[string]lock.Coordinates{"/x.jar": {Group: "g", ID: "agent", Version: "2"}}
		}, "g:agent:2"},
	} {
		t.Run(name, func(t *testing.T) {
			image := fixture
			c.change(&image)
			_, err := builder(t, "amd64").Build(t.Context(), image, locked, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestCheckRepository(t *testing.T) {
	if err := CheckRepository("../../../.."); err != nil {
		t.Error(err)
	}
	if err := CheckRepository("testdata/repository"); err == nil {
		t.Error("another module counts as a checkout")
	}
	if err := CheckRepository(t.TempDir()); err == nil {
		t.Error("an empty directory counts as a checkout")
	}
}
