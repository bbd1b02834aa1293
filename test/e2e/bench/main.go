// Command bench measures what docs/performance.md says of Helenus, on real Cassandra, and prints it
// as Markdown. Everything is measured in one run on one host, so that the ratios hold whatever the
// host is.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/reach"
	"helenus.io/helenus/test/e2e/prepare"
)

func main() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Parts of the measurement.
const (
	partFormation = "formation"
	partBootstrap = "bootstrap"
	partSameFlags = "same-flags"
	partMemory    = "memory"
	partIdle      = "idle"
	partRollOut   = "rollout"
	partLeave     = "leave"
	partSecurity  = "security"
	partScrape    = "scrape"
	partBackup    = "backup"
	partAlone     = "alone"
)

var allParts = []string{partFormation, partBootstrap, partSameFlags, partMemory, partIdle, partRollOut,
	partLeave, partSecurity, partScrape, partBackup, partAlone}

// bench is one run.
type bench struct {
	kubeconfig string
	install    bool
	images     install.Images
	parts      []string
	sizes      []int
	repeat     int
	idle       time.Duration
	patience   float64
	// shown is the command line, for the report.
	shown string

	// processor is that of nodes if they have one for themselves.
	processor string

	progress io.Writer
	cluster  *reach.Cluster
}

func command() *cobra.Command {
	b := &bench{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "measure Helenus on real Cassandra",
		Long: `Measure Helenus on real Cassandra and print the figures as Markdown.

  formation   rings formed by Helenus, and one node alone
  bootstrap   the same nodes joined one after the other by bootstrap, with the ring
              delay that Cassandra comes with, without Helenus: as operators do it
              that wait for one pod before they make the next
  same-flags  the same nodes one after the other with the flags that Helenus uses
  memory      resident memory of the operator and the agents
  idle        writes to the API server while nothing happens (local cluster alone)
  rollout     all nodes of the largest ring restarted one at a time, and in waves of a rack,
              while a client writes and reads
  leave       a node that restarts, is replaced and leaves, and the smallest ring that stops and starts
  security    three nodes that form with passwords and encryption, and without; what both cost
              clients; a password and certificates of the largest ring that are replaced
  scrape      what the metrics of a node cost with a hundred tables, and with a thousand
  backup      what three nodes upload and download against dd and a plain client, what backups and
              repairs cost clients and agents, how far behind commit logs are, a ring from a backup
              (local cluster alone)
  alone       what one node uploads and downloads that has a processor for itself, as the store and
              the client have the other, and what its backups cost the client (local cluster alone)

The whole takes an hour on two cores. Nothing else should run on the host:
what does is in the figures, and the load that was there is in the report.`,
		Example:      "  go run ./bench > figures.md\n  go run ./bench --parts formation --sizes 3",
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.progress = cmd.ErrOrStderr()
			b.shown = "make bench"
			if len(os.Args) > 1 {
				b.shown = "bench " + strings.Join(os.Args[1:], " ")
			}
			return b.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	c.AddCommand(plain(), readsOn())
	f := c.Flags()
	f.StringVar(&b.kubeconfig, "kubeconfig", "",
		"`file` that says which Kubernetes to use (default: the local cluster, which is brought up)")
	f.BoolVar(&b.install, "install", true, "build the images and install Helenus first")
	f.StringVar(&b.images.Operator, "operator-image", "",
		"`image` of the operator (default: what is built here for the local cluster, else that of the manifest)")
	f.StringVar(&b.images.Agent, "agent-image", "", "`image` of the agent (default: likewise)")
	f.StringSliceVar(&b.parts, "parts", allParts, "what to measure")
	f.IntSliceVar(&b.sizes, "sizes", []int{3, 9}, "sizes of the rings, each a multiple of 3: there are three racks")
	f.IntVar(&b.repeat, "repeat", 3, "how often each formation is measured; the time in the middle counts")
	f.DurationVar(&b.idle, "idle", 10*time.Minute, "how long nothing happens while writes are counted")
	f.Float64Var(&b.patience, "patience", 1, "`factor` on the times after which something counts as broken")
	return c
}

func (b *bench) check() error {
	for _, part := range b.parts {
		if !slices.Contains(allParts, part) {
			return fmt.Errorf("--parts %s: there are %s", part, strings.Join(allParts, ", "))
		}
	}
	if b.repeat < 1 || len(b.sizes) == 0 {
		return fmt.Errorf("--repeat %d and --sizes %v: must be one or more", b.repeat, b.sizes)
	}
	for _, size := range b.sizes {
		if size < 3 || size%3 != 0 {
			return fmt.Errorf("--sizes %d: must be a multiple of 3, since there are three racks", size)
		}
	}
	return nil
}

func (b *bench) has(part string) bool { return slices.Contains(b.parts, part) }

// run measures one part after the other. What was measured is printed even if a later part fails.
func (b *bench) run(ctx context.Context, out io.Writer) error {
	if err := b.check(); err != nil {
		return err
	}
	sample, err := readSample()
	if err != nil {
		return err
	}
	b.cluster, err = prepare.Kubernetes(ctx, prepare.Options{
		Kubeconfig: b.kubeconfig, Install: b.install, Images: b.images, Versions: []string{sample.Spec.Version},
		Progress: b.progress,
	})
	if err != nil {
		return err
	}
	figures, err := newFigures(ctx, b, sample)
	if err != nil {
		return err
	}
	err = b.measure(ctx, sample, figures)
	if _, printed := io.WriteString(out, figures.markdown()); err == nil {
		err = printed
	}
	return err
}

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
