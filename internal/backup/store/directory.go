package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Directory is a store in a directory, which must exist.
type Directory string

// Put writes to a file of another name first, which is then linked: link fails where the object is.
func (d Directory) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	path := d.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("make directory of object %s: %w", key, err)
	}
	file, err := os.CreateTemp(string(d), ".put-")
	if err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	written, err := io.Copy(file, content)
	if err = errors.Join(err, file.Sync(), file.Close(), ctx.Err()); err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	if written != size {
		return fmt.Errorf("write object %s: content has %d bytes, not %d", key, written, size)
	}
	switch err = os.Link(file.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return ErrExists
	case err != nil:
		return fmt.Errorf("write object %s: %w", key, err)
	}
	return nil
}

// Get opens the file.
func (d Directory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := os.Open(d.path(key))
	if err != nil {
		return nil, d.failed("read", key, err)
	}
	return file, nil
}

// Size asks for that of the file.
func (d Directory) Size(_ context.Context, key string) (int64, error) {
	info, err := os.Stat(d.path(key))
	if err != nil {
		return 0, d.failed("look for", key, err)
	}
	return info.Size(), nil
}

// List walks the directory.
func (d Directory) List(ctx context.Context, prefix string, each func(Object) error) error {
	var found []Object
	err := filepath.WalkDir(string(d), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".put-") {
			return err
		}
		relative, err := filepath.Rel(string(d), path)
		if key := filepath.ToSlash(relative); err == nil && strings.HasPrefix(key, prefix) {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			found = append(found, Object{Key: key, Size: info.Size(), Written: info.ModTime()})
		}
		return err
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("list objects %s: %w", prefix, err)
	}
	slices.SortFunc(found, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	for _, object := range found {
		if err := each(object); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes the file.
func (d Directory) Delete(_ context.Context, key string) error {
	if err := os.Remove(d.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	return nil
}

func (d Directory) path(key string) string { return filepath.Join(string(d), filepath.FromSlash(key)) }

func (d Directory) failed(verb, key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	return fmt.Errorf("%s object %s: %w", verb, key, err)
}
