package render

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"helenus.io/helenus/api/v1alpha1"
)

// MonitorKind is a kind of the operator of Prometheus, which Kubernetes may not have.
var MonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

// MonitorDefinition is the name of the definition of that kind.
const MonitorDefinition = "podmonitors.monitoring.coreos.com"

// PodMonitor has the operator of Prometheus scrape the pods of a cluster, with the labels that
// alerts and dashboards go by; nil for none.
func PodMonitor(cluster *v1alpha1.CassandraCluster) *unstructured.Unstructured {
	given, interval := MetricsOf(cluster).PodMonitor, v1alpha1.DefaultScrapeInterval
	if given == nil {
		given = &v1alpha1.PodMonitor{}
	}
	if given.Mode == v1alpha1.PodMonitorNone || cluster.DeletionTimestamp != nil {
		return nil
	}
	if given.Interval != nil {
		interval = fmt.Sprintf("%ds", given.Interval.Duration/time.Second)
	}
	owner := OwnerOf(cluster)
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: owner.meta(v1alpha1.PodMonitorName(owner.Name),
		v1alpha1.ComponentCassandra)}
	metadata.SetGroupVersionKind(MonitorKind)
	add(metadata, v1alpha1.Metadata{Labels: given.Labels})
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(metadata)
	if err != nil {
		panic(fmt.Sprintf("convert metadata: %v", err)) // only texts: cannot happen
	}
	pods := map[string]any{}
	for key, value := range podSelector(owner, "") {
		pods[key] = value
	}
	relabelings := []any{}
	for _, label := range []string{"cluster", "datacenter", "rack"} {
		relabelings = append(relabelings, map[string]any{"action": "replace", "targetLabel": label,
			"sourceLabels": []any{"__meta_kubernetes_pod_label_helenus_io_" + label}})
	}
	whole["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": pods},
		"podMetricsEndpoints": []any{map[string]any{"port": "metrics", "interval": interval,
			"relabelings": relabelings}},
	}
	return &unstructured.Unstructured{Object: whole}
}
