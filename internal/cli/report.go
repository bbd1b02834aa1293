package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"helenus.io/helenus/internal/cli/report"
)

const reportLong = `Collects what somebody needs who is to find out why a cluster is as it is, into one file:
the CassandraCluster and all that belongs to it, the ledger, events, what the operator sees
and plans, the logs of the last hour, and versions. It is read as you, and with the operator
down: what you may not read, or does not answer, is left out and named in problems.txt.

It holds no Secret, and what looks like one is taken out: passwords, tokens and keys by the
names of their fields, options and variables, and by their form. Look into it all the same
before you pass it on: it names hosts, addresses, keyspaces and tables.`

func newReport(s *settings, version string) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "report CLUSTER",
		Short: "Collect what is known of a cluster into a file to pass on",
		Long:  reportLong,
		Example: "  kubectl helenus report orders --namespace shop\n" +
			"  kubectl helenus report orders --output - | tar tz",
		Args: oneCluster,
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.report(ctx, c, args[0], file, version)
		}),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "the `file` to make, - for standard output; "+
		"helenus-report-NAMESPACE-CLUSTER-TIME.tar.gz if not given")
	return cmd
}

func (s *settings) report(ctx context.Context, c *connection, name, file, version string) error {
	cluster, err := c.cluster(ctx, name)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	from := report.Sources{
		Client: c.client, OperatorNamespace: s.operatorNamespace, Now: s.now(),
		Logs: func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
			return core.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
		},
		Texts: []report.Text{
			{Name: "versions.json", Make: func(context.Context) ([]byte, error) {
				server, err := c.kubernetes()
				if err != nil {
					return nil, err
				}
				return json.Marshal(map[string]any{"plugin": version, "kubernetes": server, "at": s.now().UTC()})
			}},
			{Name: "status.txt", Make: func(ctx context.Context) ([]byte, error) {
				var out bytes.Buffer
				on := *s
				on.streams.Out = &out
				err := on.status(ctx, c, name)
				return out.Bytes(), err
			}},
			{Name: "plan.json", Make: func(ctx context.Context) ([]byte, error) {
				inspection, err := s.ask(ctx, c, name, nil)
				if err != nil {
					return nil, err
				}
				return json.Marshal(inspection)
			}},
		},
	}
	if file == "-" {
		return report.Write(ctx, cluster, from, s.streams.Out)
	}
	if file == "" {
		file = fmt.Sprintf("helenus-report-%s-%s-%s.tar.gz", cluster.Namespace, cluster.Name,
			s.now().UTC().Format("20060102-150405"))
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the report: %w", err)
	}
	if err := errors.Join(report.Write(ctx, cluster, from, out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	_, err = fmt.Fprintf(s.streams.Out, "%s\n", file)
	return err
}
