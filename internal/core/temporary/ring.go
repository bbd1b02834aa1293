package temporary

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

// Ring is one that is made beside a cluster, of its release: it has no clients and no repairs, and
// its volumes go with it. Who makes it says what its nodes are.
func Ring(beside *v1alpha1.CassandraCluster, made metav1.ObjectMeta, from v1alpha1.Restore,
	node *v1alpha1.NodeTemplate, datacenters []v1alpha1.Datacenter) *v1alpha1.CassandraCluster {
	of := &beside.Spec
	return &v1alpha1.CassandraCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CassandraCluster"},
		ObjectMeta: made,
		Spec: v1alpha1.CassandraClusterSpec{
			Version: of.Version, Image: of.Image, ImagePullPolicy: of.ImagePullPolicy,
			ImagePullSecrets: slices.Clone(of.ImagePullSecrets),
			Bootstrap:        &v1alpha1.Bootstrap{Restore: &from},
			Security: &v1alpha1.Security{NetworkPolicy: &v1alpha1.NetworkPolicy{
				Mode: v1alpha1.NetworkPolicyManaged, Clients: []v1alpha1.NetworkPeer{}}},
			Node: node, ServiceAccount: of.ServiceAccount.DeepCopy(), Datacenters: datacenters,
			Repair:  v1alpha1.RepairPolicy{Mode: v1alpha1.RepairOff},
			Volumes: v1alpha1.VolumePolicy{OnClusterDeletion: v1alpha1.ClaimDelete},
		},
	}
}

// Owner is the reference of an object to the one for which the operator makes it.
func Owner(kind string, of metav1.Object) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: of.GetName(),
		UID: of.GetUID(), Controller: &yes}}
}

// Serves says that a ring does, as its spec is now.
func Serves(ring *v1alpha1.CassandraCluster) bool {
	c := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == ring.Generation
}

// Stalled is why a ring will not serve by itself; empty if it may.
func Stalled(ring *v1alpha1.CassandraCluster) string {
	if c := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionStalled); c != nil {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

// Says is what a ring waits for.
func Says(ring *v1alpha1.CassandraCluster) string {
	if c := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionReconciling); c != nil {
		return c.Message
	}
	return "the operator has not said why"
}

// Delete an object that was made for a while.
func Delete(o plan.Object, why string) plan.Write {
	return plan.Write{Verb: plan.Delete, Object: plan.Named(o), UID: o.GetUID(), Why: why}
}
