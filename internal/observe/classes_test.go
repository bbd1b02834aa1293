package observe

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// Classes are read only for claims that are to grow, wherever the spec says so, and also of a spec
// that says nothing for the whole cluster.
func TestClassesOfClaimsThatAreToGrow(t *testing.T) {
	yes := true
	class := func(name string, grows *bool) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: grows}
	}
	storage := func(size string) v1alpha1.NodeSettings {
		amount := resource.MustParse(size)
		return v1alpha1.NodeSettings{Storage: &v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{
			Data: &v1alpha1.VolumeClaim{Size: &amount}}}}
	}
	for name, c := range map[string]struct {
		class string
		spec  v1alpha1.CassandraClusterSpec
		want  map[string]bool
	}{
		"nothing is said": {"grows", v1alpha1.CassandraClusterSpec{}, map[string]bool{}},
		"the same": {"grows", v1alpha1.CassandraClusterSpec{
			Node: &v1alpha1.NodeTemplate{NodeSettings: storage("1Gi")}}, map[string]bool{}},
		"more for the cluster": {"grows", v1alpha1.CassandraClusterSpec{
			Node: &v1alpha1.NodeTemplate{NodeSettings: storage("2Gi")}}, map[string]bool{"grows": true}},
		"more for a datacenter, and the class says nothing": {"stays", v1alpha1.CassandraClusterSpec{
			Datacenters: []v1alpha1.Datacenter{{Node: &v1alpha1.NodeTemplate{NodeSettings: storage("2Gi")}}}},
			map[string]bool{"stays": false}},
		"more for a rack, and the class is gone": {"gone", v1alpha1.CassandraClusterSpec{
			Datacenters: []v1alpha1.Datacenter{{Racks: []v1alpha1.Rack{{Node: new(storage("2Gi"))}}}}},
			map[string]bool{"gone": false}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Spec.StorageClassName = &c.class
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{Spec: c.spec},
				Nodes: map[string]*facts.Node{"a": {Claims: map[string]*facts.Claim{"data": {Claim: claim}}}}}
			r := reader(t, class("grows", &yes), class("stays", nil))
			if err := r.classes(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(s.Expandable, c.want) {
				t.Errorf("classes %v, want %v", s.Expandable, c.want)
			}
		})
	}
}
