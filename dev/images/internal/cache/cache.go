package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Cache is a directory tree: downloads by hash, layers by key, and images by
// name. Every file appears in it whole or not at all.
type Cache struct {
	root string
}

// Open returns the cache of this user: $HELENUS_CACHE, else
// $XDG_CACHE_HOME/helenus, else ~/.cache/helenus. The directory is created.
func Open() (*Cache, error) {
	root := os.Getenv("HELENUS_CACHE")
	if root == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the cache directory (set HELENUS_CACHE to choose one): %w", err)
		}
		root = filepath.Join(base, "helenus")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("make cache directory %s absolute: %w", root, err)
	}
	return At(root)
}

// At returns a cache below root, which is created.
func At(root string) (*Cache, error) {
	for _, directory := range []string{"images", "downloads", "layers", "apt", "work"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			return nil, fmt.Errorf("create cache: %w", err)
		}
	}
	return &Cache{root: root}, nil
}

// Root is the directory of the cache.
func (c *Cache) Root() string { return c.root }

// Image is where the image file called name lies, built or not.
func (c *Cache) Image(name string) string {
	return filepath.Join(c.root, "images", name+".tar")
}

// Layer is where the compressed layer with this key lies, built or not.
func (c *Cache) Layer(key string) string {
	return filepath.Join(c.root, "layers", key+".tar.gz")
}

// Apt is the private state directory of apt for one Debian suite.
func (c *Cache) Apt(suite string) string {
	return filepath.Join(c.root, "apt", suite)
}

// Download is where the file with this SHA-256 (hexadecimal) lies, present or not.
func (c *Cache) Download(sha string) string {
	return filepath.Join(c.root, "downloads", sha)
}

// Has says whether the download with this hash is present.
func (c *Cache) Has(sha string) bool {
	_, err := os.Stat(c.Download(sha))
	return err == nil
}

// WrongHashError says that a file is not the one that was locked.
type WrongHashError struct {
	What, Want, Got string
}

func (e *WrongHashError) Error() string {
	return fmt.Sprintf("%s has sha256 %s, but the lock file says %s: "+
		"do not use it; find out why it changed, and only then run `lock`", e.What, e.Got, e.Want)
}

// Keep copies file into the cache if its hash is the expected one, and returns
// a WrongHashError if not. What names the file in the error.
func (c *Cache) Keep(what, file, sha string) error {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("keep %s: %w", what, err)
	}
	defer func() { _ = in.Close() }()
	var got string
	err = WriteFile(c.Download(sha), func(w io.Writer) error {
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(w, hash), in); err != nil {
			return err
		}
		if got = hex.EncodeToString(hash.Sum(nil)); got != sha {
			return &WrongHashError{What: what, Want: sha, Got: got}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep %s: %w", what, err)
	}
	return nil
}

// WorkDir makes an empty directory for temporary files; the caller removes it.
func (c *Cache) WorkDir(purpose string) (string, error) {
	directory, err := os.MkdirTemp(filepath.Join(c.root, "work"), purpose+"-")
	if err != nil {
		return "", fmt.Errorf("create work directory: %w", err)
	}
	return directory, nil
}

// Lock waits until this process alone holds the named lock and returns its
// release. It guards against two builds that write the same files.
func (c *Cache) Lock(name string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(c.root, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() { _ = file.Close() }, nil
}

// WriteFile writes a file through a temporary one beside it, so that other
// readers see it whole or not at all.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// SHA256 is the hash of a file, in hexadecimal.
func SHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Exists says whether there is a file at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
