package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/internal/cli/doctor"
)

// With nothing there, and an API server that does not answer, the doctor says what is wrong and
// what is not known, and ends with an error.
func TestDoctor(t *testing.T) {
	c := to(t, interceptor.Funcs{}, cluster("shop", "orders"))
	c.config = &rest.Config{Host: "http://127.0.0.1:1"} // nobody listens
	d := newDesk()
	if err := d.doctor(t.Context(), c, "", "v1", ""); !errors.Is(err, errWrong) {
		t.Errorf("ends with %v", err)
	}
	for _, line := range []string{"!  Kubernetes ", "✗  operator ", "\nCluster shop/orders\n", "!  agents "} {
		if !strings.Contains(d.out.String(), line) {
			t.Errorf("it does not say %q: %s", line, d.out.String())
		}
	}
	d.out.Reset()
	var findings []doctor.Finding
	if err := d.doctor(t.Context(), c, "orders", "v1", "json"); !errors.Is(err, errWrong) ||
		json.Unmarshal(d.out.Bytes(), &findings) != nil || len(findings) < 15 {
		t.Errorf("%v: %s", err, d.out.String())
	}
	for output, name := range map[string]string{"wide": "orders", "": "carts"} {
		if err := d.doctor(t.Context(), c, name, "v1", output); err == nil || errors.Is(err, errWrong) {
			t.Errorf("--output %q of %s: %v", output, name, err)
		}
	}
}

// What is found is a line, and does not steer a terminal.
func TestDiagnosis(t *testing.T) {
	got := diagnosis([]doctor.Finding{
		{Check: "operator", Result: doctor.Good, Found: "helenus-b leads"},
		{Check: "zones", Cluster: "shop/orders", Result: doctor.Wrong, Found: "no host\x1b[2J in a", Help: "label the hosts"},
		{Check: "clocks", Cluster: "shop/orders", Result: doctor.Warning, Found: "not known"},
	})
	want := "✓  operator  helenus-b leads\n\nCluster shop/orders\n" +
		"✗  zones   no host [2J in a: label the hosts\n!  clocks  not known\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
