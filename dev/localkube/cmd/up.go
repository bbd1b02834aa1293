package cmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/localkube/cluster"
	"helenus.io/helenus/dev/localkube/versions"
)

func up(g *global) *cobra.Command {
	var o cluster.Options
	c := &cobra.Command{
		Use:   "up",
		Short: "bring a cluster up",
		Long: `Bring a cluster up: build what is not built, start what does not run.

It may be repeated at any time: after an interruption it goes on where it was,
on a running cluster it starts what has ended, and with a higher --nodes it adds
nodes. Nodes that "node kill" or "node partition" took away stay away.

The first start compiles for some minutes; later ones take seconds.`,
		Example: `  localkube up
  localkube up --nodes 9 --zones 3
  localkube up --api-only --name api1 --with-controllers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Name, o.State, o.Out = g.name, g.state, cmd.ErrOrStderr()
			c, err := cluster.Up(cmd.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Cluster %s is up. Use it with:\n  export KUBECONFIG=%s\n", c.Name(),
				c.Kubeconfig())
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&o.Nodes, "nodes", 0, fmt.Sprintf("number of nodes (default %d, or as many as there are)",
		cluster.DefaultNodes))
	f.IntVar(&o.Zones, "zones", 0, "number of zones, over which the nodes are spread in turn (default 3, or the "+
		"number of nodes when that is less, or as many as there are)")
	f.StringVar(&o.KubernetesVersion, "kubernetes-version", "",
		fmt.Sprintf("Kubernetes release, built from its Go module (default %s, or that of the cluster)",
			versions.DefaultKubernetes))
	f.BoolVar(&o.APIOnly, "api-only", false, "start etcd and the API server alone, without nodes and without root")
	f.BoolVar(&o.Controllers, "with-controllers", false, "with --api-only: also start the controller manager")
	f.StringArrayVar(&o.APIServerArgs, "apiserver-arg", nil,
		"flag added to the API server's, for example --apiserver-arg=--feature-gates=X=true (repeatable)")
	f.StringVar(&o.Cache, "cache", "", "folder of built binaries (default $HELENUS_CACHE, or helenus in the user's "+
		"cache folder)")
	return c
}

func down(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "stop a cluster and remove every trace of it",
		Long: `Stop a cluster and remove everything it made on this machine: processes,
network, mounts, cgroups and files. The built binaries stay in the cache.
A cluster that is not there is no error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Down(cmd.Context(), g.name, g.state, os.Stderr)
		},
	}
}
