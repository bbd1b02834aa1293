package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"helenus.io/helenus/tools/generate/alerts"
	"helenus.io/helenus/tools/generate/dashboards"
)

// tools are the commands that are run, as paths or as names in PATH.
type tools struct {
	controllerGen, crdRefDocs string
}

func main() {
	root := flag.String("root", ".", "root directory of the repository")
	var with tools
	flag.StringVar(&with.controllerGen, "controller-gen", "controller-gen", "the controller-gen command")
	flag.StringVar(&with.crdRefDocs, "crd-ref-docs", "crd-ref-docs", "the crd-ref-docs command")
	flag.Usage = func() {
		const help = "Remakes deep copies, custom resource definitions, a policy, the alerts, the metrics, the " +
			"chart, config/install.yaml, the console's page and the API reference.\n\nFlags:\n"
		_, _ = io.WriteString(flag.CommandLine.Output(), help) // there is nowhere to say that it failed
		flag.PrintDefaults()
	}
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := generate(ctx, *root, with)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, root string, with tools) error {
	scratch, err := os.MkdirTemp("", "helenus-generate-")
	if err != nil {
		return fmt.Errorf("make scratch directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // nothing in it is needed any more

	err = run(ctx, root, with.controllerGen, "object", "crd", "paths=./api/v1alpha1", "output:crd:dir="+scratch)
	if err != nil {
		return err
	}
	if err := definitions(scratch, filepath.Join(root, "config", "crd")); err != nil {
		return err
	}
	if err := settingsPolicy(filepath.Join(root, "config", "policy", "settings.yaml")); err != nil {
		return err
	}
	if err := writeAlerts(root); err != nil {
		return err
	}
	if err := writeMetrics(root); err != nil {
		return err
	}
	if err := install(root); err != nil {
		return err
	}
	if err := page(filepath.Join(root, "internal", "console")); err != nil {
		return err
	}
	return reference(ctx, root, scratch, with.crdRefDocs)
}

// writeAlerts writes the rules and the dashboards into the chart, and the page of the alerts.
func writeAlerts(root string) error {
	rules, err := alerts.Rules()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		filepath.Join(root, "charts", "helenus", "rules", "helenus.yaml"): rules,
		filepath.Join(root, "docs", "guide", "alerts.md"):                 alerts.Guide(),
	}
	for _, d := range dashboards.All() {
		if files[filepath.Join(root, "charts", "helenus", "dashboards", d.Name+".json")], err = d.JSON(); err != nil {
			return err
		}
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the alerts: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("write the alerts: %w", err)
		}
	}
	return nil
}

// run runs a command in a directory and returns what it said if it fails.
func run(ctx context.Context, dir, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", filepath.Base(name), err, strings.TrimSpace(said.String()))
	}
	return nil
}
