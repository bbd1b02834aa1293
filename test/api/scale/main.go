// Command scale measures the operator beside many clusters that stand and are left alone: a real
// API server, the operator's own process, and the agents' own servers, one at an address of its own
// for each node. There is no Cassandra: what the agents answer is that of rings which stand. It
// prints Markdown for docs/performance.md. It may import everything of the product that a node
// consists of, and the local API server.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"helenus.io/helenus/test/api/live"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options of a measurement.
type options struct {
	// operator is the program, definitions the folder of the CustomResourceDefinitions.
	operator, definitions string
	clusters              int
	// perRack nodes are in each of the three racks of a cluster.
	perRack int32
	changes int
	// idle is how long nothing happens before the memory is read.
	idle time.Duration
}

func command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "scale",
		Short: "measure the operator beside many idle clusters",
		Long: `Measure the operator beside many idle clusters, and print the figures as Markdown.

A real API server, the operator's own process, and for each node the server with which its
agent answers the operator, at a loopback address of its own. There is no Cassandra, no kubelet
and no controller of Kubernetes: this program does their part at once. One agent takes
connections and never says a word.

The whole takes a quarter of an hour on two cores. Nothing else should run on the host.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			figures, err := run(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), figures.markdown(o))
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.operator, "operator", "../../bin/helenus", "the operator's `program`")
	f.StringVar(&o.definitions, "crds", "../../config/crd", "`folder` of the CustomResourceDefinitions")
	f.IntVar(&o.clusters, "clusters", 100, "how many clusters there are")
	f.Int32Var(&o.perRack, "nodes-per-rack", 3, "how many nodes each of the three racks of a cluster has")
	f.IntVar(&o.changes, "changes", 300, "how many changes of a spec are measured")
	f.DurationVar(&o.idle, "idle", 2*time.Minute, "how long nothing happens before the memory is read")
	return c
}

// run measures on an API server of its own.
func run(ctx context.Context, o options, progress io.Writer) (*figures, error) {
	if o.clusters < 1 || o.clusters > 1000 || o.perRack < 1 || o.perRack > 60 || o.changes < 1 {
		return nil, fmt.Errorf("--clusters %d, --nodes-per-rack %d and --changes %d: there are 1 to 1000 clusters "+
			"with 1 to 60 nodes in a rack, and a change or more", o.clusters, o.perRack, o.changes)
	}
	var out *figures
	_, err := live.With(ctx, "scale", false, progress, func(config *rest.Config, kubeconfig string) (int, error) {
		var err error
		out, err = measure(ctx, config, kubeconfig, o, func(format string, args ...any) {
			_, _ = fmt.Fprintf(progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
		})
		return 0, err
	})
	return out, err
}
