package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspectapi"
)

const replicasLong = `Shows which nodes hold a keyspace and how much of it each has, and whether every range of it
is served at the consistency of disruption.consistency.

With a partition key it shows the token of the key and the nodes that hold it, whether they
are up, and whether enough of them are, in each datacenter whose replicas count alone. The
key is the values of its columns in their order, each as TYPE:VALUE:

  text:bob  int:-5  bigint:5  uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8  blob:0x0aff

A timeuuid is given as uuid; a value of another type as blob, as CQL shows it by
typeAsBlob(column).

The operator answers, as for the plan, by what the nodes say now; no row is read, and nothing
says whether there is one of that key. It takes the rights of the plan.`

const replicasExample = `  kubectl helenus replicas orders shop
  kubectl helenus replicas orders shop text:bob
  kubectl helenus replicas orders shop uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8 int:2026`

func newReplicas(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "replicas CLUSTER KEYSPACE [TYPE:VALUE ...]",
		Short:   "Show which nodes hold a keyspace, or a key of it",
		Long:    replicasLong,
		Example: replicasExample,
		Args: func(cmd *cobra.Command, args []string) error {
			return clusterAnd("a keyspace")(cmd, args[:min(2, len(args))])
		},
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.replicas(ctx, c, args[0], args[1], args[2:])
		}),
	}
}

func (s *settings) replicas(ctx context.Context, c *connection, cluster, keyspace string, columns []string) error {
	if len(columns) > 0 {
		if _, err := ring.ParseKey(columns); err != nil {
			return err
		}
	}
	if _, err := c.cluster(ctx, cluster); err != nil {
		return err // a wrong name is reported by the API server, without the operator
	}
	held := &status.Replicas{}
	path := inspectapi.ReplicasPath(c.namespace, cluster, keyspace, columns)
	if err := s.askFor(ctx, c, cluster, path, nil, held); err != nil {
		return err
	}
	printReplicas(s.streams.Out, held)
	return nil
}

func printReplicas(w io.Writer, held *status.Replicas) {
	heading := [][]string{{"Keyspace:", oneLine(held.Keyspace + ", " + held.Replication)}}
	if held.Token != "" {
		heading = append(heading, []string{"Token:", held.Token})
	}
	for _, one := range held.Served {
		heading = append(heading, []string{"Served:", yesNo(one.Served) + ", " + oneLine(one.Message)})
	}
	table(w, heading)
	fmt.Fprintln(w)
	rows := [][]string{{"NODE", "RACK", "UP", "SHARE"}}
	for _, n := range held.Nodes {
		share := "-"
		if held.Token == "" {
			share = fmt.Sprintf("%.1f%%", 100*n.Share)
		}
		rows = append(rows, []string{oneLine(n.Node), oneLine(n.Datacenter + "/" + n.Rack), yesNo(n.Up), share})
	}
	table(w, rows)
}
