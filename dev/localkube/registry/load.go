package registry

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Loaded is an image that Load found in a file.
type Loaded struct {
	// Reference is the name under which nodes pull it.
	Reference string
	Digest    v1.Hash
	// Present tells that the registry had it already.
	Present bool
}

// Load puts the images of a file into the registry, under the names that the
// file gives them. The file is a tar as `docker save` or a builder of OCI images
// writes it, compressed by gzip or not, or a folder in OCI layout.
func Load(ctx context.Context, address, file string) ([]Loaded, error) {
	loaded, err := load(ctx, address, file)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", file, err)
	}
	return loaded, nil
}

func load(ctx context.Context, address, file string) ([]Loaded, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("find image: %w", err)
	}
	if info.IsDir() {
		return loadLayout(ctx, address, file)
	}
	kind, err := archiveKind(file)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "manifest.json":
		return loadDockerArchive(ctx, address, file)
	case "oci-layout":
		dir, err := os.MkdirTemp("", "localkube-load-*")
		if err != nil {
			return nil, fmt.Errorf("make a folder to unpack to: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := unpack(file, dir); err != nil {
			return nil, err
		}
		return loadLayout(ctx, address, dir)
	}
	return nil, errors.New("it is no image: neither manifest.json (docker save) nor oci-layout is in it")
}

// archiveKind looks for the file that tells the format. An archive that has
// both, as newer dockers write it, is read as a Docker archive, whose names are
// certain to be whole.
func archiveKind(file string) (string, error) {
	kind := ""
	err := eachFile(file, func(h *tar.Header, _ io.Reader) error {
		switch name := filepath.Clean(h.Name); name {
		case "manifest.json":
			kind = name
		case "oci-layout":
			if kind == "" {
				kind = name
			}
		}
		return nil
	})
	return kind, err
}

func loadDockerArchive(ctx context.Context, address, file string) ([]Loaded, error) {
	open := func() (io.ReadCloser, error) { return openArchive(file) }
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return nil, fmt.Errorf("read manifest.json: %w", err)
	}
	var all []Loaded
	for _, d := range manifest {
		if len(d.RepoTags) == 0 {
			return nil, errors.New("an image in it has no name: save it by name, not by id")
		}
		for _, ref := range d.RepoTags {
			tag, err := name.NewTag(ref)
			if err != nil {
				return nil, fmt.Errorf("image name %q: %w", ref, err)
			}
			image, err := tarball.Image(open, &tag)
			if err != nil {
				return nil, fmt.Errorf("read image %s: %w", ref, err)
			}
			one, err := Push(ctx, address, ref, image)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// Names of an image in an OCI layout: the standard's own annotation, which may
// hold a tag alone, and containerd's, which holds the whole name.
const (
	refAnnotation       = "org.opencontainers.image.ref.name"
	imageNameAnnotation = "io.containerd.image.name"
)

func loadLayout(ctx context.Context, address, dir string) ([]Loaded, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read OCI layout: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read OCI index: %w", err)
	}
	var all []Loaded
	for _, d := range manifest.Manifests {
		ref := d.Annotations[imageNameAnnotation]
		if ref == "" {
			ref = d.Annotations[refAnnotation]
		}
		if !strings.ContainsAny(ref, ":/") {
			return nil, fmt.Errorf("image %s in it has the name %q, which is not whole: write REPOSITORY:TAG into "+
				"the annotation %s", d.Digest, ref, refAnnotation)
		}
		var what remote.Taggable
		if d.MediaType.IsIndex() {
			what, err = index.ImageIndex(d.Digest)
		} else {
			what, err = index.Image(d.Digest)
		}
		if err != nil {
			return nil, fmt.Errorf("read image %s: %w", ref, err)
		}
		one, err := Push(ctx, address, ref, what)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// digested is what images and indexes have in common.
type digested interface{ Digest() (v1.Hash, error) }

// Push puts an image or an index into the registry under a name, unless that
// very content is there under it.
func Push(ctx context.Context, address, ref string, what remote.Taggable) (Loaded, error) {
	target, err := stored(address, ref)
	if err != nil {
		return Loaded{}, err
	}
	loaded := Loaded{Reference: ref}
	if d, ok := what.(digested); ok {
		if loaded.Digest, err = d.Digest(); err != nil {
			return loaded, fmt.Errorf("digest image %s: %w", ref, err)
		}
	}
	if there, err := remote.Head(target, remote.WithContext(ctx)); err == nil && there.Digest == loaded.Digest {
		loaded.Present = true
		return loaded, nil
	}
	switch image := what.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(target, image, remote.WithContext(ctx))
	case v1.Image:
		err = remote.Write(target, image, remote.WithContext(ctx))
	default:
		err = fmt.Errorf("unknown kind %T", what)
	}
	if err != nil {
		return loaded, fmt.Errorf("push image %s: %w", ref, err)
	}
	return loaded, nil
}

// openArchive opens a tar that may be compressed by gzip.
func openArchive(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	var magic [2]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("read image: %w", err), f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("read image: %w", err), f.Close())
	}
	if n < 2 || magic != [2]byte{0x1f, 0x8b} {
		return f, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read image: %w", err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

func eachFile(file string, do func(*tar.Header, io.Reader) error) error {
	f, err := openArchive(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read tar: %w", err)
		}
		if err := do(h, r); err != nil {
			return err
		}
	}
}

// unpack writes the files of an archive to a folder and nothing outside it.
func unpack(file, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer func() { _ = root.Close() }()
	return eachFile(file, func(h *tar.Header, content io.Reader) error {
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		path := filepath.Clean(h.Name)
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		f, err := root.Create(path)
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		_, err = io.Copy(f, content)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("unpack %s: %w", path, err)
		}
		return nil
	})
}
