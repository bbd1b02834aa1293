package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/cassandra"
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
				return fmt.Errorf("%s has no directory locks: run this in dev/images, or name that directory by --dir", directory)
			}
			if len(names) == 0 {
				names = cassandra.Names()
			}
			for _, name := range names {
				v, err := cassandra.Find(name)
				if err != nil {
					return err
				}
				file := filepath.Join(directory, "locks", v.Image()+"-"+a.architecture+".json")
				if err := a.writeLock(command.Context(), c, v, file); err != nil {
					return fmt.Errorf("lock %s: %w", v.Image(), err)
				}
				_, _ = fmt.Fprintln(command.OutOrStdout(), file)
			}
			return nil
		},
	}
	command.Flags().StringVar(&directory, "dir", ".", "the directory dev/images of the repository")
	return command
}

func (a *app) writeLock(ctx context.Context, c *cache.Cache, v cassandra.Version, file string) error {
	locked, err := cassandra.Lock(ctx, c, v, a.architecture)
	if err != nil {
		return err
	}
	text, err := locked.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
