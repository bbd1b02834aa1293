package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/cassandra"
	"helenus.io/helenus/dev/images/internal/image"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
	"helenus.io/helenus/dev/images/internal/own"
)

// built is written beside an image file: what it was made from, and its digest.
type built struct {
	Key       string `json:"key"`
	Digest    string `json:"digest"`
	Reference string `json:"reference"`
	// Layers are the layer files in the cache that the image was made from.
	Layers []string `json:"layers,omitempty"`
}

func (a *app) build() *cobra.Command {
	options := buildOptions{}
	command := &cobra.Command{
		Use:   "build IMAGE...",
		Short: "Build images, unless they are up to date",
		Long: `Builds the named images and prints the file of each. "cassandra" stands for all
Cassandra images, "own" for all of the project's. A Cassandra image is built only
if what it is made from has changed; the project's are always compiled, which is
quick when nothing changed.`,
		Example: "  images build cassandra-5.0.6\n  images build cassandra\n  images build helenus helenus-agent " +
			"--tag v0.1.0 --arch arm64",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			c, err := a.cache()
			if err != nil {
				return err
			}
			for _, name := range expand(names) {
				if i, ok := own.Find(name); ok {
					err = a.buildOwn(command.Context(), command.OutOrStdout(), command.ErrOrStderr(), c, i, options)
				} else {
					var v cassandra.Version
					if v, err = cassandra.Find(name); err != nil {
						return fmt.Errorf("no image %q; there are %s", name, strings.Join(allNames(), ", "))
					}
					err = a.buildCassandra(command.Context(), command.OutOrStdout(), command.ErrOrStderr(), c, v,
						options.force)
				}
				if err != nil {
					return fmt.Errorf("build %s: %w", name, err)
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&options.force, "force", false, "build even what is up to date (layers are still reused)")
	command.Flags().StringVar(&options.repository, "repo", "../..",
		"checkout whose commands go into the project's images")
	a.tagFlag(command)
	return command
}

// buildOptions are the flags of build.
type buildOptions struct {
	force      bool
	repository string
}

// expand replaces the names of groups by those of their images.
func expand(names []string) []string {
	var all []string
	for _, name := range names {
		switch name {
		case "cassandra":
			all = append(all, cassandra.Names()...)
		case "own":
			for _, i := range own.Images {
				all = append(all, i.Name)
			}
		default:
			all = append(all, name)
		}
	}
	return all
}

func allNames() []string { return expand([]string{"cassandra", "own"}) }

func (a *app) tagFlag(command *cobra.Command) {
	command.Flags().StringVar(&a.tag, "tag", "dev", "tag of the project's images")
}

// file is where the image called name lies: the project's have their tag in it.
func (a *app) file(c *cache.Cache, name string) string {
	if _, ok := own.Find(name); ok {
		name += "-" + a.tag
	}
	return c.Image(name + "-" + a.architecture)
}

func (a *app) buildOwn(ctx context.Context, out, progress io.Writer, c *cache.Cache, i own.Image,
	options buildOptions) error {
	if err := own.CheckRepository(options.repository); err != nil {
		return err
	}
	start := time.Now()
	var locked *lock.File
	if len(i.Artifacts()) > 0 {
		var err error
		if locked, err = a.readLock(i.Name, own.AnyArchitecture); err != nil {
			return err
		}
	}
	mvn, err := maven.New(c)
	if err != nil {
		return err
	}
	builder := &own.Builder{
		Repository: options.repository, Architecture: a.architecture, Tag: a.tag,
		Jar: func(ctx context.Context, artifact lock.Artifact) (string, error) {
			return c.Download(artifact.SHA256), mvn.Fetch(ctx, []lock.Artifact{artifact})
		},
	}
	work, err := c.WorkDir("own")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	img, err := builder.Build(ctx, i, locked, work)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	// The digest is the key: whether the sources changed is known once compiled.
	return a.store(out, progress, c, target{name: i.Name, reference: builder.Reference(i), key: digest.String(),
		since: start}, options.force,
		func() (v1.Image, []string, error) { return img, nil, nil })
}

func (a *app) buildCassandra(ctx context.Context, out, progress io.Writer, c *cache.Cache, v cassandra.Version,
	force bool) error {
	locked, err := a.readLock(v.Image(), a.architecture)
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
	return a.store(out, progress, c, target{name: v.Image(), reference: v.Reference(), key: key}, force,
		func() (v1.Image, []string, error) {
			return builder.Build(ctx, v, locked)
		})
}

// target is an image to be built.
type target struct {
	name, reference, key string
	// since is when work on it began; zero if it begins now.
	since time.Time
}

// store builds and writes an image unless the file in the cache has its key,
// and prints the path of the file.
func (a *app) store(out, progress io.Writer, c *cache.Cache, t target, force bool,
	build func() (v1.Image, []string, error)) error {
	file := a.file(c, t.name)
	if old, err := readBuilt(file); err == nil && old.Key == t.key && !force {
		_, _ = fmt.Fprintln(out, file)
		return nil
	}
	release, err := c.Lock("build")
	if err != nil {
		return err
	}
	defer release()
	start := t.since
	if start.IsZero() {
		start = time.Now()
	}
	_, _ = fmt.Fprintf(progress, "building %s (%s)\n", t.name, a.architecture)
	img, layers, err := build()
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
	note, err := json.Marshal(built{Key: t.key, Digest: digest.String(), Reference: t.reference, Layers: layers})
	if err != nil {
		return err
	}
	// Written last: without it the image counts as not built.
	if err := os.WriteFile(file+".json", note, 0o644); err != nil {
		return err
	}
	if err := prune(c); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(progress, "  built in %.1f s: %s\n", time.Since(start).Seconds(), digest)
	_, _ = fmt.Fprintln(out, file)
	return nil
}

// prune removes the layers that no image in the cache was made from.
func prune(c *cache.Cache) error {
	notes, err := filepath.Glob(c.Image("*") + ".json")
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, note := range notes {
		b, err := readBuilt(strings.TrimSuffix(note, ".json"))
		if err != nil {
			continue // an image that counts as not built needs no layers
		}
		for _, layer := range b.Layers {
			used[layer] = true
		}
	}
	layers, err := filepath.Glob(c.Layer("*"))
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if used[layer] {
			continue
		}
		if err := os.Remove(layer); err != nil {
			return fmt.Errorf("remove layer that is no longer used: %w", err)
		}
	}
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

// readLock returns the lock file of an image.
func (a *app) readLock(name, architecture string) (*lock.File, error) {
	path := fmt.Sprintf("locks/%s-%s.json", name, architecture)
	text, err := fs.ReadFile(a.locks, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s: make it with `images lock %s`", path, name)
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
