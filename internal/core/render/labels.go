package render

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// Owner is the cluster as far as its objects need to know it.
type Owner struct {
	Name      string
	Namespace string
	UID       types.UID
}

// OwnerOf is the owner for the objects of a cluster.
func OwnerOf(cluster *v1alpha1.CassandraCluster) Owner {
	return Owner{Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID}
}

// labels that every object of the cluster has.
func (o Owner) labels(component string) map[string]string {
	return map[string]string{
		v1alpha1.LabelCluster:    o.Name,
		v1alpha1.LabelClusterUID: string(o.UID),
		v1alpha1.LabelComponent:  component,
		v1alpha1.LabelManagedBy:  v1alpha1.ManagedBy,
		v1alpha1.LabelName:       "cassandra",
		v1alpha1.LabelInstance:   o.Name,
	}
}

// reference makes the cluster the controlling owner of an object.
func (o Owner) reference() []metav1.OwnerReference {
	return []metav1.OwnerReference{reference(v1alpha1.GroupVersion.String(), "CassandraCluster", o.Name, o.UID)}
}

func (o Owner) meta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: o.labels(component), OwnerReferences: o.reference()}
}

func reference(apiVersion, kind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}
}

// nodeLabels are the labels of a node's record and pod.
func nodeLabels(o Owner, datacenter, rack, node string) map[string]string {
	out := o.labels(v1alpha1.ComponentCassandra)
	maps.Copy(out, map[string]string{
		v1alpha1.LabelDatacenter: datacenter,
		v1alpha1.LabelRack:       rack,
		v1alpha1.LabelNode:       node,
	})
	return out
}

// NodeLabels are the labels of a node's record and pod that are ours.
func NodeLabels(owner Owner, record *v1alpha1.CassandraNode) map[string]string {
	return nodeLabels(owner, record.Spec.Datacenter, record.Spec.Rack, record.Name)
}

// podSelector selects the pods of a cluster, or of one datacenter of it.
func podSelector(o Owner, datacenter string) map[string]string {
	out := map[string]string{
		v1alpha1.LabelClusterUID: string(o.UID),
		v1alpha1.LabelComponent:  v1alpha1.ComponentCassandra,
	}
	if datacenter != "" {
		out[v1alpha1.LabelDatacenter] = datacenter
	}
	return out
}
