package operator

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/internal/inspectapi"
)

// What one replica writes into the Lease leads the others to it.
func TestTheLeaderIsFound(t *testing.T) {
	for pod, want := range map[string]string{"10.0.0.7": "10.0.0.7:8083", "::ffff:10.0.0.7": "10.0.0.7:8083",
		"fd00::": "[fd00::]:8083", "fd00:10:244::5": "[fd00:10:244::5]:8083"} {
		labels, err := Console{Address: ":8083", Hosts: []string{"a.example"}, PodAddress: pod}.labels([]byte("mine"))
		if err != nil {
			t.Fatal(err)
		}
		holder := "helenus-a_1"
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "helenus", Labels: labels},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
		got, err := leader(t.Context(), reading(t, lease), "ops", ":8083")
		if err != nil || got.Address != want || got.Fingerprint != inspectapi.Fingerprint([]byte("mine")) {
			t.Errorf("%s: %+v, %v", pod, got, err)
		}
		holder = ""
		if got, err := leader(t.Context(), reading(t, lease), "ops", ":8083"); err == nil {
			t.Errorf("a Lease of nobody: %+v", got)
		}
	}
	if got, err := leader(t.Context(), reading(t), "ops", ":8083"); err == nil {
		t.Errorf("no Lease: %+v", got)
	}
}

func TestWhatTheConsoleNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		Console
		says string
	}{
		"nothing":    {Console{}, ""},
		"turned off": {Console{Address: "0", PodAddress: "none"}, ""},
		"no host":    {Console{Address: ":8083", PodAddress: "10.0.0.7"}, "--console-hosts is not set"},
		"no address": {Console{Address: ":8083", Hosts: []string{"a.example"}}, "read --pod-address"},
	} {
		labels, err := c.labels([]byte("mine"))
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) ||
			err == nil && len(labels) != 1 {
			t.Errorf("%s: %v, %v", name, labels, err)
		}
	}
}
