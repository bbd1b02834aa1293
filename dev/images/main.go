package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"helenus.io/helenus/dev/images/internal/cli"
)

// locks are the lock files; the command lock writes them anew.
//
//go:embed locks/*.json
var locks embed.FS

// recipe is the source of everything that shapes the bytes of an image. Images
// and layers made by other code are not reused.
//
//go:embed internal/cassandra/*.go internal/debian/*.go internal/image/*.go internal/jre/*.go
//go:embed internal/layer/*.go internal/own/*.go internal/pypi/*.go internal/settings/*.go
var recipe embed.FS

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	sources, err := fs.Sub(recipe, "internal")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.New(locks, sources).ExecuteContext(ctx)
}
