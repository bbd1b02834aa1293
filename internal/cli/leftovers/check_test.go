package leftovers

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
)

// What runs on and what stays can be left; what waits for the operator, and what clusters that are
// gone have left, speaks against removing it.
func TestCheck(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := func(name string, change func(*v1alpha1.CassandraCluster)) client.Object {
		c := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "now"}}
		c.Finalizers = []string{v1alpha1.FinalizerCluster}
		change(c)
		return c
	}
	runs := cluster("orders", func(c *v1alpha1.CassandraCluster) { c.Status.Nodes = 3 })
	drops := cluster("cache", func(c *v1alpha1.CassandraCluster) {
		c.UID, c.Spec.Volumes.OnClusterDeletion = "cache", v1alpha1.ClaimDelete
	})
	ends := cluster("carts", func(c *v1alpha1.CassandraCluster) {
		now := metav1.Now()
		c.UID, c.DeletionTimestamp = "carts", &now
	})
	own := &corev1.ConfigMap{ObjectMeta: metaOf("orders-seeds", "now")}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metaOf("data-orders-dc1-r1-0", "before")}
	record := &v1alpha1.CassandraNode{ObjectMeta: metaOf("orders-dc1-r1-0", "before")}
	stranger := &corev1.ConfigMap{ObjectMeta: metaOf("stranger", "before")}
	delete(stranger.Labels, v1alpha1.LabelManagedBy)
	for name, c := range map[string]struct {
		objects     []client.Object
		held        bool
		says, never []string
	}{
		"nothing": {says: []string{"Operator: it runs", "Nothing hangs"}, never: []string{"Claims", "Run on"}},
		"rings and claims": {objects: []client.Object{runs, drops, own, claim, stranger},
			says: []string{"shop/orders, 3 nodes: its claims stay",
				"shop/cache, 0 nodes: its claims, and what is on them, go",
				"shop/data-orders-dc1-r1-0", "Nothing hangs"}, never: []string{"Left by", "stranger"}},
		"one is being deleted": {objects: []client.Object{runs, ends}, held: true,
			says:  []string{"Hang without", "shop/carts, 0 nodes: it is being deleted"},
			never: []string{"Nothing hangs"}},
		"leftovers": {objects: []client.Object{runs, record, own}, held: true,
			says:  []string{"shop/orders, 1 CassandraNode: kubectl helenus clear-leftovers orders --namespace shop"},
			never: []string{"ConfigMap", "Nothing hangs"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := Check(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build(),
				"it runs", &out)
			if held := errors.Is(err, ErrHeld); held != c.held || err != nil && !held {
				t.Errorf("%v, want held %t", err, c.held)
			}
			for _, words := range c.says {
				if !strings.Contains(out.String(), words) {
					t.Errorf("it does not say %q: %s", words, out.String())
				}
			}
			for _, words := range c.never {
				if strings.Contains(out.String(), words) {
					t.Errorf("it says %q: %s", words, out.String())
				}
			}
		})
	}
}
