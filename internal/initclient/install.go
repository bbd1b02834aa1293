package initclient

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install puts the binary at src to dst, in the volume that the Cassandra container executes it
// from. It appears whole and executable or not at all, and replaces one that runs without touching
// it: the old file lives on until its process ends. Missing directories of dst are made.
func Install(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return fmt.Errorf("open helenus-init of this image: %w", err)
	}
	defer func() { _ = in.Close() }()
	if err := os.MkdirAll(filepath.Dir(dst), 0o775); err != nil {
		return fmt.Errorf("create directory for helenus-init: %w", err)
	}
	out, err := os.CreateTemp(filepath.Dir(dst), ".helenus-init-*")
	if err != nil {
		return fmt.Errorf("create copy of helenus-init: %w", err)
	}
	defer func() {
		_ = out.Close()
		_ = os.Remove(out.Name()) // gone after the rename
	}()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy helenus-init to %s: %w", out.Name(), err)
	}
	if err := out.Chmod(0o555); err != nil {
		return fmt.Errorf("make %s executable: %w", out.Name(), err)
	}
	// Closed before the rename: a file open for writing cannot be executed.
	if err := out.Close(); err != nil {
		return fmt.Errorf("write %s: %w", out.Name(), err)
	}
	if err := os.Rename(out.Name(), dst); err != nil {
		return fmt.Errorf("publish helenus-init: %w", err)
	}
	return nil
}
