package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cache"
)

// app is what all commands share.
type app struct {
	locks        fs.FS
	recipe       fs.FS
	architecture string
	// tag is that of the project's images.
	tag string
}

// New returns the root command. Locks holds locks/<image>-<arch>.json, recipe the
// source of the packages beside this one.
func New(locks, recipe fs.FS) *cobra.Command {
	a := &app{locks: locks, recipe: recipe}
	root := &cobra.Command{
		Use:   "images",
		Short: "Build the container images of the local cluster, without Docker",
		Long: `Builds container images as files: Apache Cassandra in the layout of the official
image, and the project's own images. Cassandra comes from Maven Central, the
system from Debian, cqlsh from the Python package index, each by version and
hash of a lock file. The same inputs give the same image digest.

Files are kept in $HELENUS_CACHE, else $XDG_CACHE_HOME/helenus, else
~/.cache/helenus; an image that is up to date there is not built again.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&a.architecture, "arch", runtime.GOARCH,
		"processor architecture of the images: amd64 or arm64")
	root.AddCommand(a.build(), a.list(), a.path(), a.lock(), a.settings(), a.check(), a.container(), a.release(),
		a.sign())
	return root
}

func (a *app) cache() (*cache.Cache, error) { return cache.Open() }

// recipeID is a hash of the code of the named packages (or single files) of the
// builder, all if none is named, and of the compiler, whose library compresses
// the layers.
func (a *app) recipeID(packages ...string) (string, error) {
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, runtime.Version())
	if len(packages) == 0 {
		packages = []string{"."}
	}
	for _, pkg := range packages {
		err := fs.WalkDir(a.recipe, pkg, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(a.recipe, name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(hash, "%s %x\n", name, sha256.Sum256(content))
			return err
		})
		if err != nil {
			return "", fmt.Errorf("hash the builder's code: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
