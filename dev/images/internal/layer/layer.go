package layer

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an entry.
type Kind int

// The kinds of entries a layer can hold. Devices, sockets and hard links are
// not among them: nothing here needs them.
const (
	Regular Kind = iota
	Directory
	Symlink
)

// Entry is one file, directory or symbolic link.
type Entry struct {
	Kind Kind
	// Mode holds the permission bits, with fs.ModeSticky where wanted.
	Mode     fs.FileMode
	UID, GID int
	// Target is what a symbolic link points to.
	Target string
	// Content is the content of a regular file, unless File is set.
	Content []byte
	// File is the path on this machine of a regular file's content.
	File string
}

// Tree is the content of a layer by absolute path without the leading slash.
// Parent directories are added when it is written (0755, root).
type Tree map[string]Entry

// Add puts an entry at name, replacing what was there.
func (t Tree) Add(name string, entry Entry) error {
	clean := path.Clean(strings.TrimPrefix(name, "/"))
	if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return fmt.Errorf("add %q to layer: not a path inside the image", name)
	}
	t[clean] = entry
	return nil
}

// AddDir adds the file tree below directory at the path below prefix, owned by
// root, with the permissions found.
func (t Tree) AddDir(directory, prefix string) error {
	return filepath.WalkDir(directory, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(directory, file)
		if err != nil {
			return err
		}
		name := path.Join(prefix, filepath.ToSlash(relative))
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return t.Add(name, Entry{Kind: Directory, Mode: info.Mode().Perm()})
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			return t.Add(name, Entry{Kind: Symlink, Mode: 0o777, Target: target})
		case entry.Type().IsRegular():
			return t.Add(name, Entry{Kind: Regular, Mode: info.Mode().Perm(), File: file})
		default:
			return fmt.Errorf("add %s to layer: %s is neither file, directory nor link", file, entry.Type())
		}
	})
}

// Write writes the layer as a compressed tar archive.
func (t Tree) Write(w io.Writer) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	all := t.withParents()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := all[name].write(archive, name); err != nil {
			return fmt.Errorf("write %s to layer: %w", name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func (t Tree) withParents() Tree {
	all := maps.Clone(t)
	for name := range t {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if _, ok := all[parent]; !ok {
				all[parent] = Entry{Kind: Directory, Mode: 0o755}
			}
		}
	}
	return all
}

func (e Entry) write(archive *tar.Writer, name string) error {
	header := &tar.Header{
		Name: name,
		Mode: int64(e.Mode.Perm()),
		Uid:  e.UID,
		Gid:  e.GID,
		// The Unix epoch, not the zero time: that one is year 1.
		ModTime: time.Unix(0, 0),
		Format:  tar.FormatPAX,
	}
	if e.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch e.Kind {
	case Directory:
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return archive.WriteHeader(header)
	case Symlink:
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.Target
		return archive.WriteHeader(header)
	case Regular:
	}
	header.Typeflag = tar.TypeReg
	if e.File == "" {
		header.Size = int64(len(e.Content))
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(e.Content)
		return err
	}
	file, err := os.Open(e.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}
