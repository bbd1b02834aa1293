package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
)

// TestSamples: every sample is accepted, to the last field, and loses none when the product's own
// types have read it.
func TestSamples(t *testing.T) {
	paths, err := filepath.Glob("../../config/samples/*.yaml")
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("there are no samples")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			objects, err := decode(path)
			must(t, err)
			for _, object := range objects {
				resource := dynamicClient(t, server).Resource(resourceOf(object.GetKind())).Namespace("default")
				stored, err := resource.Create(t.Context(), object,
					metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
				must(t, err)
				var typed any = &v1alpha1.CassandraCluster{}
				switch object.GetKind() {
				case "CassandraTask":
					typed = &v1alpha1.CassandraTask{}
				case "CassandraTaskSchedule":
					typed = &v1alpha1.CassandraTaskSchedule{}
				case "CassandraBackupSchedule":
					typed = &v1alpha1.CassandraBackupSchedule{}
				case "CassandraBackup":
					typed = &v1alpha1.CassandraBackup{}
				case "CassandraRestore":
					typed = &v1alpha1.CassandraRestore{}
				case "CassandraBackupStore":
					typed = &v1alpha1.CassandraBackupStore{}
				}
				must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored.Object, typed,
					true))
				back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
				must(t, err)
				// Values may be written in another way: 10m becomes 10m0s.
				if got, want := leaves("", back["spec"]), leaves("", stored.Object["spec"]); !slices.Equal(got, want) {
					t.Errorf("the types make it\n  %q\nand it is\n  %q", got, want)
				}
			}
		})
	}
}

// leaves are the paths of all values in an object, sorted.
func leaves(path string, at any) []string {
	var all []string
	switch at := at.(type) {
	case map[string]any:
		for name, below := range at {
			all = append(all, leaves(path+"."+name, below)...)
		}
	case []any:
		for i, below := range at {
			all = append(all, leaves(fmt.Sprintf("%s[%d]", path, i), below)...)
		}
	default:
		all = []string{path}
	}
	slices.Sort(all)
	return all
}

// TestNetworkPolicies: what is shipped is understood by the API server.
func TestNetworkPolicies(t *testing.T) {
	paths, err := filepath.Glob("../../config/network-policy/*.yaml")
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("there are no network policies")
	}
	for _, path := range paths {
		objects, err := decode(path)
		must(t, err)
		for _, object := range objects {
			if object.GetNamespace() == "" {
				object.SetNamespace("default")
			}
			resource := object.GroupVersionKind().GroupVersion().WithResource("networkpolicies")
			_, err := dynamicClient(t, server).Resource(resource).Namespace(object.GetNamespace()).Apply(t.Context(),
				object.GetName(), object,
				metav1.ApplyOptions{FieldManager: "test", DryRun: dry})
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// TestPortsOfNetworkPolicy: every port of a Cassandra pod that others reach, and no other, is let
// through.
func TestPortsOfNetworkPolicy(t *testing.T) {
	objects, err := decode("../../config/network-policy/cassandra.yaml")
	must(t, err)
	var policy networkingv1.NetworkPolicy
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, &policy))
	open := map[int]bool{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.IntValue()] = true
		}
	}
	got := slices.Sorted(maps.Keys(open))
	want := []int{layout.NativePort, layout.StoragePort, layout.TLSStoragePort, layout.FactsPort, layout.MetricsPort}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("ports %d, want %d", got, want)
	}
}

// TestTheOperatorIsLetIn: the network policy of a ring knows the operator by the labels that its
// pod is installed with.
func TestTheOperatorIsLetIn(t *testing.T) {
	objects, err := decode(manifest)
	must(t, err)
	policy := render.NetworkPolicy(&v1alpha1.CassandraCluster{}, facts.Install{Namespace: "helenus-system"})
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		have, _, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
		must(t, err)
		for _, rule := range policy.Spec.Ingress {
			if rule.Ports[0].Port.IntVal != layout.FactsPort {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(rule.From[0].PodSelector)
			must(t, err)
			if selector.Matches(labels.Set(have)) && object.GetNamespace() == "helenus-system" {
				return
			}
		}
	}
	t.Error("the operator's pod is not let in to the agents")
}

// TestDefaults: what the schema fills in is visible in the object, and nothing is filled in below
// node, where it would hide what is inherited.
func TestDefaults(t *testing.T) {
	stored, err := dynamicClient(t, server).Resource(clusters).Namespace("default").
		Create(t.Context(), base("CassandraCluster"), metav1.CreateOptions{DryRun: dry})
	must(t, err)
	spec, _, _ := unstructured.NestedMap(stored.Object, "spec")
	want := map[string]any{}
	must(t, yaml.Unmarshal([]byte(`
version: 5.0.6
node: {storage: {claims: {data: {size: 1Gi}}}}
datacenters:
- {name: dc1, nodesPerRack: 1, numTokens: 16, plannedReplicationFactor: 3, racks: [{name: r1}, {name: r2}]}
- {name: dc2, nodesPerRack: 1, numTokens: 16, plannedReplicationFactor: 3, racks: [{name: r1}]}
disruption: {consistency: LocalQuorum, maxUnavailable: 1, soak: 30s, unprotected: Proceed}
automation: {cleanup: Automatic, upgradeSSTables: Automatic}
replacement: {mode: Automatic, after: 15m, repair: Before}
repair: {target: 80%, intensity: 50%}
volumes: {onClusterDeletion: Retain, onScaleIn: Retain}
`), &want))
	got, err := json.Marshal(spec)
	must(t, err)
	if wanted, err := json.Marshal(want); err != nil || string(got) != string(wanted) {
		t.Errorf("spec\n  %s\nwant\n  %s", got, wanted)
	}
	task, err := dynamicClient(t, server).Resource(tasks).Namespace("default").
		Create(t.Context(), base("CassandraTask"), metav1.CreateOptions{DryRun: dry})
	must(t, err)
	spec, _, _ = unstructured.NestedMap(task.Object, "spec")
	if want := map[string]any{"cluster": map[string]any{"name": "demo"}, "type": "Flush", "concurrency": int64(1),
		"maxAttempts": int64(3), "deadline": "24h"}; !reflect.DeepEqual(spec, want) {
		t.Errorf("spec of a task\n  %v\nwant\n  %v", spec, want)
	}
	schedule, err := dynamicClient(t, server).Resource(schedules).Namespace("default").
		Create(t.Context(), base("CassandraTaskSchedule"), metav1.CreateOptions{DryRun: dry})
	must(t, err)
	spec, _, _ = unstructured.NestedMap(schedule.Object, "spec")
	if want := map[string]any{"cluster": map[string]any{"name": "demo"}, "schedule": "30 2 * * *", "timeZone": "UTC",
		"missed": "RunOnce", "keepSucceeded": int64(3), "keepFailed": int64(3), "template": map[string]any{
			"type": "Flush", "concurrency": int64(1), "maxAttempts": int64(3), "deadline": "24h"}}; !reflect.DeepEqual(spec, want) {
		t.Errorf("spec of a schedule\n  %v\nwant\n  %v", spec, want)
	}
	schedule, err = dynamicClient(t, server).Resource(backupSchedules).Namespace("default").
		Create(t.Context(), base("CassandraBackupSchedule"), metav1.CreateOptions{DryRun: dry})
	must(t, err)
	spec, _, _ = unstructured.NestedMap(schedule.Object, "spec")
	if want := map[string]any{"cluster": map[string]any{"name": "demo"}, "store": map[string]any{"name": "main"},
		"schedule": "0 3 * * *", "timeZone": "UTC", "missed": "RunOnce", "keep": map[string]any{"last": int64(7)},
		"deletionPolicy": "Delete", "template": map[string]any{"deadline": "24h"}}; !reflect.DeepEqual(spec, want) {
		t.Errorf("spec of a schedule of backups\n  %v\nwant\n  %v", spec, want)
	}
}

// TestNullSettings: a null in cassandraYaml takes an inherited setting away, so it must reach the
// operator however the user writes it. A merge patch, which kubectl apply without --server-side
// makes of a change, cannot say it: there null means that the key is not in the object.
func TestNullSettings(t *testing.T) {
	object := base("CassandraCluster")
	object.SetNamespace(namespace(t))
	client := dynamicClient(t, server).Resource(clusters).Namespace(object.GetNamespace())
	setting := func(t *testing.T, object *unstructured.Unstructured) (value any, set bool) {
		t.Helper()
		value, set, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "node", "cassandraYaml",
			"concurrent_reads")
		must(t, err)
		return value, set
	}
	wantNull := func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		if value, set := setting(t, object); !set || value != nil {
			t.Errorf("concurrent_reads is %v, set %t; want null", value, set)
		}
		var typed v1alpha1.CassandraCluster
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed))
		if value, set := typed.Spec.Node.CassandraYaml["concurrent_reads"]; !set || !value.IsNull() {
			t.Errorf("the types make it %q, set %t; want null", value.Raw, set)
		}
	}
	fields, _, err := unstructured.NestedMap(object.Object, "spec", "node")
	must(t, err)
	fields["cassandraYaml"] = map[string]any{"concurrent_reads": nil}
	must(t, unstructured.SetNestedMap(object.Object, fields, "spec", "node"))

	created, err := client.Create(t.Context(), object.DeepCopy(), metav1.CreateOptions{})
	must(t, err)
	wantNull(t, created)

	created.SetManagedFields(nil)
	applied, err := client.Apply(t.Context(), object.GetName(), object.DeepCopy(),
		metav1.ApplyOptions{FieldManager: "user", Force: true})
	must(t, err)
	wantNull(t, applied)

	patched, err := client.Patch(t.Context(), object.GetName(), types.MergePatchType,
		[]byte(`{"spec":{"node":{"cassandraYaml":{"concurrent_reads":null}}}}`), metav1.PatchOptions{})
	must(t, err)
	if value, set := setting(t, patched); set {
		t.Errorf("a merge patch left concurrent_reads at %v; this test describes that it takes it away", value)
	}
}

// TestDiscovery: short names, the category and the status subresource.
func TestDiscovery(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(server)
	must(t, err)
	list, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	must(t, err)
	found := map[string]metav1.APIResource{}
	for _, resource := range list.APIResources {
		found[resource.Name] = resource
	}
	for resource, short := range map[string]string{"cassandraclusters": "cass",
		"cassandranodes": "cassnode"} {
		if got := found[resource]; !reflect.DeepEqual(got.ShortNames, []string{short}) ||
			!reflect.DeepEqual(got.Categories, []string{"helenus"}) || !got.Namespaced {
			t.Errorf("%s: short names %q, categories %q, namespaced %t", resource, got.ShortNames, got.Categories,
				got.Namespaced)
		}
		if _, ok := found[resource+"/status"]; !ok {
			t.Errorf("%s has no status subresource", resource)
		}
	}
}

// TestColumns: what kubectl get prints.
func TestColumns(t *testing.T) {
	for resource, want := range map[string][]string{
		"cassandraclusters": {"Name", "Version", "Nodes", "Ready", "Healthy", "Up-to-date", "Step",
			"Stalled", "Age"},
		"cassandranodes": {"Name", "Phase", "Ready", "Traffic", "Version", "Address", "Restarts",
			"Host ID", "Disk", "Message", "Age"},
	} {
		config := rest.CopyConfig(server)
		config.GroupVersion = &v1alpha1.GroupVersion
		config.APIPath = "/apis"
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		client, err := rest.RESTClientFor(config)
		must(t, err)
		raw, err := client.Get().Resource(resource).SetHeader("Accept",
			"application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
		must(t, err)
		var table metav1.Table
		must(t, json.Unmarshal(raw, &table))
		var got []string
		for _, column := range table.ColumnDefinitions {
			got = append(got, column.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: columns %q, want %q", resource, got, want)
		}
	}
}
