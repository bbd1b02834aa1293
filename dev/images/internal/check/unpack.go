package check

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpack writes the file system of img below root.
func unpack(img v1.Image, root string) error {
	files := mutate.Extract(img)
	defer func() { _ = files.Close() }()
	directory, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("unpack image: %w", err)
	}
	defer func() { _ = directory.Close() }()
	archive := tar.NewReader(files)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack image: %w", err)
		}
		if err := unpackEntry(directory, header, archive); err != nil {
			return fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	name := path.Clean(strings.TrimPrefix(header.Name, "/"))
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return err
		}
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		file, err := root.Create(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	default:
		return fmt.Errorf("type %q is not supported", header.Typeflag)
	}
	if err := root.Lchown(name, header.Uid, header.Gid); err != nil {
		return err
	}
	return root.Chmod(name, header.FileInfo().Mode())
}
