package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// copied are the files of the console that are used as they are.
var copied = []string{"src/index.html", "src/icon.svg", "preact/LICENSE"}

const banner = "/* Contains Preact, (c) 2015-present Jason Miller: see LICENSE beside this. */"

// page bundles the console: its source and Preact, into files that the operator embeds. They are
// checked in, so that Go alone builds the operator.
func page(dir string) error {
	src, dist := filepath.Join(dir, "src"), filepath.Join(dir, "dist")
	made := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: filepath.Join(src, "main.tsx"), OutputPath: "console"},
			{InputPath: filepath.Join(src, "style.css"), OutputPath: "console"},
		},
		Outdir: dist, AbsWorkingDir: dir, Write: true, Bundle: true,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Target: api.ES2022, Format: api.FormatIIFE, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXTransform, JSXFactory: "h", JSXFragment: "Fragment",
		Alias: map[string]string{
			"preact":       filepath.Join(dir, "preact", "preact.mjs"),
			"preact/hooks": filepath.Join(dir, "preact", "hooks.mjs"),
		},
		Banner: map[string]string{"js": banner},
	})
	if len(made.Errors) > 0 {
		return fmt.Errorf("bundle the console: %s", api.FormatMessages(made.Errors, api.FormatMessagesOptions{})[0])
	}
	for _, name := range copied {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("copy a file of the console: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dist, filepath.Base(name)), text, 0o644); err != nil {
			return fmt.Errorf("copy a file of the console: %w", err)
		}
	}
	return nil
}
