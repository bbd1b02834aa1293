package observe

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/internal/core/facts"
)

func TestTheHostsOfACluster(t *testing.T) {
	host := func(name, zone string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
	}
	volume := func(key, value string) *facts.Claim {
		return &facts.Claim{Volume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key,
				Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}},
		}}}}}
	}
	on := func(name string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{NodeName: name}} }
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reader{Cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(host("m1", "a"), host("m2", "a"),
		host("m3", "b"), host("m4", "c")).Build()}
	for name, c := range map[string]struct {
		nodes map[string]*facts.Node
		want  []string
	}{
		"of its pods": {map[string]*facts.Node{"x": {Pod: on("m1")}, "y": {Pod: on("m1")},
			"z": {Pod: on("m4")}}, []string{"m1", "m4"}},
		"of a pod whose host is gone": {map[string]*facts.Node{"x": {Pod: on("m9")}}, nil},
		"of a disk whose node has no pod": {
			map[string]*facts.Node{"x": {Claims: map[string]*facts.Claim{"data": volume(corev1.LabelHostname, "m3")}}},
			[]string{"m3"},
		},
		"of a disk whose pod has no place": {map[string]*facts.Node{"x": {Pod: on(""),
			Claims: map[string]*facts.Claim{"data": volume(corev1.LabelTopologyZone, "a")}}}, []string{"m1", "m2"}},
		"of a disk whose pod has a place": {map[string]*facts.Node{"x": {Pod: on("m1"),
			Claims: map[string]*facts.Claim{"data": volume(corev1.LabelTopologyZone, "a")}}}, []string{"m1"}},
		"of a disk that can be used anywhere": {
			map[string]*facts.Node{
				"x": {Claims: map[string]*facts.Claim{"data": {Volume: &corev1.PersistentVolume{}}}},
			}, nil,
		},
		"of a claim without a disk": {
			map[string]*facts.Node{"x": {Claims: map[string]*facts.Claim{"data": {}}}}, nil,
		},
		"of a disk in a host that is gone": {
			map[string]*facts.Node{"x": {Claims: map[string]*facts.Claim{"data": volume(corev1.LabelHostname, "m9")}}},
			nil,
		},
		"of two disks of a node without a place": {
			map[string]*facts.Node{"x": {Claims: map[string]*facts.Claim{"data": volume(corev1.LabelHostname, "m1"),
				"log": volume(corev1.LabelHostname, "m4")}}}, []string{"m1", "m4"},
		},
	} {
		s := &facts.Snapshot{Nodes: c.nodes}
		if err := r.hosts(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(s.Hosts)); !slices.Equal(got, c.want) {
			t.Errorf("hosts %s: %v, want %v", name, got, c.want)
		}
	}
}
