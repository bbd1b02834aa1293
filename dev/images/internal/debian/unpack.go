package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"strings"

	"helenus.io/helenus/dev/images/internal/layer"
)

// mergedUsr are the top directories that Debian turned into links below usr;
// packages still ship files under the old names.
var mergedUsr = []string{"bin", "sbin", "lib", "lib32", "lib64"}

// Merge moves a path of a package to where it is found in a file system with
// merged /usr: lib/x becomes usr/lib/x.
func Merge(name string) string {
	top, rest, nested := strings.Cut(name, "/")
	for _, directory := range mergedUsr {
		if top == directory {
			if !nested {
				return "usr/" + directory
			}
			return "usr/" + directory + "/" + rest
		}
	}
	return name
}

// Unpack adds the files of the package at deb to tree for which keep says so;
// it is asked with paths without leading slash, in merged /usr. Hard links
// become copies. Maintainer scripts are not run.
func Unpack(ctx context.Context, deb string, tree layer.Tree, keep func(name string) bool) error {
	command := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	unpackErr := unpackTar(out, tree, keep)
	// What is left must be read, or dpkg-deb would wait for ever.
	_, drainErr := io.Copy(io.Discard, out)
	if err := command.Wait(); err != nil {
		return fmt.Errorf("unpack package: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return errors.Join(unpackErr, drainErr)
}

func unpackTar(in io.Reader, tree layer.Tree, keep func(name string) bool) error {
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack package: %w", err)
		}
		name := Merge(path.Clean(strings.TrimPrefix(header.Name, "./")))
		if name == "." || !keep(name) {
			continue
		}
		entry := layer.Entry{Mode: header.FileInfo().Mode().Perm(), UID: header.Uid, GID: header.Gid}
		switch header.Typeflag {
		case tar.TypeDir:
			entry.Kind = layer.Directory
			if header.Mode&0o1000 != 0 {
				entry.Mode |= fs.ModeSticky
			}
		case tar.TypeSymlink:
			entry.Kind, entry.Target = layer.Symlink, header.Linkname
		case tar.TypeReg:
			if entry.Content, err = io.ReadAll(archive); err != nil {
				return fmt.Errorf("unpack %s: %w", name, err)
			}
		case tar.TypeLink:
			target := Merge(path.Clean(strings.TrimPrefix(header.Linkname, "./")))
			linked, ok := tree[target]
			if !ok {
				return fmt.Errorf("unpack %s: hard link to %s, which is left out", name, target)
			}
			entry = linked
		default:
			return fmt.Errorf("unpack %s: type %q is not supported", name, header.Typeflag)
		}
		if err := tree.Add(name, entry); err != nil {
			return err
		}
	}
}
