package cmd

import (
	"fmt"
	"os/exec"
	"strconv"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/localkube/node"
)

func nodeCommands(g *global) *cobra.Command {
	c := &cobra.Command{
		Use:   "node",
		Short: "kill, start, partition, heal or enter a node",
		Long: `Do to a node what happens to machines.

  kill       its link goes away, then kubelet, containerd and all containers are
             gone at once: what a lost machine looks like to the cluster
  start      bring it back, with its disk or an empty one
  partition  cut it off from the API server while its containers run on and
             reach each other, DNS and the host as before
  heal       take the partition back
  exec       run a program in its namespaces`,
	}
	c.AddCommand(killNode(g), startNode(g), partitionNode(g), healNode(g), execNode(g))
	return c
}

func killNode(g *global) *cobra.Command {
	var loseDisk bool
	c := &cobra.Command{
		Use: "kill NODE", Short: "lose a node as one loses a machine", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			return c.KillNode(cmd.Context(), args[0], loseDisk)
		},
	}
	c.Flags().BoolVar(&loseDisk, "lose-disk", false, "its disk is lost as well: images and the content of volumes")
	return c
}

func startNode(g *global) *cobra.Command {
	var loseDisk bool
	c := &cobra.Command{
		Use: "start NODE", Short: "bring a killed node back and wait until it is ready", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			return c.StartNode(cmd.Context(), args[0], loseDisk)
		},
	}
	c.Flags().BoolVar(&loseDisk, "lose-disk", false, "with an empty disk in the place of its old one")
	return c
}

func partitionNode(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "partition NODE", Short: "cut a node off from the API server", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			return c.PartitionNode(cmd.Context(), args[0])
		},
	}
}

func healNode(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "heal NODE", Short: "take a partition back", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			return c.HealNode(cmd.Context(), args[0])
		},
	}
}

func execNode(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "exec NODE COMMAND [ARGS...]",
		Short:   "run a program in the namespaces of a node",
		Example: `  localkube node exec n1 nft list ruleset`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			pid, err := c.NodePid(args[0])
			if err != nil {
				return err
			}
			enter := append([]string{"--target", strconv.Itoa(pid), "--all", "--"}, args[1:]...)
			return handOver(exec.CommandContext(cmd.Context(), "nsenter", enter...))
		},
	}
}

// nodeInit is what the host starts as process 1 of a node.
func nodeInit() *cobra.Command {
	return &cobra.Command{
		Use: node.InitCommand + " FILE", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return fmt.Errorf("node: %w", node.Init(args[0]))
		},
	}
}
