package render

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
)

// inherit merges what cluster, datacenter and rack say about a node: maps by key, lists as a whole,
// everything else field by field, the lower level winning where it says something. Overlays are not
// merged: they are patches, applied one after the other.
func inherit(cluster, dc *v1alpha1.NodeTemplate, rack *v1alpha1.NodeSettings) v1alpha1.NodeTemplate {
	var out v1alpha1.NodeTemplate
	for _, level := range []*v1alpha1.NodeTemplate{cluster, dc} {
		if level != nil {
			out.NodeSettings = mergeSettings(out.NodeSettings, level.NodeSettings)
		}
	}
	if rack != nil {
		out.NodeSettings = mergeSettings(out.NodeSettings, *rack)
	}
	out.JVM, out.Metadata, out.Probes = unlessEmpty(out.JVM), unlessEmpty(out.Metadata), unlessEmpty(out.Probes)
	return out
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

func mergeSettings(base, over v1alpha1.NodeSettings) v1alpha1.NodeSettings {
	return v1alpha1.NodeSettings{
		Resources:      mergeResources(base.Resources, over.Resources),
		AgentResources: mergeResources(base.AgentResources, over.AgentResources),
		Storage:        mergeStorage(base.Storage, over.Storage),
		CassandraYaml:  mergeMap(base.CassandraYaml, over.CassandraYaml),
		JVM:            mergeJVM(base.JVM, over.JVM),
		Environment:    mergeList(base.Environment, over.Environment),
		Placement:      mergePlacement(base.Placement, over.Placement),
		Metadata:       mergeMetadata(base.Metadata, over.Metadata),
		Probes:         mergeProbes(base.Probes, over.Probes),
		ConfigFiles:    cmp.Or(over.ConfigFiles, base.ConfigFiles),

		TerminationGracePeriodSeconds: cmp.Or(over.TerminationGracePeriodSeconds, base.TerminationGracePeriodSeconds),
	}
}

func mergeMap[M ~map[K]V, K comparable, V any](base, over M) M {
	if len(base) == 0 && len(over) == 0 {
		return nil
	}
	out := make(M, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

func mergeList[T any](base, over []T) []T {
	if over != nil {
		return over
	}
	return base
}

func mergeResources(base, over *v1alpha1.Resources) *v1alpha1.Resources {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.Resources{
		Requests: mergeMap(base.Requests, over.Requests),
		Limits:   mergeMap(base.Limits, over.Limits),
	}
}

func mergeJVM(base, over *v1alpha1.JVM) *v1alpha1.JVM {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.JVM{
		Heap:      cmp.Or(over.Heap, base.Heap),
		Options:   mergeList(base.Options, over.Options),
		ClassPath: mergeList(base.ClassPath, over.ClassPath),
		GCLog:     cmp.Or(over.GCLog, base.GCLog),
	}
}

func mergePlacement(base, over *v1alpha1.Placement) *v1alpha1.Placement {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.Placement{
		Zone:                      cmp.Or(over.Zone, base.Zone),
		NodeSelector:              mergeMap(base.NodeSelector, over.NodeSelector),
		NodeAffinity:              cmp.Or(over.NodeAffinity, base.NodeAffinity),
		Tolerations:               mergeList(base.Tolerations, over.Tolerations),
		TopologySpreadConstraints: mergeList(base.TopologySpreadConstraints, over.TopologySpreadConstraints),
		HostAntiAffinity:          cmp.Or(over.HostAntiAffinity, base.HostAntiAffinity),
		PriorityClassName:         cmp.Or(over.PriorityClassName, base.PriorityClassName),
	}
}

func mergeMetadata(base, over *v1alpha1.Metadata) *v1alpha1.Metadata {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.Metadata{
		Labels:      mergeMap(base.Labels, over.Labels),
		Annotations: mergeMap(base.Annotations, over.Annotations),
	}
}

func mergeProbes(base, over *v1alpha1.Probes) *v1alpha1.Probes {
	if base == nil || over == nil {
		base, over = cmp.Or(over, base, &v1alpha1.Probes{}), &v1alpha1.Probes{}
	}
	return &v1alpha1.Probes{
		AgentStartup:  mergeProbe(base.AgentStartup, over.AgentStartup),
		AgentLiveness: mergeProbe(base.AgentLiveness, over.AgentLiveness),
		Readiness:     mergeProbe(base.Readiness, over.Readiness),
	}
}

func mergeProbe(base, over *v1alpha1.Probe) *v1alpha1.Probe {
	base, over = cmp.Or(base, &v1alpha1.Probe{}), cmp.Or(over, &v1alpha1.Probe{})
	return unlessEmpty(&v1alpha1.Probe{
		PeriodSeconds:    cmp.Or(over.PeriodSeconds, base.PeriodSeconds),
		TimeoutSeconds:   cmp.Or(over.TimeoutSeconds, base.TimeoutSeconds),
		FailureThreshold: cmp.Or(over.FailureThreshold, base.FailureThreshold),
	})
}

func mergeStorage(base, over *v1alpha1.Storage) *v1alpha1.Storage {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.Storage{Claims: mergeClaims(base.Claims, over.Claims)}
}

func mergeClaims(base, over *v1alpha1.StorageClaims) *v1alpha1.StorageClaims {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.StorageClaims{
		Data:       mergeVolume(base.Data, over.Data),
		Commitlog:  mergeVolume(base.Commitlog, over.Commitlog),
		Additional: mergeList(base.Additional, over.Additional),
	}
}

func mergeVolume(base, over *v1alpha1.VolumeClaim) *v1alpha1.VolumeClaim {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	return &v1alpha1.VolumeClaim{
		Size:             cmp.Or(over.Size, base.Size),
		StorageClassName: cmp.Or(over.StorageClassName, base.StorageClassName),
		AccessModes:      mergeList(base.AccessModes, over.AccessModes),
		Selector:         cmp.Or(over.Selector, base.Selector),
		DataSource:       cmp.Or(over.DataSource, base.DataSource),
	}
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
	out := v1alpha1.Placement{}
	if given != nil {
		out = *given
	}
	if out.HostAntiAffinity == "" {
		out.HostAntiAffinity = v1alpha1.HostAntiAffinityRequired
	}
	return &out
}
