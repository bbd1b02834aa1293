package main

import (
	"maps"
	"slices"
	"strings"
)

// Bounds for what the types of Kubernetes leave open. They keep the estimated cost of rules low;
// nobody needs as much.
const (
	maxItems         = 32
	maxProperties    = 32
	maxTextLength    = 512
	maxQuantityLen   = 32
	maxLabelValueLen = 63
	maxAnnotationLen = 4096
)

// kubernetesTypes are the fields whose type is one of Kubernetes' own: their descriptions are in
// the documentation of Kubernetes, and their bounds are added here.
var kubernetesTypes = []string{
	"nodeAffinity", "tolerations", "topologySpreadConstraints", "imagePullSecrets", "selector", "dataSource",
	"namespaceSelector", "podSelector",
}

// walk visits a schema and all below it. The path of a list's items ends with [], that of a map's
// values with {}.
func walk(s *schema, path string, visit func(path string, s *schema)) {
	visit(path, s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		walk(&property, path+"."+name, visit)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		walk(s.AdditionalProperties.Schema, path+"{}", visit)
	}
}

// bound adds the bounds that markers in the types cannot give.
func bound(root *schema) {
	walk(root, "", func(path string, s *schema) {
		switch {
		case s.XIntOrString && s.MaxLength == nil:
			s.MaxLength = ptr[int64](maxQuantityLen)
		case s.Type == "string" && s.MaxLength == nil && strings.HasSuffix(path, ".labels{}"):
			s.MaxLength = ptr[int64](maxLabelValueLen)
		case s.Type == "string" && s.MaxLength == nil && strings.HasSuffix(path, ".annotations{}"):
			s.MaxLength = ptr[int64](maxAnnotationLen)
		case s.Type == "string" && s.MaxLength == nil && strings.HasSuffix(path, ".nodeSelector{}"):
			s.MaxLength = ptr[int64](maxLabelValueLen)
		case inKubernetesType(path):
			boundOpen(s)
		}
	})
}

func boundOpen(s *schema) {
	switch {
	case s.Type == "array" && s.MaxItems == nil:
		s.MaxItems = ptr[int64](maxItems)
	case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0:
		s.MaxLength = ptr[int64](maxTextLength)
	case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
		s.MaxProperties = ptr[int64](maxProperties)
	}
}

// unbounded lists the paths of what has no bound: each would let the cost of rules, and the size of
// objects, grow without end, or a value pass that the Go types cannot read.
func unbounded(root *schema) []string {
	var missing []string
	walk(root, "", func(path string, s *schema) {
		if path == ".apiVersion" || path == ".kind" || strings.HasPrefix(path, ".metadata") {
			return // the API server bounds these by itself
		}
		switch {
		case s.Type == "array" && s.MaxItems == nil,
			s.Type == "string" && s.Format == "date-time" && s.Pattern == "",
			s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0,
			s.Type == "integer" && (s.Minimum == nil || s.Maximum == nil),
			s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil,
			isQuantity(s) && len(s.XValidations) == 0:
			missing = append(missing, path)
		}
	})
	return missing
}

// shorten takes away the descriptions inside Kubernetes' own types.
func shorten(root *schema) {
	walk(root, "", func(path string, s *schema) {
		if inside(path) {
			s.Description = ""
		}
		if strings.HasSuffix(path, ".conditions[]") {
			for name, property := range s.Properties {
				property.Description = ""
				s.Properties[name] = property
			}
		}
	})
}

// inKubernetesType says whether a path is that of a field of one of Kubernetes' types, or below it.
func inKubernetesType(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(part string) bool {
		return slices.Contains(kubernetesTypes, strings.TrimRight(part, "[]{}"))
	})
}

// inside says whether a path is below a field of one of Kubernetes' types. The field itself keeps
// its description.
func inside(path string) bool {
	parent := path[:max(0, strings.LastIndexAny(path, ".[{"))]
	return inKubernetesType(parent)
}

func ptr[T any](value T) *T { return &value }
