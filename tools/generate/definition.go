package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// maxDefinitionSize is the largest size of a definition in bytes of JSON. kubectl apply keeps the
// whole object in an annotation, as JSON without spaces, and annotations may have 256 KiB.
const maxDefinitionSize = 256 << 10

// definitions completes the definitions that controller-gen wrote to one directory, and writes them
// to another.
func definitions(from, to string) error {
	paths, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list definitions: %w", err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("list definitions: controller-gen wrote none to %s", from)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("make directory of definitions: %w", err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read definition: %w", err)
		}
		finished, err := definition(raw)
		if err != nil {
			return fmt.Errorf("complete %s: %w", filepath.Base(path), err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), finished, 0o644); err != nil {
			return fmt.Errorf("write definition: %w", err)
		}
	}
	return nil
}

// definition completes one definition.
func definition(raw []byte) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	for i := range crd.Spec.Versions {
		schema := crd.Spec.Versions[i].Schema.OpenAPIV3Schema
		own(schema)
		bound(schema)
		readable(schema)
		shorten(schema)
		if missing := unbounded(schema); len(missing) > 0 {
			return nil, fmt.Errorf("without a bound in the types: %s", strings.Join(missing, ", "))
		}
	}
	return encode(&crd)
}

// encode writes a definition as YAML, without the status that the Go type always has, and refuses
// one that is too large.
func encode(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	asJSON, err := json.Marshal(crd)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(asJSON, &fields); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	delete(fields, "status")
	asYAML, err := yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if size := len(asJSON); size >= maxDefinitionSize {
		return nil, fmt.Errorf("it has %d bytes, and may have fewer than %d: shorten descriptions", size,
			maxDefinitionSize)
	}
	return asYAML, nil
}
