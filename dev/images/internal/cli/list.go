package cli

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cassandra"
)

func (a *app) list() *cobra.Command {
	return &cobra.Command{
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
				file := c.Image(v.Image() + "-" + a.architecture)
				size, digest := "-", "not built"
				if b, err := readBuilt(file); err == nil {
					digest = b.Digest
					if info, err := os.Stat(file); err == nil {
						size = fmt.Sprintf("%d MB", info.Size()/1_000_000)
					}
				}
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.Image(), v.Reference(), size, digest)
			}
			return table.Flush()
		},
	}
}

func (a *app) path() *cobra.Command {
	return &cobra.Command{
		Use:   "path IMAGE",
		Short: "Print where the file of an image is, built or not",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			c, err := a.cache()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), c.Image(names[0]+"-"+a.architecture))
			return err
		},
	}
}
