package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/dev/localkube/step"
	"helenus.io/helenus/dev/localkube/versions"
)

// Cache is the folder of built binaries.
type Cache struct {
	dir     string
	version versions.Kubernetes
}

// DefaultCache is $HELENUS_CACHE, or helenus in the user's cache folder.
func DefaultCache() (string, error) {
	if dir := os.Getenv("HELENUS_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder (set HELENUS_CACHE to choose one): %w", err)
	}
	return filepath.Join(dir, "helenus"), nil
}

// Open gives the cache in dir for one Kubernetes release.
func Open(dir string, version versions.Kubernetes) *Cache {
	return &Cache{dir: filepath.Join(dir, "localkube"), version: version}
}

// Path is where the binary is, or will be once Ensure has built it.
func (c *Cache) Path(binary string) string {
	r, err := recipeOf(c.version, binary)
	if err != nil {
		panic(err)
	}
	return filepath.Join(c.dir, r.folder(), "bin", binary)
}

// Missing lists those of the binaries that are not built yet.
func (c *Cache) Missing(binaries []string) []string {
	var missing []string
	for _, binary := range binaries {
		if _, err := os.Stat(c.Path(binary)); err != nil {
			missing = append(missing, binary)
		}
	}
	return missing
}

// Ensure builds what is missing of the binaries, each as one step.
func (c *Cache) Ensure(ctx context.Context, steps *step.Reporter, binaries []string) error {
	missing := c.Missing(binaries)
	if len(missing) == 0 {
		return nil
	}
	steps.Say("Building Kubernetes %s and what belongs to it into %s; later starts build nothing.", c.version, c.dir)
	for _, binary := range missing {
		if err := c.ensure(ctx, steps, binary); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cache) ensure(ctx context.Context, steps *step.Reporter, binary string) error {
	r, err := recipeOf(c.version, binary)
	if err != nil {
		return err
	}
	w := workspace{recipe: r, dir: filepath.Join(c.dir, r.folder())}
	unlock, err := w.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// While we waited for the lock its holder may have built it.
	if len(c.Missing([]string{binary})) == 0 {
		return nil
	}
	if err := w.prepare(ctx, steps); err != nil {
		return err
	}
	return steps.Run(ctx, "build "+binary, func(ctx context.Context, p *step.Progress) error {
		return w.build(ctx, p, binary)
	})
}

// lock keeps two starts from building the same binary side by side.
func (w workspace) lock() (unlock func(), err error) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(w.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the cache's lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// writeFile replaces a file as a whole.
func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// lastLines shortens the output of a failed command to what tells why.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
