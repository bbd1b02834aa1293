package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/cassandra"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/maven"
	"helenus.io/helenus/dev/images/internal/own"
)

func (a *app) lock() *cobra.Command {
	directory := ""
	command := &cobra.Command{
		Use:   "lock [IMAGE...]",
		Short: "Resolve versions and hashes anew and write the lock files",
		Long: `Resolves everything the named images (all by default) are made of, and writes
locks/<image>-<arch>.json: every jar, Debian package and wheel with its version
and hash. Run it after changing a recipe, or when Debian has published a point
release and no longer has a locked package; read the difference before you
commit it.`,
		RunE: func(command *cobra.Command, names []string) error {
			c, err := a.cache()
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(directory, "locks")); err != nil {
				return fmt.Errorf("%s has no directory locks: run this in dev/images, or name that directory by --dir",
					directory)
			}
			if len(names) == 0 {
				names = allNames()
			}
			for _, name := range expand(names) {
				locked, err := a.resolve(command.Context(), c, name)
				if err != nil {
					return fmt.Errorf("lock %s: %w", name, err)
				}
				if locked == nil {
					continue
				}
				text, err := locked.Format()
				if err != nil {
					return fmt.Errorf("lock %s: %w", name, err)
				}
				file := filepath.Join(directory, "locks", name+"-"+locked.Architecture+".json")
				if err := os.WriteFile(file, text, 0o644); err != nil {
					return fmt.Errorf("lock %s: %w", name, err)
				}
				_, _ = fmt.Fprintln(command.OutOrStdout(), file)
			}
			return nil
		},
	}
	command.Flags().StringVar(&directory, "dir", ".", "the directory dev/images of the repository")
	return command
}

// resolve makes the lock file of an image anew; nil if it needs none.
func (a *app) resolve(ctx context.Context, c *cache.Cache, name string) (*lock.File, error) {
	if i, ok := own.Find(name); ok {
		if len(i.Artifacts()) == 0 {
			return nil, nil
		}
		mvn, err := maven.New(c)
		if err != nil {
			return nil, err
		}
		return own.Lock(ctx, mvn, i)
	}
	v, err := cassandra.Find(name)
	if err != nil {
		return nil, err
	}
	return cassandra.Lock(ctx, c, v, a.architecture)
}
