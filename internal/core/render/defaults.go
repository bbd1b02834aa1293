package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
)

// mostDefaults is how large the defaults of a namespace may be: they become a part of the ledger.
const mostDefaults = 64 << 10

// ParseDefaults reads the defaults of a namespace: each key is a field of node, without the
// overlay. The error names the key that is wrong.
func ParseDefaults(data map[string]string) (*v1alpha1.NodeSettings, error) {
	out, size := v1alpha1.NodeSettings{}, 0
	for _, key := range slices.Sorted(maps.Keys(data)) {
		var field any
		var one v1alpha1.NodeSettings
		value, err := yaml.YAMLToJSONStrict([]byte(data[key]))
		if err == nil {
			err = json.Unmarshal(value, &field)
		}
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{key: field}, &one,
				true)
		}
		if size += len(data[key]); err == nil && size > mostDefaults {
			err = fmt.Errorf("all keys together have more than %d bytes", mostDefaults)
		}
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		out = merge(reflect.ValueOf(out), reflect.ValueOf(one)).Interface().(v1alpha1.NodeSettings)
	}
	return &out, nil
}

// WithDefaults is a cluster whose nodes are as some defaults say where its spec says nothing.
func WithDefaults(cluster *v1alpha1.CassandraCluster, defaults *v1alpha1.NodeSettings) *v1alpha1.CassandraCluster {
	out := cluster.DeepCopy()
	if out.Spec.Node == nil {
		out.Spec.Node = &v1alpha1.NodeTemplate{}
	}
	out.Spec.Node.NodeSettings = merge(reflect.ValueOf(*defaults.DeepCopy()),
		reflect.ValueOf(out.Spec.Node.NodeSettings)).Interface().(v1alpha1.NodeSettings)
	return out
}
