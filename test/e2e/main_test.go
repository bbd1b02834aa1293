//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/reach"
	"helenus.io/helenus/test/e2e/prepare"
)

var (
	kubeconfig = flag.String("kubeconfig", "",
		"`file` that says which Kubernetes to use (default: the local cluster, which is brought up)")
	doInstall = flag.Bool("install", true,
		"build the images and install Helenus first; false takes what is installed")
	operatorImage = flag.String("operator-image", "",
		"`image` of the operator (default: what is built here for the local cluster, else that of the manifest)")
	agentImage = flag.String("agent-image", "", "`image` of the agent (default: likewise)")
	patience   = flag.Float64("patience", 1, "`factor` on all bounds, for a host that is slow or busy")
	full       = flag.Bool("full", false, "run all tests, not only those that are worth their time on every change")
	report     = flag.String("report", "", "`file` to write into what clients saw of the rings")
	commit     = flag.String("commit", "unknown", "`name` of what is tested, for the report")
	helm       = flag.String("helm", "", "`program` of Helm, for the test of the chart")
	keep       = flag.Bool("keep", false, "leave the namespaces of failed tests as they are, to look into them")
)

// kubernetes is what all tests use; background ends with the run.
var (
	kubernetes *reach.Cluster
	background context.Context
)

const samples = "../../config/samples"

// oldestLine is a release of the oldest line of Cassandra that Helenus runs.
const oldestLine = "4.1.10"

// laterPatch is a later release of the line that the samples have.
const laterPatch = "5.0.9"

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	background = ctx
	code := 1
	if err := connect(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "test/e2e:", err)
	} else {
		code = m.Run()
		if *report != "" {
			if err := writeReport(*report, *commit); err != nil {
				fmt.Fprintln(os.Stderr, "test/e2e: write the report:", err)
				code = 1
			}
		}
		if err := leave(); err != nil {
			fmt.Fprintln(os.Stderr, "test/e2e: clean up:", err)
			code = 1
		}
	}
	stop()
	os.Exit(code)
}

// connect prepares a Kubernetes as the flags say.
func connect(ctx context.Context) error {
	sample, err := scenario("demo.yaml")
	if err != nil {
		return err
	}
	kubernetes, err = prepare.Kubernetes(ctx, prepare.Options{
		Kubeconfig: *kubeconfig,
		Install:    *doInstall,
		Images:     install.Images{Operator: *operatorImage, Agent: *agentImage},
		Versions:   []string{sample.Spec.Version, oldestLine, laterPatch},
		Progress:   os.Stderr,
	})
	return err
}

// took logs how long a part of a test took.
func took(t *testing.T, what string, do func() error) {
	t.Helper()
	start := time.Now()
	err := do()
	if err != nil {
		t.Fatalf("%s: %v (after %.1fs)", what, err, time.Since(start).Seconds())
	}
	t.Logf("%6.1fs  %s", time.Since(start).Seconds(), what)
}
