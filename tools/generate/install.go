package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// installed are the parts of the one manifest, in the order in which they must exist.
var installed = []string{
	"manager/namespace.yaml",
	"crd/*.yaml",
	"policy/*.yaml",
	"rbac/*.yaml",
	"manager/deployment.yaml",
	"network-policy/operator.yaml",
}

const installHeader = `# Helenus: everything that a Kubernetes cluster needs to run CassandraClusters.
#
#   kubectl apply --server-side -f install.yaml
#
# Made from the files in config/ by "make generate"; change those.
`

// install writes install.yaml from the parts below a directory.
func install(config string) error {
	var out bytes.Buffer
	out.WriteString(installHeader)
	for _, pattern := range installed {
		paths, err := filepath.Glob(filepath.Join(config, pattern))
		if err != nil {
			return fmt.Errorf("list %s: %w", pattern, err)
		}
		if len(paths) == 0 {
			return fmt.Errorf("list %s: nothing is there", pattern)
		}
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read part: %w", err)
			}
			part := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(raw)), "---"))
			fmt.Fprintf(&out, "---\n%s\n", part)
		}
	}
	if err := os.WriteFile(filepath.Join(config, "install.yaml"), out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write install.yaml: %w", err)
	}
	return nil
}
