package render

import (
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

// label is one label of an object. A list of them is looked for in a map without making another:
// that is done for every object of every node in each pass.
type label struct{ key, value string }

func (o Owner) labelList(component string) [6]label {
	return [6]label{
		{v1alpha1.LabelCluster, o.Name},
		{v1alpha1.LabelClusterUID, string(o.UID)},
		{v1alpha1.LabelComponent, component},
		{v1alpha1.LabelManagedBy, v1alpha1.ManagedBy},
		{v1alpha1.LabelName, "cassandra"},
		{v1alpha1.LabelInstance, o.Name},
	}
}

func mapOf(lists ...[]label) map[string]string {
	out := map[string]string{}
	for _, list := range lists {
		for _, l := range list {
			out[l.key] = l.value
		}
	}
	return out
}

func hasAll(have map[string]string, list []label) bool {
	for _, l := range list {
		if have[l.key] != l.value {
			return false
		}
	}
	return true
}

// labels that every object of the cluster has.
func (o Owner) labels(component string) map[string]string {
	list := o.labelList(component)
	return mapOf(list[:])
}

// apiVersion of our own kinds, worked out once.
var apiVersion = v1alpha1.GroupVersion.String()

// reference makes the cluster the controlling owner of an object.
func (o Owner) reference() []metav1.OwnerReference {
	return []metav1.OwnerReference{reference(apiVersion, "CassandraCluster", o.Name, o.UID)}
}

func (o Owner) meta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: o.labels(component),
		OwnerReferences: o.reference()}
}

func reference(version, kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: new(true),
		BlockOwnerDeletion: new(true)}
}

// nodeLabels are the labels of a node's record and pod.
func nodeLabels(o Owner, datacenter, rack, node string) map[string]string {
	ofCluster, ofNode := o.labelList(v1alpha1.ComponentCassandra), nodeLabelList(datacenter, rack, node)
	return mapOf(ofCluster[:], ofNode[:])
}

func nodeLabelList(datacenter, rack, node string) [3]label {
	return [3]label{{v1alpha1.LabelDatacenter, datacenter}, {v1alpha1.LabelRack, rack}, {v1alpha1.LabelNode, node}}
}

// NodeLabels are the labels of a node's record and pod that are ours.
func NodeLabels(owner Owner, record *v1alpha1.CassandraNode) map[string]string {
	return nodeLabels(owner, record.Spec.Datacenter, record.Spec.Rack, record.Name)
}

// HasNodeLabels says that NodeLabels are among the given ones.
func HasNodeLabels(have map[string]string, owner Owner, record *v1alpha1.CassandraNode) bool {
	ofCluster, ofNode := owner.labelList(v1alpha1.ComponentCassandra),
		nodeLabelList(record.Spec.Datacenter, record.Spec.Rack, record.Name)
	return hasAll(have, ofNode[:]) && hasAll(have, ofCluster[:])
}

// HasClaimLabels says that the labels of a node's claim for a volume are among the given ones.
func HasClaimLabels(have map[string]string, owner Owner, record *v1alpha1.CassandraNode, volume string) bool {
	return have[v1alpha1.LabelVolume] == volume && HasNodeLabels(have, owner, record)
}

// HasCertificateLabels says that the labels of a node's certificate are among the given ones.
func HasCertificateLabels(have map[string]string, owner Owner, use v1alpha1.CertificateUse,
	record *v1alpha1.CassandraNode) bool {
	ofCluster := owner.labelList(string(use))
	return have[v1alpha1.LabelNode] == record.Name && hasAll(have, ofCluster[:])
}

// BelongsTo says that the cluster is the one owner of an object.
func BelongsTo(have []metav1.OwnerReference, owner Owner) bool {
	yes := func(b *bool) bool { return b != nil && *b }
	if len(have) != 1 || !yes(have[0].Controller) || !yes(have[0].BlockOwnerDeletion) {
		return false
	}
	want := owner.reference()[0]
	want.Controller, want.BlockOwnerDeletion = have[0].Controller, have[0].BlockOwnerDeletion
	return have[0] == want
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
