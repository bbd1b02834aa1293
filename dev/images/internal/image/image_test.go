package image

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"helenus.io/helenus/dev/images/internal/layer"
)

// assemble makes an image of one layer, written anew.
func assemble(t *testing.T, content string) v1.Image {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layer.tar.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := (layer.Tree{"bin/x": {Mode: 0o755, Content: []byte(content)}}).Write(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	img, err := Assemble(Spec{Architecture: "arm64", Layers: []string{file},
		Config: v1.Config{User: "999", Entrypoint: []string{"/bin/x"}}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestSameInputsGiveTheSameDigest(t *testing.T) {
	first, err := assemble(t, "x").Digest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := assemble(t, "x").Digest()
	if err != nil {
		t.Fatal(err)
	}
	other, err := assemble(t, "y").Digest()
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("two builds of the same files: %s and %s", first, second)
	}
	if first == other {
		t.Error("other files gave the same digest")
	}
}

// The file is what localkube, crane and docker load read.
func TestWrittenImageCanBeRead(t *testing.T) {
	img := assemble(t, "x")
	var file bytes.Buffer
	if err := Write(&file, "docker.io/library/cassandra:5.0.6", img); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("docker.io/library/cassandra:5.0.6")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.Image(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(file.Bytes())), nil
	}, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "999" ||
		!config.Created.Equal(config.Created.UTC()) || config.Created.Unix() != 0 {
		t.Errorf("read a configuration that differs: %+v", config)
	}
	layers, err := read.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("read %d layers (%v), want 1", len(layers), err)
	}
}

func TestWriteRefusesAnIncompleteReference(t *testing.T) {
	if err := Write(io.Discard, "cassandra", assemble(t, "x")); err == nil {
		t.Error("a reference without registry and tag was accepted")
	}
}
