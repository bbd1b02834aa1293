package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"helenus.io/helenus/api/v1alpha1"
)

const debugLong = `Has Cassandra on a node stopped in order, as soon as the ring allows it, and keeps its pod
for you to look into: kubectl exec -it NODE -c cassandra -- bash

It writes an exception into the spec of the CassandraCluster, with your rights. The node
starts again when the time is over, or with --end. The longest time is 7 days.`

type debugging struct {
	reason string
	length time.Duration
	end    bool
}

func newDebug(s *settings) *cobra.Command {
	var d debugging
	cmd := &cobra.Command{
		Use:   "debug NODE",
		Short: "Stop Cassandra on a node, and keep its pod to look into",
		Long:  debugLong,
		Example: "  kubectl helenus debug orders-dc1-r1-0 --reason 'copy a corrupt file' --for 2h\n" +
			"  kubectl helenus debug orders-dc1-r1-0 --end",
		Args: oneNode,
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.debug(ctx, c, args[0], d)
		}),
	}
	cmd.Flags().StringVar(&d.reason, "reason", "", "why, for others to read")
	cmd.Flags().DurationVar(&d.length, "for", time.Hour, "how long, at most 168h")
	cmd.Flags().BoolVar(&d.end, "end", false, "start the node again")
	return cmd
}

// debug writes the exception of a node into the spec of its cluster, or takes it out.
func (s *settings) debug(ctx context.Context, c *connection, name string, d debugging) error {
	switch {
	case d.end && d.reason != "":
		return errors.New("--reason belongs to the beginning: --end takes none")
	case !d.end && d.reason == "":
		return errors.New("say why by --reason: others see that the node is stopped, and wonder")
	case !d.end:
		if err := checkLength(d.length); err != nil {
			return err
		}
	}
	node, cluster, err := c.nodeAndCluster(ctx, name)
	if err != nil {
		return err
	}
	if d.end {
		if !slices.ContainsFunc(cluster.Spec.Exceptions, isException(v1alpha1.ExceptionDebug, name)) {
			return fmt.Errorf("CassandraCluster %s has no exception of type Debug for node %s", cluster.Name, name)
		}
		if err := c.setException(ctx, cluster, v1alpha1.ExceptionDebug, name); err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.streams.Out, "node %s starts again\n", name)
		return err
	}
	e := s.exception(v1alpha1.ExceptionDebug, node, d.reason, d.length)
	if err := c.setException(ctx, cluster, e.Type, name, e); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.streams.Out, "node %s stops until %s as soon as the ring allows it; "+
		"kubectl helenus status %s shows how far it is\n", name, e.Until.UTC().Format(time.RFC3339), cluster.Name)
	return err
}
