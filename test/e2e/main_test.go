//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/dev/demo/reach"
)

var (
	kubeconfig    = flag.String("kubeconfig", "", "`file` that says which Kubernetes to use (default: the local cluster, which is brought up)")
	doInstall     = flag.Bool("install", true, "build the images and install Helenus first; false takes what is installed")
	operatorImage = flag.String("operator-image", "", "`image` of the operator (default: what is built here for the local cluster, else that of the manifest)")
	agentImage    = flag.String("agent-image", "", "`image` of the agent (default: likewise)")
	patience      = flag.Float64("patience", 1, "`factor` on all bounds, for a machine that is slow or busy")
	keep          = flag.Bool("keep", false, "leave the namespaces of failed tests as they are, to look into them")
)

// kubernetes is what all tests use; background ends with the run.
var (
	kubernetes *reach.Cluster
	background context.Context
)

const samples = "../../config/samples"

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	background = ctx
	code := 1
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "test/e2e:", err)
	} else {
		code = m.Run()
		if err := leave(); err != nil {
			fmt.Fprintln(os.Stderr, "test/e2e: clean up:", err)
			code = 1
		}
	}
	stop()
	os.Exit(code)
}

// prepare sees to it that there is a Kubernetes with Helenus in it.
func prepare(ctx context.Context) error {
	repository, err := local.FindRepository(".")
	if err != nil {
		return err
	}
	images := install.Images{Operator: *operatorImage, Agent: *agentImage}
	config := *kubeconfig
	if config == "" {
		if config, images, err = prepareLocal(ctx, repository, images); err != nil {
			return err
		}
	}
	if kubernetes, err = reach.Open(config); err != nil {
		return err
	}
	if !*doInstall {
		return nil
	}
	objects, err := install.Manifest(filepath.Join(repository, local.ManifestPath), images)
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, kubernetes, objects); err != nil {
		return err
	}
	return install.AwaitOperator(ctx, kubernetes, func(string) {})
}

func prepareLocal(ctx context.Context, repository string, images install.Images) (string, install.Images, error) {
	t := local.Tools{Repository: repository, Progress: os.Stderr}
	if err := t.Check(); err != nil {
		return "", images, err
	}
	if *doInstall {
		if err := t.Up(ctx); err != nil {
			return "", images, err
		}
		sample, err := scenario("demo.yaml")
		if err != nil {
			return "", images, err
		}
		files, err := t.Build(ctx, sample.Spec.Version)
		if err != nil {
			return "", images, err
		}
		built, err := t.Load(ctx, files)
		if err != nil {
			return "", images, err
		}
		if images.Operator == "" {
			images.Operator = built.Operator
		}
		if images.Agent == "" {
			images.Agent = built.Agent
		}
	}
	config, err := t.Kubeconfig(ctx)
	return config, images, err
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
