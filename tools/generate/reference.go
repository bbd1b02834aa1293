package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
)

// reference writes the API reference from the types, and what Helenus owns from its tables.
func reference(ctx context.Context, root, scratch, crdRefDocs string) error {
	made := filepath.Join(scratch, "api-reference.md")
	err := run(ctx, root, crdRefDocs, "--source-path=./api/v1alpha1", "--config=tools/generate/reference.yaml",
		"--templates-dir=tools/generate/templates", "--renderer=markdown", "--output-path="+made)
	if err != nil {
		return err
	}
	types, err := os.ReadFile(made)
	if err != nil {
		return fmt.Errorf("read reference: %w", err)
	}
	var out bytes.Buffer
	out.WriteString(tidy(string(types)))
	out.WriteString("\n\n")
	owned(&out)
	path := filepath.Join(root, "docs", "guide", "api-reference.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make directory of the guide: %w", err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write reference: %w", err)
	}
	return nil
}

var (
	// constant is the name of a Go constant with which the comment of an enum's value begins.
	constant = regexp.MustCompile(`(?m)^(\| ` + "`[A-Za-z]+`" + ` \| )(?:[A-Z]+[a-z]+){2,}(?: –)? `)
	blank    = regexp.MustCompile(`\n{3,}`)
	// line ends each line of a comment that has several.
	line  = strings.NewReplacer("<br /> |", " |", "<br />", " ", "`{  }`", "")
	angle = regexp.MustCompile(`<([a-z]+)>`)
)

// tidy takes away what makes sense in Go, or to the tool, but not to a reader.
func tidy(text string) string {
	text = constant.ReplaceAllString(line.Replace(text), "$1")
	text = angle.ReplaceAllString(text, "&lt;$1&gt;")
	return blank.ReplaceAllString(strings.TrimSpace(text), "\n\n")
}

func owned(out *bytes.Buffer) {
	out.WriteString("## What Helenus sets by itself\n\n### Keys of cassandra.yaml\n\n")
	out.WriteString("`node.cassandraYaml` may have every setting of the Cassandra version but these.\n\n| key | " +
		"instead |\n|---|---|\n")
	for _, setting := range v1alpha1.OwnedSettings {
		fmt.Fprintf(out, "| `%s` | %s |\n", setting.Key, setting.Instead)
	}
	groups(out, "Options of the JVM", "`node.jvm.options` may not have options that begin with one of these.",
		"beginning", v1alpha1.OwnedJVMOptions)
	groups(out, "Environment variables", "`node.environment` may not have these.", "name", v1alpha1.OwnedVariables)
}

func groups(out *bytes.Buffer, title, intro, column string, list []v1alpha1.OwnedName) {
	fmt.Fprintf(out, "\n### %s\n\n%s\n\n| %s | instead |\n|---|---|\n", title, intro, column)
	for _, group := range list {
		names := slices.Clone(group.Names)
		for i, name := range names {
			names[i] = "`" + name + "`"
		}
		fmt.Fprintf(out, "| %s | %s |\n", strings.Join(names, ", "), group.Instead)
	}
}
