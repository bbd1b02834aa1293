package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"helenus.io/helenus/internal/cli/leftovers"
)

const uninstallLong = `Says what would be left, and what would hang, if Helenus were removed from this Kubernetes
cluster now: clusters that run on, clusters that are being deleted and need the operator for
that, what clusters that are gone have left, and claims that stay.

It changes nothing. Its exit code is 1 if something would hang. It takes the right to list in
all namespaces; Secrets are not looked at.`

func newUninstall(s *settings) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:     "uninstall --check",
		Short:   "Say what would be left, and what would hang, if Helenus were removed",
		Long:    uninstallLong,
		Example: "  kubectl helenus uninstall --check",
		Args:    cobra.NoArgs,
		RunE: s.connected(func(ctx context.Context, c *connection, _ []string) error {
			if !check {
				return errors.New("this removes nothing: run it with --check, and then remove the operator as you " +
					"installed it, such as by helm uninstall")
			}
			health := s.health(ctx, c)
			return leftovers.Check(ctx, c.client, health.String(), s.streams.Out)
		}),
	}
	cmd.Flags().BoolVar(&check, "check", false, "say what would be left, and what would hang")
	return cmd
}
