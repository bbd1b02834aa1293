package main

import (
	"fmt"
	"os"
	"path/filepath"

	"helenus.io/helenus/tools/generate/chart"
)

const installHeader = `# Helenus: everything that a Kubernetes cluster needs to run CassandraClusters.
#
#   kubectl apply --server-side -f install.yaml
#
# Made from charts/helenus by "make generate"; change that.
`

// packed are the folders of config whose files the chart has, too: Helm reads nothing outside.
var packed = []string{"crd", "policy"}

// install puts what was generated into the chart, and writes the chart's rendering to
// config/install.yaml.
func install(root string) error {
	dir := filepath.Join(root, "charts", "helenus")
	for _, folder := range packed {
		if err := pack(filepath.Join(root, "config", folder), filepath.Join(dir, "files", folder)); err != nil {
			return err
		}
	}
	// The namespace of kubectl apply is part of what is applied.
	text, err := chart.Render(dir, "helenus-system", map[string]any{"namespace": map[string]any{"create": true}})
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(root, "config", "install.yaml"), []byte(installHeader+text), 0o644)
	if err != nil {
		return fmt.Errorf("write install.yaml: %w", err)
	}
	return nil
}

// pack makes a folder a copy of another.
func pack(from, to string) error {
	paths, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("pack %s: no files (%w)", from, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("pack %s: %w", from, err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("pack %s: %w", from, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("pack %s: %w", from, err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o644); err != nil {
			return fmt.Errorf("pack %s: %w", from, err)
		}
	}
	return nil
}
