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

// With uses etcd and an API server, and the controller manager if asked for, that live no longer
// than use runs. The name tells servers of one host apart; what becomes of them is written to out.
func With(ctx context.Context, name string, controllers bool, out io.Writer,
	use func(config *rest.Config, kubeconfig string) (int, error)) (code int, err error) {
	scratch, err := os.MkdirTemp("", "helenus-"+name+"-")
	if err != nil {
		return 1, fmt.Errorf("make scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	state := filepath.Join(scratch, "cluster")
	defer func() {
		err = errors.Join(err, cluster.Down(context.WithoutCancel(ctx), name, state, out))
	}()
	up, err := cluster.Up(ctx, cluster.Options{Name: name, State: state, APIOnly: true, Controllers: controllers,
		Out: out})
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
	return use(config, up.Kubeconfig())
}

// TestOutput is where a test writes what becomes of its servers: nowhere without the flag -v. It
// may be asked once the flags are parsed.
func TestOutput() io.Writer {
	if testing.Verbose() {
		return os.Stderr
	}
	return io.Discard
}
