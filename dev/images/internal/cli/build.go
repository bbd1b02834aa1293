package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/cassandra"
	"helenus.io/helenus/dev/images/internal/image"
	"helenus.io/helenus/dev/images/internal/lock"
)

// built is written beside an image file: what it was made from, and its digest.
type built struct {
	Key       string `json:"key"`
	Digest    string `json:"digest"`
	Reference string `json:"reference"`
}

func (a *app) build() *cobra.Command {
	force := false
	command := &cobra.Command{
		Use:   "build IMAGE...",
		Short: "Build images, unless they are up to date",
		Long: `Builds the named images and prints the file of each. "cassandra" stands for all
Cassandra images. An image is built only if what it is made from has changed.`,
		Example: "  images build cassandra-5.0.6\n  images build cassandra",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			c, err := a.cache()
			if err != nil {
				return err
			}
			for _, name := range names {
				versions := cassandra.Versions
				if name != "cassandra" {
					v, err := cassandra.Find(name)
					if err != nil {
						return err
					}
					versions = []cassandra.Version{v}
				}
				for _, v := range versions {
					if err := a.buildCassandra(command.Context(), command.OutOrStdout(), command.ErrOrStderr(), c, v, force); err != nil {
						return fmt.Errorf("build %s: %w", v.Image(), err)
					}
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&force, "force", false, "build even what is up to date (layers are still reused)")
	return command
}

func (a *app) buildCassandra(ctx context.Context, out, progress io.Writer, c *cache.Cache, v cassandra.Version, force bool) error {
	locked, err := a.readLock(v.Image())
	if err != nil {
		return err
	}
	builder := &cassandra.Builder{Cache: c, Recipe: a.recipeID, Log: func(format string, arguments ...any) {
		_, _ = fmt.Fprintf(progress, format+"\n", arguments...)
	}}
	key, err := builder.Key(v, locked)
	if err != nil {
		return err
	}
	return a.store(out, progress, c, target{name: v.Image(), reference: v.Reference(), key: key}, force, func() (v1.Image, error) {
		return builder.Build(ctx, v, locked)
	})
}

// target is an image to be built.
type target struct{ name, reference, key string }

// store builds and writes an image unless the file in the cache has its key,
// and prints the path of the file.
func (a *app) store(out, progress io.Writer, c *cache.Cache, t target, force bool, build func() (v1.Image, error)) error {
	file := c.Image(t.name + "-" + a.architecture)
	if old, err := readBuilt(file); err == nil && old.Key == t.key && !force {
		_, _ = fmt.Fprintln(out, file)
		return nil
	}
	release, err := c.Lock("build")
	if err != nil {
		return err
	}
	defer release()
	start := time.Now()
	_, _ = fmt.Fprintf(progress, "building %s (%s)\n", t.name, a.architecture)
	img, err := build()
	if err != nil {
		return err
	}
	if err := cache.WriteFile(file, func(w io.Writer) error { return image.Write(w, t.reference, img) }); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	note, err := json.Marshal(built{Key: t.key, Digest: digest.String(), Reference: t.reference})
	if err != nil {
		return err
	}
	// Written last: without it the image counts as not built.
	if err := os.WriteFile(file+".json", note, 0o644); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(progress, "  built in %.1f s: %s\n", time.Since(start).Seconds(), digest)
	_, _ = fmt.Fprintln(out, file)
	return nil
}

func readBuilt(file string) (*built, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file + ".json")
	if err != nil {
		return nil, err
	}
	var b built
	return &b, json.Unmarshal(text, &b)
}

// readLock returns the lock file of an image for the wanted architecture.
func (a *app) readLock(name string) (*lock.File, error) {
	path := fmt.Sprintf("locks/%s-%s.json", name, a.architecture)
	text, err := fs.ReadFile(a.locks, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s: make it with `images lock %s --arch %s`", path, name, a.architecture)
	}
	if err != nil {
		return nil, err
	}
	locked, err := lock.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return locked, nil
}
