package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/installation"
)

// What is compared with the manifest, asked and tried is what an API server has and says: here one
// that lacks a definition, has changed a policy, allows all but a verb, and refuses nothing.
func TestLook(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := sound().Clusters[0].CassandraCluster
	cluster.UID = "c-1"
	own := metav1.ObjectMeta{Namespace: "shop", Name: "orders-dc1-r1-0", Labels: map[string]string{
		v1alpha1.LabelCluster: "orders", v1alpha1.LabelClusterUID: "c-1", discoveryv1.LabelServiceName: "orders"}}
	objects := []client.Object{&corev1.Pod{ObjectMeta: own}, &corev1.Secret{ObjectMeta: own},
		&discoveryv1.EndpointSlice{ObjectMeta: own, Endpoints: []discoveryv1.Endpoint{
			{TargetRef: &corev1.ObjectReference{Name: own.Name}}}}}
	wanted, err := installation.Manifest("ops")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range wanted {
		if o.GetName() == "helenus-settings" && o.GetKind() == "ValidatingAdmissionPolicy" {
			o = o.DeepCopy()
			_ = unstructured.SetNestedField(o.Object, "Ignore", "spec", "failurePolicy")
		}
		if o.GetName() != "cassandratasks.helenus.io" && (o.GetNamespace() == "" || o.GetNamespace() == "ops") {
			objects = append(objects, o)
		}
	}
	var people, asked []string
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			switch review := object.(type) {
			case *authenticationv1.SelfSubjectReview:
				review.Status.UserInfo.Groups = []string{"admins"}
				return nil
			case *authorizationv1.SubjectAccessReview:
				a := review.Spec.ResourceAttributes
				asked = append(asked, fmt.Sprint(review.Spec.User, " ", a.Verb, " ", a.Resource, "/", a.Subresource, " ",
					a.Namespace))
				review.Status.Allowed = a.Verb != "delete" || a.Resource != "pods"
				return nil
			}
			if options := (&client.CreateOptions{}).ApplyOptions(o); len(options.DryRun) == 0 {
				t.Errorf("%T is no dry run", object)
			}
			return c.Create(ctx, object, o...)
		},
	}).Build()
	f, err := Look(t.Context(), []v1alpha1.CassandraCluster{*cluster}, Sources{
		Client: c, OperatorNamespace: "ops", Namespace: "shop", Plugin: "dev", Now: now,
		As: func(user string, groups []string) (client.Client, error) {
			people = append(people, user+" "+strings.Join(groups, ","))
			return c, nil
		},
		Kubernetes: func() (string, error) { return "v1.35.4", nil },
		Inspect: func(context.Context, string) (*inspectapi.Inspection, error) {
			return nil, errors.New("it does not answer")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	says := map[string]string{}
	for _, is := range Judge(f) {
		says[is.Check] = string(is.Result) + " " + is.Found
	}
	for check, words := range map[string]string{
		"Kubernetes": "Good v1.35.4", "versions": "Good plugin and operator dev",
		"definitions": "Wrong cassandratasks.helenus.io: missing",
		"policies":    "Wrong helenus-settings: not as in this release",
		"rights":      "Wrong system:serviceaccount:ops:helenus may not delete pods",
		"operator":    "Warning 0 of 2 replicas ready", "agents": "Warning not known: it does not answer",
		"policy helenus-agent": "Wrong a write", "policy helenus-node-record": "Wrong a write",
		"policy helenus-node-status": "Warning not tried", "policy helenus-settings": "Wrong a write",
		"zones": "Wrong no host", "DNS": "Good Service orders leads to 1 pod", "certificates": "Good 1 Secret",
	} {
		if !strings.HasPrefix(says[check], words) {
			t.Errorf("%s: %q, want %q", check, says[check], words)
		}
	}
	want := []string{"system:serviceaccount:shop:helenus-doctor-helenus-agent admins",
		"system:serviceaccount:ops:helenus admins", "system:serviceaccount:ops:helenus admins"}
	if !slices.Equal(people, want) {
		t.Errorf("tried as %q", people)
	}
	for _, right := range []string{"patch pods/resize ", "get storageclasses/ ", "update leases/ ops"} {
		if !slices.Contains(asked, "system:serviceaccount:ops:helenus "+right) {
			t.Errorf("it does not ask for %q: %q", right, asked)
		}
	}
	// Where it watches some namespaces, its rights are asked for there.
	asked = nil
	operator := &Sources{Client: c, OperatorNamespace: "ops"}
	if _, err := installation.AskFor(t.Context(), wanted, []string{"shop", "bank"}, operator.may); err != nil ||
		!slices.Contains(asked, "system:serviceaccount:ops:helenus get secrets/ bank") ||
		slices.Contains(asked, "system:serviceaccount:ops:helenus get secrets/ ") {
		t.Errorf("asked %q (%v)", asked, err)
	}
}
