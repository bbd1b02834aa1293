package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/internal/inspectapi"
)

const planLong = `Shows what the operator would do next: every step it looked at with its outcome, the writes
that would follow, what is blocked and what only you can resolve.

The plan is made by the operator that leads, from what it sees at this moment; nothing is
written. It is reached by a port forwarded through the API server, with the credentials of
your kubeconfig. That takes two rights: to get the CassandraCluster, and to forward a port
to the operator's pods, which the role helenus-plan in its namespace gives.

Outcomes:
  Done    nothing is to be done
  Act     the writes below bring it on
  Wait    an event will bring it on, such as a pod that becomes ready
  Retry   time alone will bring it on
  Stuck   only you can bring it on; see "Stalled"

A step that is missing was not reached: one before it has to be done first.`

func newPlan(s *settings) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:     "plan CLUSTER",
		Short:   "Show what the operator would do next, and what keeps it from doing so",
		Long:    planLong,
		Example: "  kubectl helenus plan orders\n  kubectl helenus plan orders --namespace shop --output yaml",
		Args:    oneCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := planPrinter(output)
			if err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return s.plan(cmd.Context(), c, args[0], format)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "",
		"the `format`: json or yaml, for programs; tables for people if not given")
	return cmd
}

type printer func(*inspectapi.Inspection) ([]byte, error)

func planPrinter(output string) (printer, error) {
	switch output {
	case "":
		return func(i *inspectapi.Inspection) ([]byte, error) {
			var out bytes.Buffer
			printPlan(&out, i)
			return out.Bytes(), nil
		}, nil
	case "json":
		return func(i *inspectapi.Inspection) ([]byte, error) {
			out, err := json.MarshalIndent(i, "", "  ")
			return append(out, '\n'), err
		}, nil
	case "yaml":
		return func(i *inspectapi.Inspection) ([]byte, error) { return yaml.Marshal(i) }, nil
	default:
		return nil, fmt.Errorf("--output %q is not known: json and yaml are", output)
	}
}

// plan prints the plan of a cluster.
func (s *settings) plan(ctx context.Context, c *connection, name string, format printer) error {
	// The cluster is looked at first: whoever mistypes its name is told so by the API server,
	// without the operator.
	if _, err := c.cluster(ctx, name); err != nil {
		return err
	}
	inspection, err := s.ask(ctx, c, name)
	if err != nil {
		return err
	}
	out, err := format(inspection)
	if err != nil {
		return fmt.Errorf("print plan: %w", err)
	}
	_, err = s.streams.Out.Write(out)
	return err
}
