package coverage

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// words are texts of the sorts that properties take. Which of them a property takes is found out by
// asking the API server.
var words = []any{
	"b", "c", "5.0.9", "5.0.5", "1m", "2m", "registry.example.com/cassandra:5.0.6",
	"registry.example.com/cassandra:other", "/scratch", "/elsewhere", "In", "Exists",
	"DoesNotExist", "NoSchedule", "NoExecute", "Equal", "Honor", "Ignore", "DoNotSchedule", "ScheduleAnyway",
	"topology.kubernetes.io/zone", "kubernetes.io/hostname",
	"-Xss1m", "-Xss2m", "metadata.name", "50%", "25%", "PersistentVolumeClaim", "/extra/*.jar", "/opt/one.jar",
	"shop.*", "*.t_1", "org.apache.cassandra.metrics.Index.*", "org.apache.cassandra.metrics.CQL.*",
	"2026-01-01T12:00:00Z", "2026-01-03T00:00:00Z", "20m", "1h", "10.1.0.0/16", "10.0.0.0/12", "",
	"22:00", "23:30", "2h", "UTC", "Europe/Berlin",
	// What nobody takes.
	"not a word!", strings.Repeat("x", 70000),
}

var quantities = []any{"3Gi", "1Gi", "2500Mi", "100m", "a lot"}

// candidates are values of a schema, valid ones and others.
func candidates(s *apiextensionsv1.JSONSchemaProps) []any {
	switch {
	case len(s.Enum) > 0:
		var out []any
		for _, raw := range s.Enum {
			var v any
			if json.Unmarshal(raw.Raw, &v) == nil {
				out = append(out, v)
			}
		}
		return append(out, "Nothing")
	case s.XIntOrString && s.Pattern != "":
		return quantities
	case s.XIntOrString:
		return append([]any{int64(2), int64(3), int64(-1)}, words...)
	case s.Type == "boolean":
		return []any{true, false, "perhaps"}
	case s.Type == "integer":
		return numbers(s)
	case s.Type == "string":
		return words
	case s.Type == "array":
		return lists(s)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return maps(s.AdditionalProperties.Schema)
	default: // anything may be in it
		return []any{
			map[string]any{"spec": map[string]any{"dnsPolicy": "Default"}},
			map[string]any{"spec": map[string]any{"hostname": "b"}},
			map[string]any{"spec": map[string]any{"containers": "none"}}, map[string]any{"enabled": true}, "text",
		}
	}
}

func numbers(s *apiextensionsv1.JSONSchemaProps) []any {
	low, high := int64(0), int64(1<<40)
	if s.Minimum != nil {
		low = int64(*s.Minimum)
	}
	if s.Maximum != nil {
		high = int64(*s.Maximum)
	}
	return []any{max(low, 1) + 1, max(low, 1), max(low, 1) + 3, high, low - 1, high + 1, "many"}
}

func lists(s *apiextensionsv1.JSONSchemaProps) []any {
	if s.Items == nil || s.Items.Schema == nil {
		return []any{[]any{"/b"}, []any{}, "none"}
	}
	var out []any
	for _, v := range candidates(s.Items.Schema) {
		out = append(out, []any{v})
	}
	return append(out, "none")
}

func maps(s *apiextensionsv1.JSONSchemaProps) []any {
	var out []any
	for _, v := range candidates(s) {
		for _, key := range []string{"a", "memory", "cpu"} {
			out = append(out, map[string]any{key: v})
		}
	}
	return append(out, "none")
}
