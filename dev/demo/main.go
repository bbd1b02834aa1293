// Command demo shows Helenus: it installs it, forms a first ring of three racks, and writes and
// reads through it. Without a kubeconfig it first makes a Kubernetes of three machines on this one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	// What kubeconfigs of cloud providers need to log in.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"helenus.io/helenus/dev/demo/progress"
)

func main() {
	// What the clients log of watches that end and begin again is not for whom this is shown to.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// settings are what both commands need.
type settings struct {
	kubeconfig string
	repository string
	namespace  string
}

func root() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "a first Cassandra ring by Helenus",
		Long: `demo installs Helenus and forms a Cassandra ring of three racks, writes a row to
it and reads it back through another node.

  demo up                     on this machine, from nothing (Linux, root)
  demo up --kubeconfig FILE   in a Kubernetes that you have
  demo down                   remove the ring and its data again`,
		SilenceUsage: true, SilenceErrors: true,
	}
	f := c.PersistentFlags()
	f.StringVar(&s.kubeconfig, "kubeconfig", "",
		"`file` that says which Kubernetes to use (default: the local cluster of bin/localkube; $KUBECONFIG is not "+
			"looked at)")
	f.StringVar(&s.repository, "repo", "", "`folder` of the checkout (default: the one around the working directory)")
	f.StringVar(&s.namespace, "namespace", "demo", "`namespace` of the ring")
	c.AddCommand(upCommand(s), downCommand(s))
	return c
}

func upCommand(s *settings) *cobra.Command {
	u := &up{settings: s}
	c := &cobra.Command{
		Use:   "up",
		Short: "install Helenus, form the ring, write and read a row",
		Long: `Install Helenus, form the ring, write and read a row.

It may be repeated at any time: it goes on from where it is. A ring that is there
already is left as it is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u.steps = progress.New(cmd.OutOrStdout())
			return u.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&u.images.Operator, "operator-image", "",
		"`image` of the operator (default: what is built here for the local cluster, else that of the manifest)")
	f.StringVar(&u.images.Agent, "agent-image", "", "`image` of the agent (default: likewise)")
	f.StringVar(&u.images.CassandraRepository, "cassandra-repository", "",
		"`repository` of Cassandra images (default: the official one)")
	f.DurationVar(&u.patience, "patience", defaultPatience,
		"how long the ring may take to form before it counts as broken")
	return c
}

func downCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "remove the ring and its data",
		Long: `Remove the ring, its data and its namespace. Helenus stays installed, and so does
the local cluster: "localkube down" removes that.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return down(cmd.Context(), s, progress.New(cmd.OutOrStdout()))
		},
	}
}
