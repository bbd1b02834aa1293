package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"helenus.io/helenus/dev/localkube/cluster"
)

const long = `localkube runs a real Kubernetes on one Linux machine, without Docker.

It compiles Kubernetes, etcd, CoreDNS and a storage provisioner once from the Go
module proxy, takes containerd, runc and the CNI plugins from Debian (compiles
containerd 2 for Kubernetes 1.36 and later), and runs each node in namespaces of
its own. Images come from a registry on this machine that "localkube load"
fills; no pod reaches the internet.

  localkube up                 three nodes in three zones      (needs root)
  localkube up --api-only      etcd and the API server alone   (any user)
  localkube kubectl get nodes  talk to it
  localkube load image.tar     give its nodes an image
  localkube node kill n2       lose a machine
  localkube down               remove every trace of it`

// global are the flags that say which cluster is meant.
type global struct{ name, state string }

func (g *global) open() (*cluster.Cluster, error) { return cluster.Open(g.name, g.state) }

// spokenError is the exit code of a program that ran in our place and has itself
// said what was wrong.
type spokenError struct{ code int }

func (e *spokenError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// handOver runs a program on this terminal, as if it were this one.
func handOver(run *exec.Cmd) error {
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := run.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &spokenError{code: exit.ExitCode()}
	}
	return err
}

// Main runs the command line and gives the exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var said *spokenError
	if errors.As(err, &said) {
		return said.code
	}
	fmt.Fprintln(os.Stderr, "localkube:", err)
	return 1
}

func root() *cobra.Command {
	g := &global{}
	c := &cobra.Command{
		Use:   "localkube",
		Short: "a real Kubernetes on one Linux machine",
		Long:  long,
		// Errors of commands are not errors of usage.
		SilenceUsage: true, SilenceErrors: true,
		// So that --name may stand before kubectl, which parses no flags.
		TraverseChildren: true,
	}
	c.PersistentFlags().StringVar(&g.name, "name", cluster.DefaultName, "name of the cluster")
	c.PersistentFlags().StringVar(&g.state, "state", "",
		"folder of the cluster's state (default /var/lib/localkube/NAME, for users other than root in their home)")
	c.AddCommand(up(g), down(g), status(g), load(g), nodeCommands(g), kubeconfig(g), kubectl(g), logs(g),
		auditCommand(g))
	c.AddCommand(nodeInit(), registryServe())
	return c
}
