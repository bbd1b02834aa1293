package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// nodetool is run beside Cassandra in the pod of the node, as the arguments say.
func TestNodetoolIsRunBesideCassandra(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		http.Error(w, "you may not exec", http.StatusForbidden)
	}))
	defer server.Close()
	c := &connection{config: &rest.Config{Host: server.URL}, namespace: "shop"}
	executor, err := c.executor("orders-dc1-r1-0", []string{"nodetool", "tablestats", "shop.carts"})
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.StreamWithContext(t.Context(), streamOptions(newDesk().settings)); err == nil {
		t.Error("nobody refused")
	}
	const want = "GET /api/v1/namespaces/shop/pods/orders-dc1-r1-0/exec?command=nodetool&command=tablestats&" +
		"command=shop.carts&container=cassandra&stderr=true&stdout=true"
	if len(asked) == 0 || asked[0] != want {
		t.Errorf("asked %v, want %s", asked, want)
	}
	for _, arguments := range [][]string{{"nodetool"}, {"nodetool", "orders-dc1-r1-0"},
		{"nodetool", "orders-dc1-r1-0", "status"}, {"nodetool", "--", "status"}} {
		root := New("test", newDesk().streams)
		root.SetArgs(arguments)
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "after --") {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}
