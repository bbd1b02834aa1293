// Command render prints the manifest of the chart for values, as "helm template" does, where there
// is no Helm. It imports the package chart.
package main

import (
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"helenus.io/helenus/tools/generate/chart"
)

func main() {
	dir := flag.String("chart", "../../charts/helenus", "`directory` of the chart")
	namespace := flag.String("namespace", "helenus-system", "`namespace` of the operator")
	file := flag.String("values", "", "`file` with values; those of the chart if not given")
	flag.Parse()
	if err := run(*dir, *namespace, *file); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(dir, namespace, file string) error {
	values := map[string]any{}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read values: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &values); err != nil {
			return fmt.Errorf("read values %s: %w", file, err)
		}
	}
	text, err := chart.Render(dir, namespace, values)
	if err != nil {
		return err
	}
	_, err = fmt.Print(text)
	return err
}
