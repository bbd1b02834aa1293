package chart

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Name is that of a release: nothing that is rendered depends on it.
const Name = "helenus"

// order is that in which the templates must exist: those who check before those who are checked.
var order = []string{"namespace.yaml", "definitions.yaml", "policies.yaml", "inspect.yaml", "rbac.yaml", "users.yaml",
	"deployment.yaml", "network-policy.yaml", "console.yaml", "pod-monitor.yaml", "rules.yaml", "dashboards.yaml"}

// Render is the manifest of the chart in a directory for a namespace, by values that differ from
// its own. Values that its schema refuses are an error.
func Render(dir, namespace string, values map[string]any) (string, error) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // Helm's, on every file
	loaded, err := loader.Load(dir)
	if err != nil {
		return "", fmt.Errorf("load chart %s: %w", dir, err)
	}
	release := common.ReleaseOptions{Name: Name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, values, release, common.DefaultCapabilities)
	if err != nil {
		return "", fmt.Errorf("take values: %w", err)
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return "", fmt.Errorf("render chart %s: %w", dir, err)
	}
	var out strings.Builder
	for _, name := range order {
		text, found := files[path.Join(loaded.Name(), "templates", name)]
		if !found {
			return "", fmt.Errorf("render chart %s: it has no template %s", dir, name)
		}
		for part := range strings.SplitSeq("\n"+text, "\n---\n") {
			if part = strings.TrimSpace(part); part != "" {
				fmt.Fprintf(&out, "---\n%s\n", part)
			}
		}
	}
	others := slices.DeleteFunc(names(files), func(name string) bool {
		return strings.HasPrefix(name, "_") || name == "NOTES.txt" || slices.Contains(order, name)
	})
	if len(others) > 0 {
		return "", errors.New("render chart: it is not known when these must exist: " + strings.Join(others, ", "))
	}
	return out.String(), nil
}

func names(files map[string]string) []string {
	var out []string
	for name := range files {
		out = append(out, path.Base(name))
	}
	return out
}
