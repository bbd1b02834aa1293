package api

import (
	"context"
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	loop "helenus.io/helenus/internal/operator"
)

var (
	definitionKind = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	monitors = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "podmonitors"}
)

// TestKindsOfOthers: an operator, with its own rights, uses kinds of others where Kubernetes has
// them.
func TestKindsOfOthers(t *testing.T) {
	in := namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- loop.Run(ctx, withToken(tokenOf(t, "helenus-system", "helenus", nil)), loop.Options{
			Install:    facts.Install{Version: "dev", AgentImage: "agent", ImageRepository: "cassandra"},
			Namespaces: []string{in}, MetricsAddress: "0", HealthAddress: "0", InspectAddress: "0", Log: logr.Discard()})
	}()
	t.Run("PodMonitor", func(t *testing.T) { podMonitors(t, in) })
	t.Run("Certificate", func(t *testing.T) { certificatesOfIssuer(t, in) })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the operator ended: %v", err)
	}
}

// podMonitors: the operator makes the PodMonitor of a cluster as soon as Kubernetes has the kind,
// restores it, follows the spec, leaves that of somebody else alone, removes it with mode None and
// with the cluster, and survives that the kind goes and comes again.
func podMonitors(t *testing.T, in string) {
	t.Helper()
	user := dynamicClient(t, server)
	all, of := user.Resource(clusters).Namespace(in), user.Resource(monitors).Namespace(in)
	made := func(name string) {
		cluster := base("CassandraCluster")
		cluster.SetName(name)
		_, err := all.Create(t.Context(), cluster, metav1.CreateOptions{})
		must(t, err)
	}
	change := func(metrics string) {
		_, err := all.Patch(t.Context(), "demo", types.MergePatchType, []byte(`{"spec":{"metrics":`+metrics+`}}`),
			metav1.PatchOptions{})
		must(t, err)
	}
	var seen *unstructured.Unstructured
	until := func(what string, ok func(*unstructured.Unstructured) bool) {
		t.Helper()
		must(t, eventually(t.Context(), what, func(context.Context) (bool, error) {
			o, err := of.Get(t.Context(), "demo", metav1.GetOptions{})
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				return ok(nil), nil
			}
			seen = o
			return err == nil && ok(o), err
		}))
	}
	there := func(o *unstructured.Unstructured) bool { return o != nil && o.GetDeletionTimestamp() == nil }
	absent := func(o *unstructured.Unstructured) bool { return o == nil }
	like := func(want *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			return there(o) && reflect.DeepEqual(o.Object["spec"], want.Object["spec"]) &&
				reflect.DeepEqual(o.GetLabels(), want.GetLabels())
		}
	}
	define := func() {
		objects, err := decode("testdata/podmonitors.yaml")
		must(t, err)
		_, err = user.Resource(definitionKind).Create(t.Context(), objects[0], metav1.CreateOptions{})
		must(t, err)
	}
	undefine := func() {
		must(t, user.Resource(definitionKind).Delete(t.Context(), render.MonitorDefinition, metav1.DeleteOptions{}))
		must(t, eventually(t.Context(), "the kind is gone", func(context.Context) (bool, error) {
			_, err := user.Resource(definitionKind).Get(t.Context(), render.MonitorDefinition, metav1.GetOptions{})
			return apierrors.IsNotFound(err), client404(err)
		}))
	}

	made("demo")
	define()
	until("it is made", there)
	if owner := metav1.GetControllerOf(seen); owner == nil || owner.Name != "demo" {
		t.Errorf("owner %+v", owner)
	}
	first := seen
	endpoint := first.Object["spec"].(map[string]any)["podMetricsEndpoints"].([]any)[0].(map[string]any)
	if endpoint["port"] != "metrics" || endpoint["interval"] != "30s" || len(endpoint["relabelings"].([]any)) != 3 {
		t.Errorf("endpoint %v", endpoint)
	}
	must(t, of.Delete(t.Context(), "demo", metav1.DeleteOptions{}))
	until("it is made again", func(o *unstructured.Unstructured) bool {
		return there(o) && o.GetUID() != first.GetUID()
	})
	_, err := of.Patch(t.Context(), "demo", types.MergePatchType, []byte(`{"spec":{"podMetricsEndpoints":[]}}`),
		metav1.PatchOptions{})
	must(t, err)
	until("it is repaired", like(first))

	change(`{"podMonitor":{"interval":"1m30s","labels":{"release":"prom"}}}`)
	until("the labels come", func(o *unstructured.Unstructured) bool { return o.GetLabels()["release"] == "prom" })
	until("the interval comes", func(o *unstructured.Unstructured) bool {
		return o.Object["spec"].(map[string]any)["podMetricsEndpoints"].([]any)[0].(map[string]any)["interval"] == "90s"
	})
	change(`null`)
	until("it is as at first", like(first))

	undefine()
	define()
	until("it comes with the kind", like(first))
	must(t, of.Delete(t.Context(), "demo", metav1.DeleteOptions{}))
	until("the new kind is watched", like(first))

	change(`{"podMonitor":{"mode":"None"}}`)
	until("it goes by mode None", absent)
	mine := first.DeepCopy()
	mine.SetUID("")
	mine.SetResourceVersion("")
	mine.SetLabels(map[string]string{"team": "data"})
	mine.SetOwnerReferences(nil)
	_, err = of.Create(t.Context(), mine, metav1.CreateOptions{})
	must(t, err)
	change(`null`)
	made("other") // passes are made one after the other: when it has one, the first has had its own
	must(t, eventually(t.Context(), "another cluster has one", func(context.Context) (bool, error) {
		_, err := of.Get(t.Context(), "other", metav1.GetOptions{})
		return err == nil, client404(err)
	}))
	until("that of somebody stays", like(mine))

	must(t, all.Delete(t.Context(), "other", metav1.DeleteOptions{}))
	must(t, eventually(t.Context(), "it goes with its cluster", func(context.Context) (bool, error) {
		_, err := of.Get(t.Context(), "other", metav1.GetOptions{})
		return apierrors.IsNotFound(err), client404(err)
	}))
	undefine()
}

// client404 is an error that is not about something that is not there.
func client404(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
