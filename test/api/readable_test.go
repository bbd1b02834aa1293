package api

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"helenus.io/helenus/api/v1alpha1"
)

// TestWhatIsStoredCanBeRead: an object that the Go types cannot read would keep the operator and
// every agent from reading any, so none may be stored. A number in these cases is what JSON has,
// which is more than what the types have.
func TestWhatIsStoredCanBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		kind, path string
		value      any
	}{
		"a number beyond 32 bits": {"CassandraCluster", "spec.node.placement",
			map[string]any{"topologySpreadConstraints": []any{map[string]any{"maxSkew": int64(1) << 40,
				"topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule"}}}},
		"a number beyond 64 bits": {"CassandraCluster", "spec.node.placement",
			map[string]any{"tolerations": []any{map[string]any{"tolerationSeconds": 1e30}}}},
		"a broken exponent": {"CassandraCluster", "spec.node.resources.limits.memory", "1e1.5"},
		"a time without a zone": {"CassandraNode", "spec.restart",
			map[string]any{"id": "r", "notAfter": "2026-11-20T12:00:00"}},
		"a time with a short zone": {"CassandraNode", "spec.restart",
			map[string]any{"id": "r", "notAfter": "2026-11-20T12:00:00+0100"}},
		"a time in lower case": {"CassandraNode", "spec.restart",
			map[string]any{"id": "r", "notAfter": "2026-11-20t12:00:00z"}},
		"a day that is none": {"CassandraNode", "spec.restart",
			map[string]any{"id": "r", "notAfter": "2026-02-31T12:00:00Z"}},
		"an hour that is none": {"CassandraNode", "spec.restart",
			map[string]any{"id": "r", "notAfter": "2026-02-20T24:00:00Z"}},
		"settings that are a text": {"CassandraCluster", "spec.node.cassandraYaml", "x: y"},
	} {
		t.Run(name, func(t *testing.T) {
			object := base(c.kind)
			must(t, put(object.Object, c.path, c.value))
			object.SetNamespace("default")
			_, err := dynamicClient(t, author(c.kind, false, object)).Resource(resourceOf(c.kind)).Namespace("default").
				Create(t.Context(), object, metav1.CreateOptions{DryRun: dry})
			causesOf(t, err)
			if readable(t, c.kind, object) {
				t.Error("the types can read it, so this case shows nothing")
			}
		})
	}
}

// readable says whether the product's types can read an object.
func readable(t *testing.T, kind string, object *unstructured.Unstructured) bool {
	t.Helper()
	raw, err := object.MarshalJSON()
	must(t, err)
	if kind == "CassandraNode" {
		return json.Unmarshal(raw, &v1alpha1.CassandraNode{}) == nil
	}
	return json.Unmarshal(raw, &v1alpha1.CassandraCluster{}) == nil
}
