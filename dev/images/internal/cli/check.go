package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/images/internal/cassandra"
	"helenus.io/helenus/dev/images/internal/check"
)

func (a *app) check() *cobra.Command {
	timeout := 5 * time.Minute
	command := &cobra.Command{
		Use:   "check [IMAGE...]",
		Short: "Start Cassandra images alone, and read and write by CQL",
		Long: `Builds the named Cassandra images (all by default) if needed, starts each in
namespaces of its own without a container runtime, as user 999 with a read-only
root and no capabilities, then writes and reads by CQL and runs nodetool and
cqlsh. Needs root.`,
		RunE: func(command *cobra.Command, names []string) error {
			c, err := a.cache()
			if err != nil {
				return err
			}
			if len(names) == 0 {
				names = cassandra.Names()
			}
			for _, name := range names {
				v, err := cassandra.Find(name)
				if err != nil {
					return err
				}
				if err := a.buildCassandra(command.Context(), command.ErrOrStderr(), command.ErrOrStderr(), c, v,
					false); err != nil {
					return fmt.Errorf("build %s: %w", v.Image(), err)
				}
				if err := a.checkOne(command, timeout, v); err != nil {
					return fmt.Errorf("check %s: %w", v.Image(), err)
				}
			}
			return nil
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", timeout, "give up on an image after this time")
	return command
}

func (a *app) checkOne(command *cobra.Command, timeout time.Duration, v cassandra.Version) error {
	c, err := a.cache()
	if err != nil {
		return err
	}
	work, err := c.WorkDir("check")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	ctx, cancel := context.WithTimeout(command.Context(), timeout)
	defer cancel()
	report, err := check.Image(ctx, a.file(c, v.Image()), v.Number, work)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(command.OutOrStdout(), "%s: ok; %d MB unpacked, CQL after %.1f s, stopped in %.1f s\n",
		v.Image(), report.Unpacked/1_000_000, report.CQL.Seconds(), report.Stop.Seconds())
	return nil
}

// container is how the program calls itself inside the namespaces of a check.
func (a *app) container() *cobra.Command {
	return &cobra.Command{
		Use:    check.ContainerCommand + " PLAN",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, arguments []string) error { return check.Become(arguments[0]) },
	}
}
