package api

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cli/leftovers"
)

// TestLeftovers: the record of a cluster whose finalizer was taken away hangs, and an administrator
// clears it, in spite of the policies and with the controllers of Kubernetes there.
func TestLeftovers(t *testing.T) {
	space := namespace(t)
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	c, err := ctrlclient.New(server, ctrlclient.Options{Scheme: scheme})
	must(t, err)
	cluster := base("CassandraCluster")
	cluster.SetFinalizers([]string{v1alpha1.FinalizerCluster})
	cluster, err = dynamicClient(t, server).Resource(clusters).Namespace(space).Create(t.Context(), cluster,
		metav1.CreateOptions{})
	must(t, err)
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: "demo",
		v1alpha1.LabelClusterUID: string(cluster.GetUID())}
	record := base("CassandraNode")
	record.SetLabels(labels)
	record.SetFinalizers([]string{v1alpha1.FinalizerNode})
	record.SetOwnerReferences(ownedBy(cluster.GetUID()))
	_, err = dynamicClient(t, as(operatorUser, nil, masters)).Resource(nodes).Namespace(space).Create(t.Context(),
		record, metav1.CreateOptions{})
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space,
		Name: v1alpha1.LedgerName("demo"), Labels: labels}}))

	said := func(yes bool) string {
		t.Helper()
		var out bytes.Buffer
		must(t, leftovers.Clear(t.Context(), c, space, "demo", yes, &out))
		return out.String()
	}
	if all := said(true); !strings.HasPrefix(all, "no cluster that is gone") {
		t.Errorf("while the cluster is there: %s", all)
	}
	must(t, dynamicClient(t, server).Resource(clusters).Namespace(space).Delete(t.Context(), "demo",
		metav1.DeleteOptions{}))
	if all := said(true); !strings.HasPrefix(all, "no cluster that is gone") {
		t.Errorf("while the cluster is being deleted: %s", all)
	}
	_, err = dynamicClient(t, server).Resource(clusters).Namespace(space).Patch(t.Context(), "demo",
		types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	must(t, eventually(t.Context(), "the record hangs", func(ctx context.Context) (bool, error) {
		n, err := dynamicClient(t, server).Resource(nodes).Namespace(space).Get(ctx, nodeName(0), metav1.GetOptions{})
		return err == nil && n.GetDeletionTimestamp() != nil, err
	}))
	if all := said(false); !strings.Contains(all, "CassandraNode "+nodeName(0)+" (held by") ||
		!strings.Contains(all, "ConfigMap demo-ledger") {
		t.Errorf("listed: %s", all)
	}
	said(true)
	for _, o := range []ctrlclient.Object{
		&v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: nodeName(0)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: v1alpha1.LedgerName("demo")}},
	} {
		if err := c.Get(t.Context(), ctrlclient.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%s is there: %v", o.GetName(), err)
		}
	}
}

// ownedBy makes the cluster demo of a uid the owner of a record, as the operator does.
func ownedBy(uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CassandraCluster",
		Name: "demo", UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}}
}
