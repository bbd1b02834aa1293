package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/localkube/audit"
	"helenus.io/helenus/dev/localkube/registry"
)

func status(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show what of a cluster runs",
		Long: `Show the cluster's processes and nodes, and what memory and disk they take.
The exit code is 1 when something does not run that should.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			s := c.Status(cmd.Context())
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "cluster\t%s\nKubernetes\t%s\nserver\t%s\nkubeconfig\t%s\ndisk\t%s\n\n",
				s.Name, s.KubernetesVersion, s.Server, s.Kubeconfig, mebibytes(s.Disk))
			fmt.Fprintln(w, "COMPONENT\tMEMORY\tSTATE")
			for _, p := range s.Components {
				state := fmt.Sprintf("process %d", p.Pid)
				if p.Pid == 0 {
					state = "does not run; `localkube up` starts it"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, mebibytes(p.Memory), state)
			}
			if s.Nodes != nil {
				fmt.Fprintln(w, "\nNODE\tMEMORY\tZONE\tADDRESS\tSTATE")
			}
			for _, n := range s.Nodes {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Name, mebibytes(n.Memory), n.Zone, n.Address, n.State)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if !s.Healthy() {
				return errors.New("not everything runs")
			}
			return nil
		},
	}
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

func load(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE...",
		Short: "give the nodes images from files",
		Long: `Put images into the cluster's registry, from which the nodes pull every image
whatever registry its name has. A file is a tar of "docker save", or a tar or a
folder in OCI layout whose index names its images whole (REPOSITORY:TAG).
What is there already is not copied again.`,
		Example: `  localkube load cassandra-5.0.6.tar`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			for _, file := range args {
				start := time.Now()
				loaded, err := c.Load(cmd.Context(), file)
				if err != nil {
					return err
				}
				printLoaded(cmd.OutOrStdout(), loaded, time.Since(start))
			}
			return nil
		},
	}
}

func printLoaded(out io.Writer, loaded []registry.Loaded, took time.Duration) {
	for _, image := range loaded {
		what := "loaded"
		if image.Present {
			what = "present"
		}
		fmt.Fprintf(out, "%s  %s  %s  %.1fs\n", what, image.Reference, image.Digest, took.Seconds())
	}
}

// registryServe is what the host starts as the cluster's registry.
func registryServe() *cobra.Command {
	return &cobra.Command{
		Use: registry.ServeCommand + " ADDRESS FOLDER", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return registry.Serve(cmd.Context(), args[0], args[1])
		},
	}
}

func logs(g *global) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "logs COMPONENT [NODE]",
		Short: "print the log of a component",
		Long: `Print the log of a component: kube-apiserver, etcd, kube-controller-manager,
kube-scheduler, coredns, provisioner, registry; with a NODE: node, containerd,
kubelet, kube-proxy. Logs of pods are kubectl's.`,
		Example: "  localkube logs kube-apiserver\n  localkube logs kubelet n2 --follow",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			file, err := c.LogFile(args[0], append(args, "")[1])
			if err != nil {
				return err
			}
			if follow {
				return handOver(exec.CommandContext(cmd.Context(), "tail", "-n", "+1", "-F", file))
			}
			f, err := os.Open(file)
			if err != nil {
				return fmt.Errorf("open log: %w", err)
			}
			defer func() { _ = f.Close() }()
			if _, err := io.Copy(cmd.OutOrStdout(), f); err != nil {
				return fmt.Errorf("print log: %w", err)
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added")
	return c
}

func auditCommand(g *global) *cobra.Command {
	var (
		filter audit.Filter
		since  string
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "audit",
		Short: "count the requests to the API server by who made them",
		Long: `Count the requests in the API server's audit log by user, verb and resource.
Watches count once, when they start. The failed ones (status 400 and above) are
part of the requests and changed nothing.`,
		Example: `  localkube audit --writes --no-leases --since 10m
  localkube audit --user 'system:serviceaccount:helenus-system:*' --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := g.open()
			if err != nil {
				return err
			}
			if filter.Since, err = parseSince(since, time.Now()); err != nil {
				return err
			}
			counts, err := c.Audit(filter)
			if err != nil {
				return err
			}
			return printCounts(cmd.OutOrStdout(), counts, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&since, "since", "", "only requests received since: a duration (10m) or a time (2006-01-02T15:04:05Z)")
	f.BoolVar(&filter.WritesOnly, "writes", false, "without get, list and watch")
	f.BoolVar(&filter.WithoutLeases, "no-leases", false, "without leases: heartbeats of nodes and elections")
	f.StringVar(&filter.User, "user", "", "only of this user; a trailing * stands for any ending")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("--since %q: give a duration such as 10m or a time such as %s", text,
		now.UTC().Format(time.RFC3339))
}

func printCounts(out io.Writer, counts []audit.Count, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(counts)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REQUESTS\tFAILED\tUSER\tVERB\tRESOURCE")
	for _, c := range counts {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\n", c.Requests, c.Failed, c.User, c.Verb, c.Resource)
	}
	return w.Flush()
}
