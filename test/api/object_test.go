package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// base is a valid object of a kind: that of testdata/base.
func base(kind string) *unstructured.Unstructured {
	raw, err := os.ReadFile(filepath.Join("testdata", "base", kind+".yaml"))
	if err != nil {
		panic(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &object.Object); err != nil {
		panic(err)
	}
	return object
}

// steps takes a path such as spec.datacenters[0].node apart. Names and indices alternate as the
// path has them.
func steps(path string) []string {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}

// put merges a value into an object at a path, making what is not there. Maps are merged by key,
// everything else is replaced; null takes a key away.
func put(object map[string]any, path string, value any) error {
	_, err := putAt(object, steps(path), value)
	if err != nil {
		return fmt.Errorf("put at %s: %w", path, err)
	}
	return nil
}

func putAt(at any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return merge(at, value), nil
	}
	if index, err := strconv.Atoi(path[0]); err == nil {
		list, ok := at.([]any)
		if !ok || index >= len(list) {
			return nil, fmt.Errorf("no item %d", index)
		}
		list[index], err = putAt(list[index], path[1:], value)
		return list, err
	}
	if at == nil {
		at = map[string]any{}
	}
	fields, ok := at.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is below something that has no fields", path[0])
	}
	below, err := putAt(fields[path[0]], path[1:], value)
	fields[path[0]] = below
	return fields, err
}

func merge(into, value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	target, ok := into.(map[string]any)
	if !ok {
		target = map[string]any{}
	}
	for key, field := range fields {
		if field == nil {
			delete(target, key)
			continue
		}
		target[key] = merge(target[key], field)
	}
	return target
}

// present says whether an object has something at the path of a schema, in which [] stands for any
// item of a list or map.
func present(at any, path string) bool {
	if path == "" {
		return at != nil
	}
	if rest, ok := strings.CutPrefix(path, "[]"); ok {
		switch items := at.(type) {
		case []any:
			for _, item := range items {
				if present(item, rest) {
					return true
				}
			}
		case map[string]any:
			for _, item := range items {
				if present(item, rest) {
					return true
				}
			}
		}
		return false
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	fields, ok := at.(map[string]any)
	if !ok {
		return false
	}
	below, ok := fields[path[:end]]
	return ok && present(below, path[end:])
}
