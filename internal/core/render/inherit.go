package render

import (
	"cmp"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
)

// NodeOf is what cluster, datacenter and rack say about the nodes of the first rack of the first
// datacenter.
func NodeOf(s *v1alpha1.CassandraClusterSpec) v1alpha1.NodeTemplate {
	dc := &s.Datacenters[0]
	return inherit(s.Node, dc.Node, dc.Racks[0].Node)
}

// inherit merges what cluster, datacenter and rack say about a node, the lower level winning where
// it says something. Overlays are not merged: they are patches, applied one after the other.
func inherit(cluster, dc *v1alpha1.NodeTemplate, rack *v1alpha1.NodeSettings) v1alpha1.NodeTemplate {
	var out v1alpha1.NodeTemplate
	for _, level := range []*v1alpha1.NodeSettings{settingsOf(cluster), settingsOf(dc), rack} {
		if level != nil {
			out.NodeSettings = merge(reflect.ValueOf(out.NodeSettings), reflect.ValueOf(*level)).
				Interface().(v1alpha1.NodeSettings)
		}
	}
	if p := out.Probes; p != nil {
		p.AgentStartup, p.AgentLiveness = unlessEmpty(p.AgentStartup), unlessEmpty(p.AgentLiveness)
		p.Readiness = unlessEmpty(p.Readiness)
	}
	out.JVM, out.Metadata, out.Probes = unlessEmpty(out.JVM), unlessEmpty(out.Metadata), unlessEmpty(out.Probes)
	return out
}

func settingsOf(t *v1alpha1.NodeTemplate) *v1alpha1.NodeSettings {
	if t == nil {
		return nil
	}
	return &t.NodeSettings
}

// unlessEmpty takes an object in which nothing is set for none: what is left when a user takes the
// last thing out of it.
func unlessEmpty[T any](v *T) *T {
	var nothing T
	if v == nil || equality.Semantic.DeepEqual(*v, nothing) {
		return nil
	}
	return v
}

// merge makes a new value of two of a type: maps by key, lists as a whole, objects of this API
// field by field, and of everything else the one of the lower level if that says something.
func merge(base, over reflect.Value) reflect.Value {
	t := base.Type()
	out := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[*v1alpha1.Storage]() && otherKind(base, over):
		return over
	case isObject(t):
		for i := range t.NumField() {
			out.Field(i).Set(merge(base.Field(i), over.Field(i)))
		}
	case t.Kind() == reflect.Pointer && isObject(t.Elem()) && (!base.IsNil() || !over.IsNil()):
		nothing := reflect.New(t.Elem())
		if base.IsNil() {
			base = nothing
		}
		if over.IsNil() {
			over = nothing
		}
		out.Set(reflect.New(t.Elem()))
		out.Elem().Set(merge(base.Elem(), over.Elem()))
	case t.Kind() == reflect.Map && base.Len()+over.Len() > 0:
		out.Set(reflect.MakeMap(t))
		for _, v := range []reflect.Value{base, over} {
			for key, value := range v.Seq2() {
				out.SetMapIndex(key, value)
			}
		}
	case t.Kind() == reflect.Map:
	case over.IsZero():
		out.Set(base)
	default:
		out.Set(over)
	}
	return out
}

// otherKind says that a level has another kind of storage than those above it: one alone is set.
func otherKind(above, level reflect.Value) bool {
	a, b := above.Interface().(*v1alpha1.Storage), level.Interface().(*v1alpha1.Storage)
	return a != nil && b != nil && (a.Claims == nil && b.Claims != nil || a.Ephemeral == nil && b.Ephemeral != nil)
}

// isObject says that the fields of a type are inherited one by one. Those that name the source of a
// volume belong together.
func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[v1alpha1.NodeSettings]().PkgPath() &&
		t != reflect.TypeFor[v1alpha1.DataSource]()
}

func withoutNulls(in v1alpha1.Settings) v1alpha1.Settings {
	var out v1alpha1.Settings
	for key, value := range in {
		if value.IsNull() {
			continue
		}
		if out == nil {
			out = make(v1alpha1.Settings, len(in))
		}
		out[key] = value
	}
	return out
}

// Defaults of a node that says nothing about its resources. They are meant for a first try; a real
// one says what it needs.
var (
	defaultCassandraCPU    = resource.MustParse("1")
	defaultCassandraMemory = resource.MustParse("4Gi")
	defaultAgentCPU        = resource.MustParse("20m")
	defaultAgentMemory     = resource.MustParse("32Mi")
	defaultAgentLimit      = resource.MustParse("64Mi")
)

// cassandraResources are the resources with defaults. A memory limit is always there, since the
// heap is a part of it: without one it is the request.
func cassandraResources(given *v1alpha1.Resources) *v1alpha1.Resources {
	out := withDefaults(given, corev1.ResourceList{corev1.ResourceCPU: defaultCassandraCPU}, nil)
	request, hasRequest := out.Requests[corev1.ResourceMemory]
	limit, hasLimit := out.Limits[corev1.ResourceMemory]
	switch {
	case hasLimit && !hasRequest:
		out.Requests[corev1.ResourceMemory] = limit
	case hasRequest && !hasLimit:
		out.Limits[corev1.ResourceMemory] = request
	case !hasRequest && !hasLimit:
		out.Requests[corev1.ResourceMemory] = defaultCassandraMemory
		out.Limits[corev1.ResourceMemory] = defaultCassandraMemory
	}
	return out
}

func agentResources(given *v1alpha1.Resources) *v1alpha1.Resources {
	return withDefaults(given,
		corev1.ResourceList{corev1.ResourceCPU: defaultAgentCPU, corev1.ResourceMemory: defaultAgentMemory},
		corev1.ResourceList{corev1.ResourceMemory: defaultAgentLimit})
}

// withDefaults fills in defaults where nothing was said. A default request yields to a lower limit,
// and a default limit to a higher request.
func withDefaults(given *v1alpha1.Resources, requests, limits corev1.ResourceList) *v1alpha1.Resources {
	out := &v1alpha1.Resources{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	if given != nil {
		maps.Copy(out.Requests, given.Requests)
		maps.Copy(out.Limits, given.Limits)
	}
	for name, value := range requests {
		if _, said := out.Requests[name]; said {
			continue
		}
		if limit, ok := out.Limits[name]; ok && limit.Cmp(value) < 0 {
			value = limit
		}
		out.Requests[name] = value
	}
	for name, value := range limits {
		if _, said := out.Limits[name]; said {
			continue
		}
		if request, ok := out.Requests[name]; ok && request.Cmp(value) > 0 {
			value = request
		}
		out.Limits[name] = value
	}
	return out
}

func placement(given *v1alpha1.Placement) *v1alpha1.Placement {
	out := *cmp.Or(given, &v1alpha1.Placement{})
	out.HostAntiAffinity = cmp.Or(out.HostAntiAffinity, v1alpha1.HostAntiAffinityRequired)
	return &out
}
