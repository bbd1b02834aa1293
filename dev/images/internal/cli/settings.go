package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cassandra"
)

func (a *app) settings() *cobra.Command {
	return &cobra.Command{
		Use:   "settings IMAGE",
		Short: "Print what cassandra.yaml may contain, as JSON",
		Long: `Prints every setting that this version of Cassandra knows, read from its jar, as
JSON sorted by name: name, Java type, whether it is deprecated, and for an old
name the one of today with Cassandra's converter.`,
		Example: "  images settings cassandra-5.0.6",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			v, err := cassandra.Find(names[0])
			if err != nil {
				return err
			}
			locked, err := a.readLock(v.Image(), a.architecture)
			if err != nil {
				return err
			}
			c, err := a.cache()
			if err != nil {
				return err
			}
			known, err := cassandra.Settings(command.Context(), c, v, locked)
			if err != nil {
				return fmt.Errorf("read settings of %s: %w", v.Image(), err)
			}
			encoder := json.NewEncoder(command.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(known)
		},
	}
}
