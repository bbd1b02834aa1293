package cmd

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/localkube/step"
)

func kubeconfig(g *global) *cobra.Command {
	var path bool
	c := &cobra.Command{
		Use:     "kubeconfig",
		Short:   "print the administrator's kubeconfig, or its path",
		Example: `  export KUBECONFIG=$(localkube kubeconfig --path)`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			if path {
				fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
				return nil
			}
			content, err := os.ReadFile(c.Kubeconfig())
			if err != nil {
				return fmt.Errorf("read kubeconfig: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(content)
			return err
		},
	}
	c.Flags().BoolVar(&path, "path", false, "print the path of the file instead of its content")
	return c
}

func kubectl(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGS...]",
		Short: "run the cluster's own kubectl on it",
		Long: `Run the kubectl of the cluster's Kubernetes version as its administrator.
All arguments are kubectl's. To choose another cluster, put --name first:
  localkube --name other kubectl get nodes`,
		// kubectl's flags are its own, with or without "--" before them.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			c, err := g.open()
			if err != nil {
				return err
			}
			path, err := c.Kubectl(cmd.Context(), step.New(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			run := exec.CommandContext(cmd.Context(), path, args...)
			run.Env = append(os.Environ(),
				"KUBECONFIG="+c.Kubeconfig(),
				// What kubectl remembers of the cluster goes away with it.
				"KUBECACHEDIR="+c.Dir().Data("kubectl"))
			return handOver(run)
		},
	}
}
