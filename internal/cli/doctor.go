package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cli/doctor"
	"helenus.io/helenus/internal/inspectapi"
)

const doctorLong = `Looks for what is wrong with the installation of Helenus, and with a cluster, or all clusters
of the namespace: a line for each check, with what was found and what would help.

  ✓  as it should be
  !  a warning, or not known, such as what you may not see
  ✗  wrong; the exit code is 1 if there is one

Of the installation: the release of Kubernetes, of plugin and operator; whether definitions
and policies are those of this release; whether the operator works and has its rights; and
whether each policy refuses what it must, by a write that is tried.
Of a cluster: zones and storage classes that its spec names; agents, as the operator reaches
them; clocks, DNS, certificates and conditions.

Nothing is stored: what it tries to write are dry runs. Two of them are tried under the names
of the operator and of an agent, with your groups, which takes the right to impersonate. All
checks take the rights of an administrator; others see a part.`

// errWrong says that a check has found something.
var errWrong = errors.New("something is wrong: what helps is said above")

func newDoctor(s *settings, version string) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "doctor [CLUSTER]",
		Short: "Look for what is wrong with the installation and a cluster",
		Long:  doctorLong,
		Example: "  kubectl helenus doctor\n  kubectl helenus doctor orders --namespace shop\n" +
			"  kubectl helenus doctor --namespace shop --output json",
		Args: cobra.MaximumNArgs(1),
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.doctor(ctx, c, strings.Join(args, ""), version, output)
		}),
	}
	cmd.Flags().StringVarP(&output, "output", "o", "",
		"the `format`: json or yaml, for programs; lines for people if not given")
	return cmd
}

func (s *settings) doctor(ctx context.Context, c *connection, name, version, output string) error {
	var encode func(any) ([]byte, error)
	switch output {
	case "":
	case "json":
		encode = func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") }
	case "yaml":
		encode = yaml.Marshal
	default:
		return fmt.Errorf("--output %q is not known: json and yaml are", output)
	}
	clusters := &v1alpha1.CassandraClusterList{}
	if name != "" {
		cluster, err := c.cluster(ctx, name)
		if err != nil {
			return err
		}
		clusters.Items = append(clusters.Items, *cluster)
	} else if err := c.client.List(ctx, clusters, client.InNamespace(c.namespace)); err != nil &&
		!meta.IsNoMatchError(err) {
		return fmt.Errorf("list CassandraClusters: %w", err)
	}
	health := s.health(ctx, c)
	seen, err := doctor.Look(ctx, clusters.Items, doctor.Sources{
		Client: c.client, OperatorNamespace: s.operatorNamespace, Namespace: c.namespace, Plugin: version, Now: s.now(),
		Operator: doctor.Operator{Said: health.String(), Problem: health.problem(), Err: health.err},
		As:       c.as,
		Kubernetes: func() (string, error) {
			server, err := c.kubernetes()
			if err != nil {
				return "", err
			}
			return server.GitVersion, nil
		},
		Inspect: func(ctx context.Context, cluster string) (*inspectapi.Inspection, error) {
			return s.ask(ctx, c, cluster, nil)
		},
	})
	if err != nil {
		return err
	}
	findings := doctor.Judge(seen)
	out := []byte(diagnosis(findings))
	if encode != nil {
		if out, err = encode(findings); err != nil {
			return fmt.Errorf("print findings: %w", err)
		}
		out = append([]byte(strings.TrimSpace(string(out))), '\n')
	}
	if _, err := s.streams.Out.Write(out); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Result == doctor.Wrong }) {
		return errWrong
	}
	return nil
}

// as is the API server as somebody else.
func (c *connection) as(user string, groups []string) (client.Client, error) {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return client.New(config, client.Options{Scheme: c.client.Scheme(), Mapper: c.client.RESTMapper()})
}

// diagnosis is a line for each finding, those of a cluster under its name.
func diagnosis(findings []doctor.Finding) string {
	marks := map[doctor.Result]string{doctor.Good: "✓", doctor.Warning: "!", doctor.Wrong: "✗"}
	var out strings.Builder
	for i := 0; i < len(findings); {
		of := findings[i].Cluster
		if of != "" {
			fmt.Fprintf(&out, "\nCluster %s\n", of)
		}
		var rows [][]string
		for ; i < len(findings) && findings[i].Cluster == of; i++ {
			f := findings[i]
			if f.Help != "" {
				f.Found += ": " + f.Help
			}
			rows = append(rows, []string{marks[f.Result], f.Check, oneLine(f.Found)})
		}
		table(&out, rows)
	}
	return out.String()
}
