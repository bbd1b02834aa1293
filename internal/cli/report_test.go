package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// With the operator down, and an API server that gives no logs, there is a report all the same. A
// file that is there is not written over.
func TestReportWithoutOperator(t *testing.T) {
	d := newDesk()
	c := to(t, interceptor.Funcs{}, cluster("shop", "orders"))
	c.config = &rest.Config{Host: "http://127.0.0.1:1"} // nobody listens
	t.Chdir(t.TempDir())
	const file = "helenus-report-shop-orders-20260301-120000.tar.gz"
	if err := d.report(t.Context(), c, "orders", "", "v0"); err != nil || d.out.String() != file+"\n" {
		t.Fatalf("said %q (%v)", d.out.String(), err)
	}
	before, err := os.ReadFile(file)
	if err != nil || len(before) == 0 {
		t.Fatalf("%d bytes (%v)", len(before), err)
	}
	if err := d.report(t.Context(), c, "orders", file, "v0"); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over another file: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || len(after) != len(before) {
		t.Errorf("the file has %d bytes, had %d (%v)", len(after), len(before), err)
	}
	if err := d.report(t.Context(), c, "carts", "", "v0"); err == nil ||
		!strings.Contains(err.Error(), "no CassandraCluster") {
		t.Errorf("of a cluster that is not there: %v", err)
	}
	if found, err := filepath.Glob("*"); err != nil || len(found) != 1 {
		t.Errorf("files %q (%v)", found, err)
	}
}
