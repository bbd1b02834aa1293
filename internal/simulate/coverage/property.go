package coverage

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Property is one that a user can write.
type Property struct {
	// Path from the spec on: node.jvm.heap, datacenters[].name. Lists have one element.
	Path string
	// Schema of its values.
	Schema apiextensionsv1.JSONSchemaProps
}

// Properties are those of the spec of a definition which have no properties of their own, in the
// order of their paths.
func Properties(d *apiextensionsv1.CustomResourceDefinition) []Property {
	var out []Property
	spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	collect(&out, "", &spec)
	slices.SortFunc(out, func(a, b Property) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func collect(out *[]Property, path string, s *apiextensionsv1.JSONSchemaProps) {
	below, at := s, path
	if s.Items != nil && s.Items.Schema != nil && len(s.Items.Schema.Properties) > 0 {
		below, at = s.Items.Schema, path+"[]"
	}
	if len(below.Properties) == 0 {
		*out = append(*out, Property{path, *s})
		return
	}
	for name, inner := range below.Properties {
		next := name
		if at != "" {
			next = at + "." + name
		}
		collect(out, next, &inner)
	}
}

// elements are what an element of a list, or an object, needs beside the property that is set in
// it, by the name of the list or object. Elements of the other lists are there.
var elements = map[string]map[string]any{
	"tolerations": {"operator": "Exists"},
	"topologySpreadConstraints": {"maxSkew": int64(1), "topologyKey": "topology.kubernetes.io/zone",
		"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": map[string]any{}},
	"environment":      {"name": "A", "value": "b"},
	"additional":       {"name": "scratch", "mountPath": "/scratch", "size": "1Gi"},
	"imagePullSecrets": {"name": "registry"},
	"matchExpressions": {"key": "disk", "operator": "Exists"},
	"keyspaces":        {"name": "shop"},
	"exceptions": {"name": "look", "type": "Debug", "node": "nobody", "reason": "corrupt file",
		"until": "2026-01-02T00:00:00Z"},
	"ipBlock":           {"cidr": "10.0.0.0/8"},
	"issuerRef":         {"name": "ours"},
	"dataSource":        {"kind": "PersistentVolumeClaim", "name": "golden"},
	"matchFields":       {"key": "metadata.name", "operator": "In", "values": []any{"m-a-0"}},
	"nodeSelectorTerms": {"matchExpressions": []any{map[string]any{"key": "disk", "operator": "Exists"}}},
	"preferredDuringSchedulingIgnoredDuringExecution": {
		"weight": int64(1), "preference": map[string]any{"matchExpressions": []any{map[string]any{"key": "disk",
			"operator": "Exists"}}},
	},
}

// set puts a value at a path, and makes what is missing on the way. A nil value takes the property
// away.
func set(object map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	list, isList := strings.CutSuffix(name, "[]")
	switch {
	case !deeper && value == nil:
		delete(object, name)
	case !deeper:
		object[name] = value
	case isList:
		all, _ := object[list].([]any)
		if len(all) == 0 {
			element := runtime.DeepCopyJSON(elements[list])
			if element == nil {
				element = map[string]any{}
			}
			all = []any{element}
			object[list] = all
		}
		set(all[0].(map[string]any), rest, value)
	default:
		if name == "ephemeral" { // storage is of one kind
			delete(object, "claims")
		}
		inner, ok := object[name].(map[string]any)
		if !ok {
			if inner = runtime.DeepCopyJSON(elements[name]); inner == nil {
				inner = map[string]any{}
			}
			object[name] = inner
		}
		set(inner, rest, value)
	}
}

// fixed says that there is no value which the property could be changed to: one that only Helenus
// sets, or one that is for life.
func (p Property) fixed() bool {
	return p.Path == "datacenters[].numTokens" || strings.HasPrefix(p.Path, "bootstrap.") ||
		strings.HasPrefix(p.Path, "datacenters[].withdraw.") || // never of all datacenters: here is one
		p.Path == "exceptions[].hostID" || // goes with the type StartAnyway alone
		p.Path == "security.authentication.superuser.secretName" || // goes with the mode Password alone
		strings.HasPrefix(p.Path, "security.authentication.roles") || // as above
		p.Path == "exceptions[].guard" || // goes with the type OverrideGuard alone
		p.Path == "exceptions[].keyspace" || // goes with the types AcceptLoss and AcceptUnavailable alone
		slices.ContainsFunc(p.Schema.XValidations,
			func(r apiextensionsv1.ValidationRule) bool { return r.Rule == "false" })
}

// Repeated says that a property is also at another place of the spec, which comes before this one:
// nodes are described for the cluster, for a datacenter and for a rack by the same schema, and so
// is who may reach a port for each port.
func Repeated(path string) bool {
	return slices.ContainsFunc([]string{"datacenters[].node.", "datacenters[].racks[].node.",
		"security.networkPolicy.external[].", "security.networkPolicy.metrics[]."},
		func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}
