package render

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
)

// Wanted is one node as the user's spec describes it: merged, with defaults.
type Wanted struct {
	Name       string
	Datacenter string
	Rack       string
	Ordinal    int32
	// Leaves says that it is a member that the spec does not describe any more: until it has left
	// the ring it is as the other nodes of its rack.
	Leaves        bool
	Disruption    v1alpha1.NodeDisruption
	Metrics       v1alpha1.Metrics
	Configuration v1alpha1.NodeConfiguration
	Pod           v1alpha1.PodSettings
}

// WantedNodes are the nodes that a cluster's spec describes, in the order of the spec: by
// datacenter, rack and ordinal.
func WantedNodes(cluster *v1alpha1.CassandraCluster, install facts.Install) []Wanted {
	total := int32(0)
	for d := range cluster.Spec.Datacenters {
		dc := &cluster.Spec.Datacenters[d]
		for r := range dc.Racks {
			total += max(RackSize(dc, &dc.Racks[r]), 0)
		}
	}
	out := make([]Wanted, 0, total)
	for d := range cluster.Spec.Datacenters {
		dc := &cluster.Spec.Datacenters[d]
		for r := range dc.Racks {
			rack := &dc.Racks[r]
			template := inherit(cluster.Spec.Node, dc.Node, rack.Node)
			configuration := configurationOf(cluster, dc, rack, template.NodeSettings)
			pod := podSettingsOf(cluster, dc, template, install)
			for ordinal := range RackSize(dc, rack) {
				out = append(out, Wanted{
					Name:          v1alpha1.NodeName(cluster.Name, dc.Name, rack.Name, ordinal),
					Datacenter:    dc.Name,
					Rack:          rack.Name,
					Ordinal:       ordinal,
					Disruption:    DisruptionOf(cluster),
					Metrics:       MetricsOf(cluster),
					Configuration: configuration,
					Pod:           pod,
				})
			}
		}
	}
	return out
}

// DisruptionOf is what the agents of a cluster are to hold to when they take their nodes down.
func DisruptionOf(cluster *v1alpha1.CassandraCluster) v1alpha1.NodeDisruption {
	d := cluster.Spec.Disruption
	return v1alpha1.NodeDisruption{Consistency: d.Consistency, Unprotected: d.Unprotected}
}

// MetricsOf is which metrics the agents of a cluster give.
func MetricsOf(cluster *v1alpha1.CassandraCluster) v1alpha1.Metrics {
	return *cmp.Or(cluster.Spec.Metrics, &v1alpha1.Metrics{})
}

// RackSize is the number of nodes of a rack.
func RackSize(dc *v1alpha1.Datacenter, rack *v1alpha1.Rack) int32 {
	return *cmp.Or(rack.Nodes, new(max(dc.NodesPerRack, 1)))
}

// ClusterName is Cassandra's cluster_name.
func ClusterName(cluster *v1alpha1.CassandraCluster) string {
	return cmp.Or(cluster.Spec.ClusterName, cluster.Namespace+"."+cluster.Name)
}

// Image of Cassandra for a cluster.
func Image(cluster *v1alpha1.CassandraCluster, install facts.Install) string {
	return cmp.Or(cluster.Spec.Image, install.ImageRepository+":"+cluster.Spec.Version)
}

// DatacenterName is a datacenter's name inside Cassandra.
func DatacenterName(dc *v1alpha1.Datacenter) string { return cmp.Or(dc.DatacenterName, dc.Name) }

// RackName is a rack's name inside Cassandra.
func RackName(rack *v1alpha1.Rack) string { return cmp.Or(rack.RackName, rack.Name) }

func configurationOf(cluster *v1alpha1.CassandraCluster, dc *v1alpha1.Datacenter, rack *v1alpha1.Rack,
	s v1alpha1.NodeSettings) v1alpha1.NodeConfiguration {
	return v1alpha1.NodeConfiguration{
		Revision:       config.NewestRevision(),
		Version:        cluster.Spec.Version,
		ClusterName:    ClusterName(cluster),
		DatacenterName: DatacenterName(dc),
		RackName:       RackName(rack),
		NumTokens:      dc.NumTokens,
		CassandraYaml:  withoutNulls(s.CassandraYaml),
		JVM:            s.JVM,
		Environment:    s.Environment,
		RestartedAt:    Latest(cluster.Spec.RestartedAt, dc.RestartedAt, rack.RestartedAt),
	}
}

// Latest of some times, of which any may be unset.
func Latest(times ...*metav1.Time) *metav1.Time {
	var out *metav1.Time
	for _, t := range times {
		if t != nil && (out == nil || t.After(out.Time)) {
			out = t
		}
	}
	return out
}

func podSettingsOf(cluster *v1alpha1.CassandraCluster, dc *v1alpha1.Datacenter, t v1alpha1.NodeTemplate,
	install facts.Install) v1alpha1.PodSettings {
	settings := v1alpha1.PodSettings{
		Revision:         NewestPodRevision(),
		Image:            Image(cluster, install),
		ImageDefaulted:   cluster.Spec.Image == "",
		ImagePullPolicy:  cluster.Spec.ImagePullPolicy,
		ImagePullSecrets: cluster.Spec.ImagePullSecrets,
		Resources:        cassandraResources(t.Resources),
		AgentResources:   agentResources(t.AgentResources),
		Placement:        placement(t.Placement),
		Metadata:         t.Metadata,
		Probes:           t.Probes,
		ConfigFiles:      t.ConfigFiles,

		TerminationGracePeriodSeconds: t.TerminationGracePeriodSeconds,
	}
	if t.Storage != nil {
		settings.Storage = *t.Storage
	}
	for _, overlay := range []*runtime.RawExtension{overlayOf(cluster.Spec.Node), overlayOf(dc.Node)} {
		if overlay != nil {
			settings.Overlay = append(settings.Overlay, *overlay)
		}
	}
	return settings
}

func overlayOf(t *v1alpha1.NodeTemplate) *runtime.RawExtension {
	if t == nil || t.Overlay == nil || len(t.Overlay.Raw) == 0 {
		return nil
	}
	return t.Overlay
}
