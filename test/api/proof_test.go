package api

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/installation"
)

// TestProof: the operator, with its own rights, proves that it has them and that the policies bite;
// it says so where they do not, or are not there, and where it lacks a right.
func TestProof(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	with := func(config *rest.Config) ctrlclient.Client {
		c, err := ctrlclient.New(config, ctrlclient.Options{Scheme: scheme})
		must(t, err)
		return c
	}
	prove := func(c ctrlclient.Client, watched ...string) metav1.Condition {
		t.Helper()
		proof, err := installation.Prove(t.Context(), c, "helenus-system", watched)
		return proof.Condition(time.Now(), err)
	}
	want := func(got metav1.Condition, status metav1.ConditionStatus, reason string) {
		t.Helper()
		if got.Status != status || got.Reason != reason {
			t.Errorf("%+v, want %s %s", got, status, reason)
		}
	}
	own := with(withToken(tokenOf(t, "helenus-system", "helenus", nil)))
	proven := prove(own)
	want(proven, metav1.ConditionTrue, "Proven")
	want(prove(own, namespace(t)), metav1.ConditionTrue, "Proven")
	must(t, installation.WriteStatus(t.Context(), own, "helenus-system", proven))
	must(t, installation.WriteStatus(t.Context(), own, "helenus-system", proven))
	if read, err := installation.ReadStatus(t.Context(), own, "helenus-system"); err != nil ||
		read.Message != proven.Message {
		t.Errorf("read %+v, %v", read, err)
	}

	bindings := dynamicClient(t, server).Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io",
		Version: "v1", Resource: "validatingadmissionpolicybindings"})
	change := func(actions string) {
		_, err := bindings.Patch(t.Context(), "helenus-cluster", types.MergePatchType,
			[]byte(`{"spec":{"validationActions":`+actions+`}}`), metav1.PatchOptions{})
		must(t, err)
	}
	change(`["Audit"]`)
	want(prove(own), metav1.ConditionFalse, "PoliciesMissing")
	change(`["Deny"]`)
	must(t, eventually(t.Context(), "the policy bites again", func(context.Context) (bool, error) {
		return prove(own).Status == metav1.ConditionTrue, nil
	}))

	elsewhere := namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}
	_, err := typedClient(t, server).CoreV1().ServiceAccounts(elsewhere).Create(t.Context(), account,
		metav1.CreateOptions{})
	must(t, err)
	want(prove(with(withToken(tokenOf(t, elsewhere, "nobody", nil)))), metav1.ConditionFalse, "RightsMissing")
}
