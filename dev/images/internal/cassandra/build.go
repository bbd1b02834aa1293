package cassandra

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/debian"
	"helenus.io/helenus/dev/images/internal/image"
	"helenus.io/helenus/dev/images/internal/jre"
	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
	"helenus.io/helenus/dev/images/internal/pypi"
	"helenus.io/helenus/dev/images/rootfs"
)

// Builder builds Cassandra images into a cache.
type Builder struct {
	Cache *cache.Cache
	// Recipe identifies the code in the given packages of the builder, or all of
	// it: what other code made is not reused.
	Recipe func(packages ...string) (string, error)
	// Log is told each step with its duration.
	Log func(format string, arguments ...any)
}

// Key identifies everything the image of v is made from: the same key means
// the same image.
func (b *Builder) Key(v Version, locked *lock.File) (string, error) {
	own, err := hashFS(rootfs.Files, "common", v.Line(), v.Number)
	if err != nil {
		return "", err
	}
	recipe, err := b.Recipe()
	if err != nil {
		return "", err
	}
	return digest(recipe, v, locked, own)
}

// Build fetches what is missing, assembles the layers that are not in the cache
// and returns the image with the files of its layers, lowest first.
func (b *Builder) Build(ctx context.Context, v Version, locked *lock.File) (v1.Image, []string, error) {
	if locked.Debian == nil || locked.Java == nil {
		return nil, nil, fmt.Errorf("the lock file of %s lists no Debian packages: run `lock %s`", v.Image(), v.Image())
	}
	own, err := hashFS(rootfs.Files, "common", v.Line(), v.Number)
	if err != nil {
		return nil, nil, err
	}
	if locked.Architecture != runtime.GOARCH {
		return nil, nil, fmt.Errorf("an image for %s needs a machine of that kind: its JDK is run while it is made",
			locked.Architecture)
	}
	var layers [3]string
	if err := b.step("download", func() error { return b.fetch(ctx, v, locked) }); err != nil {
		return nil, nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, l := range []struct {
		name string
		// code lists the packages that shape the layer, key what else does.
		code     []string
		key      []any
		assemble func(ctx context.Context, work string) (layer.Tree, error)
	}{
		{"Debian " + v.Suite, []string{"debian", "layer", "cassandra/base.go", "cassandra/packages.go"},
			[]any{locked.Architecture, locked.Debian}, func(ctx context.Context, _ string) (layer.Tree, error) {
				return base(ctx, b.Cache, locked.Debian.Packages, locked.Architecture)
			}},
		{fmt.Sprintf("Java %d", v.Java), []string{"debian", "layer", "jre"}, []any{locked.Architecture, locked.Java},
			func(ctx context.Context, work string) (layer.Tree, error) {
				return b.java(ctx, v, locked.Java.Packages, work)
			}},
		{"Cassandra " + v.Number, []string{"pypi", "layer", "settings", "cassandra"}, []any{v, locked, own},
			func(context.Context, string) (layer.Tree, error) {
				return server(b.Cache, v, locked)
			}},
	} {
		group.Go(func() error {
			path, err := b.layer(ctx, l.name, l.code, l.key, l.assemble)
			layers[i] = path
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	img, err := image.Assemble(image.Spec{Architecture: locked.Architecture, Layers: layers[:], Config: config(v)})
	return img, layers[:], err
}

// fetch brings every locked file into the cache, from all sources at once.
func (b *Builder) fetch(ctx context.Context, v Version, locked *lock.File) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		apt, err := debian.New(b.Cache, v.Suite, locked.Architecture)
		if err != nil {
			return err
		}
		return apt.Fetch(ctx, append(append([]lock.Package{}, locked.Debian.Packages...), locked.Java.Packages...))
	})
	group.Go(func() error {
		mvn, err := maven.New(b.Cache)
		if err != nil {
			return err
		}
		return mvn.Fetch(ctx, locked.Maven)
	})
	group.Go(func() error {
		pip, err := pypi.New(b.Cache, v.Python, locked.Architecture)
		if err != nil {
			return err
		}
		return pip.Fetch(ctx, locked.Python)
	})
	return group.Wait()
}

// layer returns the file of a layer, assembled now unless it is in the cache.
func (b *Builder) layer(ctx context.Context, name string, code []string, key []any,
	assemble func(ctx context.Context, work string) (layer.Tree, error)) (string, error) {
	recipe, err := b.Recipe(code...)
	if err != nil {
		return "", err
	}
	id, err := digest(append([]any{recipe, name}, key...)...)
	if err != nil {
		return "", err
	}
	path := b.Cache.Layer(id)
	if cache.Exists(path) {
		return path, nil
	}
	work, err := b.Cache.WorkDir("layer")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	err = b.step("layer "+name, func() error {
		tree, err := assemble(ctx, work)
		if err != nil {
			return err
		}
		return cache.WriteFile(path, func(w io.Writer) error { return tree.Write(w) })
	})
	return path, err
}

func (b *Builder) java(ctx context.Context, v Version, packages []lock.Package, work string) (layer.Tree, error) {
	jdk := layer.Tree{}
	for _, p := range packages {
		if err := debian.Unpack(ctx, b.Cache.Download(p.SHA256), jdk, func(string) bool { return true }); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", p.Name, err)
		}
	}
	return jre.Build(ctx, jdk, v.Java, work, javaHome)
}

func (b *Builder) step(name string, do func() error) error {
	start := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.Log("  %-24s %6.1f s", name, time.Since(start).Seconds())
	return nil
}

// config is the configuration of the official image.
func config(v Version) v1.Config {
	return v1.Config{
		Env: []string{
			"PATH=/opt/cassandra/bin:/opt/java/openjdk/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"JAVA_HOME=/" + javaHome,
			"CASSANDRA_HOME=/" + home,
			"CASSANDRA_CONF=/" + conf,
			"CASSANDRA_VERSION=" + v.Number,
		},
		Entrypoint: []string{"docker-entrypoint.sh"},
		Cmd:        []string{"cassandra", "-f"},
		WorkingDir: "/",
		Volumes:    map[string]struct{}{"/var/lib/cassandra": {}},
		ExposedPorts: map[string]struct{}{"7000/tcp": {}, "7001/tcp": {}, "7199/tcp": {}, "9042/tcp": {},
			"9160/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Apache Cassandra",
			"org.opencontainers.image.version":  v.Number,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.description": "Apache Cassandra in the layout of the official image, for " +
				"development and tests",
		},
	}
}

// digest is a hash over the JSON of values.
func digest(values ...any) (string, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("compute key: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// hashFS is a hash over the names and contents of the files below directories;
// those that do not exist count as empty.
func hashFS(files fs.FS, directories ...string) (string, error) {
	hash := sha256.New()
	for _, directory := range directories {
		if _, err := fs.Stat(files, directory); err != nil {
			continue
		}
		err := fs.WalkDir(files, directory, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(content)
			_, err = fmt.Fprintf(hash, "%s %x\n", strings.TrimPrefix(name, "./"), sum)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("hash files of the image: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
