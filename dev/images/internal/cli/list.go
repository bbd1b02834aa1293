package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/cassandra"
	"helenus.io/helenus/dev/images/internal/own"
)

func (a *app) list() *cobra.Command {
	command := &cobra.Command{
		Use:   "list",
		Short: "Show all images, and which are in the cache",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := a.cache()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(command.OutOrStdout(), 0, 8, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "IMAGE\tREFERENCE\tSIZE\tDIGEST")
			for _, v := range cassandra.Versions {
				a.row(table, c, v.Image(), v.Reference())
			}
			for _, i := range own.Images {
				a.row(table, c, i.Name, i.Repository+":"+a.tag)
			}
			return table.Flush()
		},
	}
	a.tagFlag(command)
	return command
}

func (a *app) row(table io.Writer, c *cache.Cache, name, reference string) {
	file := a.file(c, name)
	size, digest := "-", "not built"
	if b, err := readBuilt(file); err == nil {
		digest = b.Digest
		if info, err := os.Stat(file); err == nil {
			size = fmt.Sprintf("%d MB", info.Size()/1_000_000)
		}
	}
	_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, reference, size, digest)
}

func (a *app) path() *cobra.Command {
	command := &cobra.Command{
		Use:   "path IMAGE",
		Short: "Print where the file of an image is, built or not",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			if !slices.Contains(allNames(), names[0]) {
				return fmt.Errorf("no image %q; there are %s", names[0], strings.Join(allNames(), ", "))
			}
			c, err := a.cache()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), a.file(c, names[0]))
			return err
		},
	}
	a.tagFlag(command)
	return command
}
