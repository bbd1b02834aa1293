package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cli/doctor"
	"helenus.io/helenus/internal/inspectapi"
)

// TestDoctor: what install.yaml has installed is as the doctor compares it, the operator has its
// rights, and every policy refuses its dry run; for an operator elsewhere they are not.
func TestDoctor(t *testing.T) {
	space := namespace(t)
	serviceAccount(t, space, "default")
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	to := func(config *rest.Config) (ctrlclient.Client, error) {
		return ctrlclient.New(config, ctrlclient.Options{Scheme: scheme})
	}
	c, err := to(server)
	must(t, err)
	operator := dynamicClient(t, as(operatorUser, nil, masters)).Resource(nodes).Namespace(space)
	_, err = operator.Create(t.Context(), base("CassandraNode"), metav1.CreateOptions{})
	must(t, err)
	look := func(operatorNamespace string) map[string]doctor.Finding {
		t.Helper()
		seen, err := doctor.Look(t.Context(), nil, doctor.Sources{
			Client: c, OperatorNamespace: operatorNamespace, Namespace: space, Plugin: "dev", Now: time.Now(),
			As:         func(user string, groups []string) (ctrlclient.Client, error) { return to(as(user, nil, groups...)) },
			Kubernetes: func() (string, error) { return "v1.35.4", nil },
			Inspect: func(context.Context, string) (*inspectapi.Inspection, error) {
				return nil, errors.New("there is no operator")
			},
		})
		must(t, err)
		found := map[string]doctor.Finding{}
		for _, f := range doctor.Judge(seen) {
			found[f.Check] = f
		}
		return found
	}
	checks := []string{"definitions", "rights", "policies", "policy helenus-agent", "policy helenus-cluster",
		"policy helenus-node-record", "policy helenus-node-status", "policy helenus-operator",
		"policy helenus-settings", "versions"}
	here, elsewhere := look("helenus-system"), look("elsewhere")
	for _, check := range checks {
		if f := here[check]; f.Result != doctor.Good {
			t.Errorf("%s: %+v", check, f)
		}
	}
	for check, words := range map[string]string{"rights": "elsewhere:helenus may not ", "policies": "not as in",
		"policy helenus-cluster": "was accepted"} {
		if f := elsewhere[check]; f.Result == doctor.Good || !strings.Contains(f.Found, words) {
			t.Errorf("elsewhere, %s: %+v", check, f)
		}
	}
	list, err := dynamicClient(t, server).Resource(clusters).Namespace(space).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("%d clusters were stored (%v)", len(list.Items), err)
	}
}
