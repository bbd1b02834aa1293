package render

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// What the defaults of a namespace say lies under the cluster's own; a null takes a setting away.
func TestDefaultsLieUnderTheCluster(t *testing.T) {
	defaults, err := ParseDefaults(map[string]string{
		"storage":       "claims:\n  data: {size: 500Gi, storageClassName: fast}\n",
		"cassandraYaml": "{concurrent_reads: 32, concurrent_writes: 64}",
		"jvm":           `{"options": ["-Xss1m"]}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.CassandraCluster{}
	cluster.Spec.Datacenters = []v1alpha1.Datacenter{{Name: "dc1", Racks: []v1alpha1.Rack{{Name: "r1"}}}}
	wanted := func() Wanted {
		return WantedNodes(WithDefaults(cluster, defaults), facts.Install{ImageRepository: "cassandra"})[0]
	}
	if w := wanted(); w.Pod.Storage.Claims.Data.Size.String() != "500Gi" || len(w.Configuration.CassandraYaml) != 2 {
		t.Errorf("without a word of the spec: %+v", w)
	}
	if cluster.Spec.Node != nil {
		t.Error("the user's object was changed")
	}
	cluster.Spec.Node = &v1alpha1.NodeTemplate{NodeSettings: v1alpha1.NodeSettings{
		CassandraYaml: v1alpha1.Settings{"concurrent_reads": {Raw: []byte("8")}, "concurrent_writes": {Raw: []byte("null")}},
		JVM:           &v1alpha1.JVM{Heap: new(resource.MustParse("1Gi"))},
	}}
	w := wanted()
	if yaml := w.Configuration.CassandraYaml; len(yaml) != 1 || string(yaml["concurrent_reads"].Raw) != "8" {
		t.Errorf("cassandra.yaml %v", yaml)
	}
	if jvm := w.Configuration.JVM; jvm.Heap.String() != "1Gi" || len(jvm.Options) != 1 {
		t.Errorf("JVM %+v", jvm)
	}
	if class := w.Pod.Storage.Claims.Data.StorageClassName; class == nil || *class != "fast" {
		t.Errorf("storage %+v", w.Pod.Storage)
	}
}

func TestBadDefaultsNameTheKey(t *testing.T) {
	for want, data := range map[string]map[string]string{
		`key "jvm": `:     {"jvm": "{hepa: 1Gi}", "resources": "{}"},
		`key "Storage": `: {"Storage": "{}"},
		`key "overlay": `: {"overlay": "{spec: {}}"},
		`key "storage": `: {"storage": "claims: {data: {size: much}}"},
		`key "probes": `:  {"probes": "a: [1"},
		`key "configFiles": all keys together have more than 65536 bytes`: {
			"configFiles": "#" + strings.Repeat("x", 70000)},
	} {
		if got, err := ParseDefaults(data); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v, %v, want %s", got, err, want)
		}
	}
}
