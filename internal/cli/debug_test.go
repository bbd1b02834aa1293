package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

func TestDebug(t *testing.T) {
	const name = "orders-dc1-r1-0"
	node := &v1alpha1.CassandraNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.CassandraNodeSpec{Cluster: v1alpha1.ClusterReference{Name: "orders"}},
	}
	other := v1alpha1.Exception{
		Name: "theirs", Type: v1alpha1.ExceptionDebug, Node: "orders-dc1-r2-0", Reason: "x", Until: metav1.NewTime(now),
	}
	orders := cluster("shop", "orders")
	orders.Spec.Exceptions = []v1alpha1.Exception{other}
	c := to(t, interceptor.Funcs{}, orders, node)
	exceptions := func() []v1alpha1.Exception {
		stored := &v1alpha1.CassandraCluster{}
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(orders), stored); err != nil {
			t.Fatal(err)
		}
		return stored.Spec.Exceptions
	}

	d := newDesk()
	if err := d.debug(t.Context(), c, name, debugging{reason: "corrupt file", length: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	all := exceptions()
	if len(all) != 2 || all[0].Name != "theirs" || all[1].Node != name || all[1].Reason != "corrupt file" ||
		!all[1].Until.Time.Equal(now.Add(2*time.Hour)) {
		t.Errorf("exceptions %+v", all)
	}
	if !strings.Contains(d.out.String(), "node "+name+" stops until") {
		t.Errorf("printed %s", d.out.String())
	}
	err := d.debug(t.Context(), c, name, debugging{reason: "longer", length: 3 * time.Hour})
	if err != nil || len(exceptions()) != 2 {
		t.Errorf("%v, exceptions %+v", err, exceptions())
	}
	if err := d.debug(t.Context(), c, name, debugging{end: true}); err != nil {
		t.Fatal(err)
	}
	if all := exceptions(); len(all) != 1 || all[0].Name != "theirs" {
		t.Errorf("exceptions %+v", all)
	}
	for words, c2 := range map[string]struct {
		node string
		d    debugging
	}{
		"has no exception of type Debug":    {name, debugging{end: true}},
		"say why by --reason":               {name, debugging{length: time.Hour}},
		"--end takes none":                  {name, debugging{end: true, reason: "x"}},
		"want a time of at most 168h":       {name, debugging{reason: "x", length: 169 * time.Hour}},
		`there is no CassandraNode "other"`: {"other", debugging{end: true}},
	} {
		if err := d.debug(t.Context(), c, c2.node, c2.d); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
}
