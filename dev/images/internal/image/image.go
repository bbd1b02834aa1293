package image

import (
	"fmt"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Spec is everything about an image but its name.
type Spec struct {
	// Architecture is amd64 or arm64; the system is always linux.
	Architecture string
	// Layers are compressed layer files, lowest first.
	Layers []string
	Config v1.Config
}

// Assemble makes the image. The same spec and layers give the same digest: the
// only time in it is the Unix epoch.
func Assemble(spec Spec) (v1.Image, error) {
	img := empty.Image
	for _, file := range spec.Layers {
		layer, err := tarball.LayerFromFile(file)
		if err != nil {
			return nil, fmt.Errorf("read layer %s: %w", file, err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, fmt.Errorf("append layer %s: %w", file, err)
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = spec.Architecture, "linux"
	config.Config = spec.Config
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	for i := range config.History {
		config.History[i].Created = config.Created
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	return img, nil
}

// Write writes img as a docker archive with one tag: a tar with manifest.json,
// the configuration and the compressed layers, readable by tarball.Image of
// go-containerregistry, crane push, ctr images import and docker load.
func Write(w io.Writer, reference string, img v1.Image) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	if err := tarball.Write(tag, img, w); err != nil {
		return fmt.Errorf("write image %s: %w", reference, err)
	}
	return nil
}
