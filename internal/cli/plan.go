package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/inspectapi"
)

const planLong = `Shows what the operator would do next: every step it looked at with its outcome, the fields
that change with what each takes, the waves in which nodes follow, the writes, what is
blocked and what only you can resolve.

With --from it judges the spec of a file before you apply it, as the whole spec of the
cluster: what the file leaves out is taken out. The API server holds it to the schema and
the policies (a dry run, which takes the right to update the cluster), the operator to what
the ring is; if either refuses it the exit code is 1. With --diff it shows what changes in
the files and the pods, a node of each rack; of the files only what the spec and Helenus
set, not what the image has.

The plan is made by the operator that leads, from what it sees at this moment; nothing is
written. It is reached by a port forwarded through the API server, with the credentials of
your kubeconfig. That takes two rights: to get the CassandraCluster, and to forward a port
to the operator's pods, which the role helenus-plan in its namespace gives.

What a change takes:
  Hot      Cassandra takes it over at run time
  Live     the record or the pod that runs; nothing restarts
  Restart  the JVM restarts, in its pod
  NewPod   another pod on the same volumes
  Refused  nothing brings a node that exists to it

Outcomes:
  Done    nothing is to be done
  Act     the writes below bring it on
  Wait    an event will bring it on, such as a pod that becomes ready
  Retry   time alone will bring it on
  Stuck   only you can bring it on; see "Stalled"

A step that is missing was not reached: one before it has to be done first.`

const planExample = `  kubectl helenus plan orders
  kubectl helenus plan orders --namespace shop --output yaml
  kubectl helenus plan --from orders.yaml --diff
  kubectl kustomize overlays/shop | kubectl helenus plan orders --from -`

func newPlan(s *settings) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:     "plan [CLUSTER]",
		Short:   "Show what the operator would do next, and what keeps it from doing so",
		Long:    planLong,
		Example: planExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.from != "" && len(args) == 0 {
				return nil // the file names it
			}
			return oneCluster(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := planPrinter(o)
			if err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return s.plan(cmd.Context(), c, strings.Join(args, ""), o.from, format)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "",
		"the `format`: json or yaml, for programs; tables for people if not given")
	cmd.Flags().StringVarP(&o.from, "from", "f", "",
		"judge the spec of the CassandraCluster in this `file`, - for standard input, before it is applied")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "show what changes in files and pods")
	return cmd
}

// planOptions are what a plan is asked for with.
type planOptions struct {
	output, from string
	diff         bool
}

type printer func(*inspectapi.Inspection) ([]byte, error)

func planPrinter(o planOptions) (printer, error) {
	switch {
	case o.output != "" && o.diff:
		return nil, errors.New("--diff is for people: leave --output out, whose rollOut.racks has both sides")
	case o.output == "":
		return func(i *inspectapi.Inspection) ([]byte, error) {
			var out bytes.Buffer
			printPlan(&out, i, o.from)
			if o.diff {
				if err := planDiff(&out, i.RollOut); err != nil {
					return nil, err
				}
			}
			return out.Bytes(), nil
		}, nil
	}
	switch o.output {
	case "json":
		return func(i *inspectapi.Inspection) ([]byte, error) {
			out, err := json.MarshalIndent(i, "", "  ")
			return append(out, '\n'), err
		}, nil
	case "yaml":
		return func(i *inspectapi.Inspection) ([]byte, error) { return yaml.Marshal(i) }, nil
	default:
		return nil, fmt.Errorf("--output %q is not known: json and yaml are", o.output)
	}
}

// plan prints the plan of a cluster, or what it would be with the spec of a file.
func (s *settings) plan(ctx context.Context, c *connection, name, from string, format printer) error {
	var spec *v1alpha1.CassandraClusterSpec
	if from != "" {
		given, err := s.clusterIn(from, name)
		if err != nil {
			return err
		}
		name = given.Name
		if spec, err = c.accepted(ctx, given, from); err != nil {
			return err
		}
	} else if _, err := c.cluster(ctx, name); err != nil {
		return err // a wrong name is reported by the API server, without the operator
	}
	inspection, err := s.ask(ctx, c, name, spec)
	if err != nil {
		return err
	}
	out, err := format(inspection)
	if err != nil {
		return fmt.Errorf("print plan: %w", err)
	}
	if _, err = s.streams.Out.Write(out); err != nil {
		return err
	}
	if stalled := inspection.Plan.Stalled; stalled != nil && from != "" {
		return fmt.Errorf("the operator would refuse the spec of %s: %s: %s", from, stalled.Reason,
			oneLine(stalled.Message))
	}
	return nil
}
