package compare

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// steps takes a path such as spec.datacenters[0].node apart. A key with dots in it stands in
// quotes: metadata.labels."helenus.io/x".
func steps(path string) []string {
	var out []string
	for path != "" {
		if rest, quoted := strings.CutPrefix(path, `"`); quoted {
			key, after, _ := strings.Cut(rest, `"`)
			out, path = append(out, key), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(out, path)
		}
		if end > 0 {
			out = append(out, path[:end])
		}
		if path[end] == '[' {
			index, after, _ := strings.Cut(path[end+1:], "]")
			out, path = append(out, index), strings.TrimPrefix(after, ".")
			continue
		}
		path = path[end+1:]
	}
	return out
}

// apply changes one field of a content. What is not there is made; where there is nothing to
// change, nothing happens.
func apply(content map[string]any, c change) { applyAt(content, steps(c.Path), c.Value) }

func applyAt(at any, path []string, value any) any {
	if list, ok := at.([]any); ok {
		index, err := strconv.Atoi(path[0])
		if err != nil || index > len(list) {
			return list
		}
		if len(path) == 1 && value == nil {
			if index < len(list) {
				return append(list[:index:index], list[index+1:]...)
			}
			return list
		}
		if index == len(list) {
			list = append(list, nil)
		}
		if len(path) == 1 {
			list[index] = runtime.DeepCopyJSONValue(value)
		} else {
			list[index] = applyAt(list[index], path[1:], value)
		}
		return list
	}
	fields, ok := at.(map[string]any)
	if !ok {
		if at != nil || value == nil {
			return at
		}
		if _, err := strconv.Atoi(path[0]); err == nil {
			return applyAt([]any{}, path, value)
		}
		fields = map[string]any{}
	}
	switch {
	case len(path) > 1 && value == nil && fields[path[0]] == nil:
	case len(path) > 1:
		fields[path[0]] = applyAt(fields[path[0]], path[1:], value)
	case value == nil:
		delete(fields, path[0])
	default:
		fields[path[0]] = runtime.DeepCopyJSONValue(value)
	}
	return fields
}

// patchOf is a merge patch that makes a change, as far as it goes: lists are replaced by the item
// alone.
func patchOf(c change) map[string]any {
	path := steps(c.Path)
	at := runtime.DeepCopyJSONValue(c.Value)
	for i := len(path) - 1; i >= 0; i-- {
		if _, err := strconv.Atoi(path[i]); err == nil {
			at = []any{at}
			continue
		}
		at = map[string]any{path[i]: at}
	}
	return at.(map[string]any)
}

// operationOf is a JSON patch that makes a change.
func operationOf(c change) map[string]any {
	path := ""
	for _, step := range steps(c.Path) {
		path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	if c.Value == nil {
		return map[string]any{"op": "remove", "path": path}
	}
	return map[string]any{"op": "add", "path": path, "value": c.Value}
}
