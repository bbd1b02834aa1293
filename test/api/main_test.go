package api

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"helenus.io/helenus/test/api/live"
)

// server is the API server that all tests share.
var server *rest.Config

const manifest = "../../config/install.yaml"

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := live.With(ctx, "test-api", true, live.TestOutput(), func(config *rest.Config, _ string) (int, error) {
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
