package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

const ordersText = `apiVersion: helenus.io/v1alpha1
kind: CassandraCluster
metadata: {name: orders}
spec:
  version: 5.0.6
  datacenters: [{name: dc1, racks: [{name: r1}]}]
`

func TestTheClusterOfAFile(t *testing.T) {
	for name, c := range map[string]struct {
		text, name string
		err        string
	}{
		"the only one":        {"kind: Service\nmetadata: {name: orders}\n---\n" + ordersText, "", ""},
		"by its name":         {ordersText + "---\n" + strings.ReplaceAll(ordersText, "orders", "carts"), "orders", ""},
		"one of two":          {ordersText + "---\n" + strings.ReplaceAll(ordersText, "orders", "carts"), "", "orders, carts: name one"},
		"another one":         {ordersText, "carts", `has no CassandraCluster "carts"; it has orders`},
		"none":                {"kind: Service\n", "", "has no CassandraCluster"},
		"a field there isn't": {strings.Replace(ordersText, "version", "release", 1), "", "release"},
		"no YAML":             {"kind: [", "", "read --from"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			d.streams.In = strings.NewReader(c.text)
			file := filepath.Join(t.TempDir(), "orders.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, from := range []string{file, "-"} {
				got, err := d.clusterIn(from, c.name)
				switch {
				case c.err == "" && (err != nil || got.Name != "orders" || got.Spec.Version != "5.0.6"):
					t.Errorf("%s: got %+v, %v", from, got, err)
				case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
					t.Errorf("%s: got %v, want %q", from, err, c.err)
				}
			}
		})
	}
}

// The spec that is judged is the one that the API server would keep, and nothing is written.
func TestAFileIsHeldToTheSchemaWithoutBeingApplied(t *testing.T) {
	d := newDesk()
	d.streams.In = strings.NewReader(ordersText)
	given, err := d.clusterIn("-", "")
	if err != nil {
		t.Fatal(err)
	}
	there := &v1alpha1.CassandraCluster{}
	there.Namespace, there.Name, there.Spec.Version = "shop", "orders", "5.0.4"
	c := to(t, interceptor.Funcs{Update: func(ctx context.Context, next client.WithWatch, object client.Object,
		opts ...client.UpdateOption) error {
		cluster := object.(*v1alpha1.CassandraCluster)
		if cluster.Spec.Version != "5.0.6" || cluster.ResourceVersion == "" {
			t.Errorf("held to the schema is %+v", cluster)
		}
		cluster.Spec.Datacenters[0].NumTokens = 16 // a default
		return next.Update(ctx, object, opts...)
	}}, there)
	spec, err := c.accepted(t.Context(), given, "-")
	if err != nil || spec.Datacenters[0].NumTokens != 16 {
		t.Errorf("got %+v, %v", spec, err)
	}
	if kept, err := c.cluster(t.Context(), "orders"); err != nil || kept.Spec.Version != "5.0.4" {
		t.Errorf("it was applied: %+v, %v", kept, err)
	}
	given.Namespace = "bank"
	if _, err := c.accepted(t.Context(), given, "-"); err == nil || !strings.Contains(err.Error(), "--namespace bank") {
		t.Errorf("got %v", err)
	}
}
