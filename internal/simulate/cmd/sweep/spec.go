package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"helenus.io/helenus/internal/simulate/coverage"
	"helenus.io/helenus/internal/simulate/trial"
)

func specCommand(crds *string) *cobra.Command {
	var only string
	t := &coverage.Trier{}
	c := &cobra.Command{
		Use:   "spec",
		Short: "change every property of the spec of a formed ring, in every way",
		Long: `Change every property of the spec of a ring that stands: set it, change it, take it
away, give it a value that is not allowed, and set it back. After each step the
cluster is what a fresh one of that spec would be, or refuses the change in words.`,
		Example: `  sweep spec
  sweep spec --only node.jvm`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if t.Kinds, err = compile(*crds); err != nil {
				return err
			}
			definitions, err := trial.Definitions(*crds)
			if err != nil {
				return err
			}
			properties, failed, sum := 0, 0, coverage.Steps{}
			for _, p := range coverage.Properties(definitions["CassandraCluster"]) {
				if !strings.HasPrefix(p.Path, only) {
					continue
				}
				steps, violations := t.Try(p)
				properties++
				sum.Applied, sum.Refused, sum.Invalid = sum.Applied+steps.Applied, sum.Refused+steps.Refused,
					sum.Invalid+steps.Invalid
				if len(violations) > 0 {
					failed++
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n  %s\n", p.Path, strings.Join(violations, "\n  "))
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d properties: %d changes applied, %d refused by the cluster, %d refused "+
				"by the API server\n", properties, sum.Applied, sum.Refused, sum.Invalid)
			if failed > 0 {
				return fmt.Errorf("%d properties failed", failed)
			}
			return nil
		},
	}
	c.Flags().StringVar(&only, "only", "", "the properties whose `path` begins like this")
	c.Flags().Uint64Var(&t.Seed, "seed", 1, "the seed of every choice")
	return c
}
