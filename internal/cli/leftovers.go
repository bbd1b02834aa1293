package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"helenus.io/helenus/internal/cli/leftovers"
)

const leftoversLong = `Removes what a CassandraCluster that is gone has left, and what keeps the next one of its
name from beginning: its ledger, its CassandraNodes and what belongs to them. That happens
when somebody takes its finalizer away, or when there is no operator that takes it apart.

It first says what it would remove; with --yes it does. It refuses while a pod of that
cluster runs, and never removes a volume claim.`

func newClearLeftovers(s *settings) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "clear-leftovers CLUSTER",
		Short: "Remove what a cluster that is gone has left",
		Long:  leftoversLong,
		Example: "  kubectl helenus clear-leftovers orders --namespace shop\n" +
			"  kubectl helenus clear-leftovers orders --namespace shop --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return fmt.Errorf("name one CassandraCluster, which is gone: %s CLUSTER", cmd.CommandPath())
		},
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return leftovers.Clear(ctx, c.client, c.namespace, args[0], yes, s.streams.Out)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it; without, it is only listed")
	return cmd
}
