package leftovers

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
)

func metaOf(name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: "orders", v1alpha1.LabelClusterUID: uid,
	}}
}

// What a cluster that is gone has left goes, and nothing else: not what belongs to the one that is
// there, no claim, and nothing at all while a pod of it runs.
func TestClear(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	held := metaOf("orders-dc1-r1-0", "before")
	held.Finalizers = []string{v1alpha1.FinalizerNode}
	untold := metaOf("untold", "")
	stranger := metaOf("stranger", "before")
	delete(stranger.Labels, v1alpha1.LabelManagedBy)
	pod := &corev1.Pod{ObjectMeta: metaOf("orders-dc1-r1-0", "before")}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(pod).WithObjects(
		&v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "now"}},
		&v1alpha1.CassandraNode{ObjectMeta: held}, pod,
		&corev1.ConfigMap{ObjectMeta: metaOf("orders-ledger", "before")},
		&corev1.Secret{ObjectMeta: metaOf("orders-agent-ca", "before")},
		&corev1.Secret{ObjectMeta: metaOf("orders-roles", "before")},
		&corev1.PersistentVolumeClaim{ObjectMeta: metaOf("data-orders-dc1-r1-0", "before")},
		&corev1.ConfigMap{ObjectMeta: metaOf("orders-seeds", "now")},
		&corev1.ConfigMap{ObjectMeta: untold}, &corev1.ConfigMap{ObjectMeta: stranger},
	).Build()
	names := func() []string {
		out := map[string]bool{}
		for _, list := range []client.ObjectList{&v1alpha1.CassandraNodeList{}, &corev1.PodList{},
			&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.PersistentVolumeClaimList{}} {
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			items, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
			if err != nil {
				t.Fatal(err)
			}
			all, _ := items["items"].([]any)
			for _, item := range all {
				out[item.(map[string]any)["metadata"].(map[string]any)["name"].(string)] = true
			}
		}
		return slices.Sorted(maps.Keys(out))
	}
	try := func(yes bool) (string, error) {
		var said bytes.Buffer
		err := Clear(t.Context(), c, "shop", "orders", yes, &said)
		return said.String(), err
	}
	before := names()
	unchanged := func(when string) {
		t.Helper()
		if now := names(); !slices.Equal(now, before) {
			t.Errorf("%s: %v is there, want %v", when, now, before)
		}
	}

	if _, err := try(true); err == nil ||
		!strings.Contains(err.Error(), "kubectl delete pod --namespace shop orders-dc1-r1-0") {
		t.Errorf("while a pod runs: %v", err)
	}
	unchanged("while a pod runs")
	pod.Status.Phase = corev1.PodSucceeded
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	said, err := try(false)
	for _, words := range []string{"of the uid before", "CassandraNode orders-dc1-r1-0 (held by the finalizer",
		"ConfigMap orders-ledger", "Secret orders-agent-ca", "claims stay", "data-orders-dc1-r1-0", "--yes",
		"passwords of those disks stay, too: orders-roles"} {
		if !strings.Contains(said, words) {
			t.Errorf("%q does not say %s", said, words)
		}
	}
	if err != nil {
		t.Error(err)
	}
	unchanged("without --yes")
	if said, err := try(true); err != nil || !strings.Contains(said, "Removed 4 objects") {
		t.Errorf("%v: %s", err, said)
	}
	before = []string{"data-orders-dc1-r1-0", "orders-roles", "orders-seeds", "stranger", "untold"}
	unchanged("with --yes")
	if said, err := try(true); err != nil || !strings.Contains(said, "no cluster that is gone has left") {
		t.Errorf("a second time: %v: %s", err, said)
	}
}
