package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// What kubeconfigs of cloud providers need to log in.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"helenus.io/helenus/internal/cli"
)

// version of this build, set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.New(version, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
