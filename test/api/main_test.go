package api

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"helenus.io/helenus/dev/localkube/cluster"
)

// server is the API server that all tests share.
var server *rest.Config

const manifest = "../../config/install.yaml"

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := withServer(ctx, func(config *rest.Config) (int, error) {
		server = config
		if err := apply(ctx, manifest); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/api:", err)
		code = 1
	}
	os.Exit(code)
}

// withServer runs something against etcd, an API server and a controller manager that live no longer than it.
func withServer(ctx context.Context, use func(*rest.Config) (int, error)) (code int, err error) {
	scratch, err := os.MkdirTemp("", "helenus-test-api-")
	if err != nil {
		return 1, fmt.Errorf("make scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	state := filepath.Join(scratch, "cluster")
	log := io.Discard
	if testing.Verbose() {
		log = os.Stderr
	}
	const name = "test-api"
	defer func() {
		err = errors.Join(err, cluster.Down(context.WithoutCancel(ctx), name, state, log))
	}()
	up, err := cluster.Up(ctx, cluster.Options{Name: name, State: state, APIOnly: true, Controllers: true, Out: log})
	if err != nil {
		return 1, fmt.Errorf("start the API server: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", up.Kubeconfig())
	if err != nil {
		return 1, fmt.Errorf("read kubeconfig: %w", err)
	}
	// The server is this process' own, so there is nobody to be polite to.
	config.QPS, config.Burst = -1, -1
	config.WarningHandler = rest.NoWarnings{}
	return use(config)
}
