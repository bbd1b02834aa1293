package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

var clusters = schema.GroupResource{Group: "helenus.io", Resource: "cassandraclusters"}

func cluster(namespace, name string) *v1alpha1.CassandraCluster {
	return &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "c-1"}}
}

// failing makes reads of kind fail.
func failing(kind client.Object, err error) interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		object client.Object, o ...client.GetOption) error {
		if fmt.Sprintf("%T", object) == fmt.Sprintf("%T", kind) {
			return err
		}
		return c.Get(ctx, key, object, o...)
	}}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	many := make([]client.Object, 0, 12)
	for i := range 12 {
		many = append(many, cluster("shop", fmt.Sprintf("c%02d", i)))
	}
	kind := v1alpha1.GroupVersion.WithKind("CassandraCluster")
	for name, c := range map[string]struct {
		funcs   interceptor.Funcs
		objects []client.Object
		want    string
	}{
		"none at all": {
			want: `there is no CassandraCluster "orders" in namespace "shop": look into another one by --namespace, or make one by kubectl apply`,
		},
		"others here": {objects: []client.Object{cluster("shop", "carts"), cluster("shop", "basket"),
			cluster("bank", "orders")}, want: `there is no CassandraCluster "orders" in namespace "shop"; there is basket, carts`},
		"others elsewhere": {objects: []client.Object{cluster("bank", "orders")},
			want: `there is no CassandraCluster in namespace "shop"; name another one by --namespace: there is bank/orders`},
		"too many to name": {objects: many, want: "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09, 2 more"},
		"no rights": {funcs: failing(cluster("", ""),
			apierrors.NewForbidden(clusters, "orders", errors.New("no"))),
			want: `you may not read CassandraClusters in namespace "shop": ask its administrator for one of the roles view, edit and admin there`},
		"not logged in": {funcs: failing(cluster("", ""), apierrors.NewUnauthorized("no")),
			want: "the API server does not know you: log in again"},
		"not installed": {funcs: failing(cluster("", ""), &meta.NoKindMatchError{GroupKind: kind.GroupKind()}),
			want: "helenus is not installed in this Kubernetes cluster"},
		"something else": {funcs: failing(cluster("", ""), errors.New("broken pipe")),
			want: "get CassandraCluster orders: broken pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			for command, err := range map[string]error{
				"status": d.status(t.Context(), to(t, c.funcs, c.objects...), "orders"),
				"plan":   d.plan(t.Context(), to(t, c.funcs, c.objects...), "orders", "", nil),
			} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: got %v, want %s", command, err, c.want)
				}
			}
			if d.out.Len() > 0 {
				t.Errorf("printed %s", d.out.String())
			}
		})
	}
}

// A user of one namespace sees the status of his cluster, though he may not look for the operator,
// nor at pods.
func TestStatusWithFewRights(t *testing.T) {
	forbidden := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
		o ...client.ListOption) error {
		if _, pods := list.(*corev1.PodList); pods {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		return c.List(ctx, list, o...)
	}}
	d := newDesk()
	if err := d.status(t.Context(), to(t, forbidden, objectsIn(t, "testdata/status/healthy.yaml")...),
		"orders"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`not known whether it runs: you may not look into namespace "helenus-system"`,
		"orders-dc1-r1-0  dc1/r1  Normal  Yes"} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, d.out.String())
		}
	}
}

func operatorPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "helenus-system", Name: name,
			Labels: map[string]string{"app.kubernetes.io/name": "helenus", "helenus.io/component": "operator"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "operator",
				Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080},
					{Name: "inspect", ContainerPort: 8082}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestWhoIsAsked(t *testing.T) {
	waiting := func(p *corev1.Pod) { p.Status.Conditions = nil }
	portless := func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil }
	lease := objectsIn(t, "testdata/status/healthy.yaml")[8] // held by helenus-b
	old := lease.DeepCopyObject().(*coordinationv1.Lease)
	old.Spec.RenewTime.Time = old.Spec.RenewTime.Add(-time.Hour)
	unlabelled := lease.DeepCopyObject().(client.Object)
	unlabelled.SetLabels(nil)
	for name, c := range map[string]struct {
		objects []client.Object
		err     string
	}{
		"the leader": {objects: []client.Object{operatorPod("helenus-a", nil), operatorPod("helenus-b", nil), lease}},
		"no lease":   {objects: []client.Object{operatorPod("helenus-b", nil)}, err: "NO LEADER"},
		"a leader that is gone": {objects: []client.Object{operatorPod("helenus-a", nil), lease},
			err: "pod helenus-b leads, and is gone"},
		"no pod": {err: `NOT RUNNING, no pod of it is in namespace "helenus-system"`},
		"no pod that is ready": {objects: []client.Object{operatorPod("helenus-a", waiting), lease},
			err: "NOT RUNNING, 0 of 1 pod ready"},
		"a clock that is ahead": {objects: []client.Object{operatorPod("helenus-b", nil), old}},
		"no port": {objects: []client.Object{operatorPod("helenus-b", portless), lease},
			err: `no port named "inspect"`},
		"no fingerprint": {objects: []client.Object{operatorPod("helenus-b", nil), unlabelled},
			err: "did not write label helenus.io/inspect-certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newDesk().leader(t.Context(), to(t, interceptor.Funcs{}, c.objects...))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) ||
					!strings.Contains(err.Error(), "kubectl helenus status works without it") {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			if want := (leader{pod: "helenus-b", port: 8082, fingerprint: "fingerprint-of-helenus-b"}); err != nil ||
				got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}
