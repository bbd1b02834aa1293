package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"helenus.io/helenus/dev/localkube/cluster"
)

// With uses etcd and an API server, and the controller manager if asked for, that live no longer than use runs. The name tells servers of one machine apart.
func With(ctx context.Context, name string, controllers bool, use func(*rest.Config) (int, error)) (code int, err error) {
	scratch, err := os.MkdirTemp("", "helenus-"+name+"-")
	if err != nil {
		return 1, fmt.Errorf("make scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	state := filepath.Join(scratch, "cluster")
	log := io.Discard
	if testing.Verbose() {
		log = os.Stderr
	}
	defer func() {
		err = errors.Join(err, cluster.Down(context.WithoutCancel(ctx), name, state, log))
	}()
	up, err := cluster.Up(ctx, cluster.Options{Name: name, State: state, APIOnly: true, Controllers: controllers, Out: log})
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
