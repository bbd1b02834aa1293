package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// FS is what the journal needs of the file system of a volume. Names are relative to its root, with
// slashes. Nothing but Sync of a file and SyncDir of a directory makes anything durable.
type FS interface {
	// ReadFile returns a whole file, at most MaxFileBytes; fs.ErrNotExist if there is none.
	ReadFile(name string) ([]byte, error)
	// Create makes an empty file, in place of one of that name.
	Create(name string) (File, error)
	// Rename gives a file another name, in place of one that has it.
	Rename(from, to string) error
	// Mkdir makes a directory; one that exists is no error.
	Mkdir(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// File is a file that is being written.
type File interface {
	io.Writer
	// Sync makes the content durable, though not the name.
	Sync() error
	Close() error
}

// MaxFileBytes bounds what is read and written: a thousand peers take about 300 KB.
const MaxFileBytes = 4 << 20

// Volume is a real volume. No name or symbolic link in it leads out of it.
type Volume struct{ root *os.Root }

// OpenVolume opens the volume that is mounted at a directory.
func OpenVolume(dir string) (*Volume, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	return &Volume{root}, nil
}

// Close gives the volume up.
func (v *Volume) Close() error { return v.root.Close() }

// ReadFile implements FS.
func (v *Volume) ReadFile(name string) ([]byte, error) {
	file, err := v.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && len(content) > MaxFileBytes {
		err = fmt.Errorf("%s has more than %d bytes", name, MaxFileBytes)
	}
	return content, err
}

// Create implements FS.
func (v *Volume) Create(name string) (File, error) {
	return v.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o660)
}

// Rename implements FS.
func (v *Volume) Rename(from, to string) error { return v.root.Rename(from, to) }

// Mkdir implements FS.
func (v *Volume) Mkdir(name string) error {
	if err := v.root.Mkdir(name, 0o770); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// SyncDir implements FS.
func (v *Volume) SyncDir(name string) error {
	dir, err := v.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}

// replaceFile puts content to name, durably and atomically: another file is written and made
// durable, then takes the name. After an error the file is the old or the new one. A failed Sync is
// never repeated on the same file, because the kernel may have dropped what it could not write: the
// next attempt rewrites everything. The caller makes the name durable.
func replaceFile(volume FS, name string, content []byte) error {
	temporary := name + ".new"
	file, err := volume.Create(temporary)
	if err != nil {
		return fmt.Errorf("create %s: %w", temporary, err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", temporary, err)
	}
	if err := volume.Rename(temporary, name); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}
