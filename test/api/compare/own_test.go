package compare

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// repairers are the loops within a kube-apiserver that look after the addresses and ports of
// services. They cannot be turned off, and write an Event beside a service whose address they do
// not know yet, which happens when they see the service before the address (ClusterIPNotAllocated).
var repairers = []string{"ipallocator-repair-controller", "portallocator-repair-controller"}

// serversOwn says that the real server wrote an object by itself, when it liked.
func serversOwn(u *unstructured.Unstructured) bool {
	by, _, _ := unstructured.NestedString(u.Object, "reportingController")
	return u.GetKind() == "Event" && slices.Contains(repairers, by)
}

// withoutServersOwn is a client of the real server that lists and watches only what clients made.
func withoutServersOwn(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			if l, ok := list.(*unstructured.UnstructuredList); ok {
				l.Items = slices.DeleteFunc(l.Items, func(u unstructured.Unstructured) bool { return serversOwn(&u) })
			}
			return nil
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, options...)
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				u, ok := e.Object.(*unstructured.Unstructured)
				return e, !ok || !serversOwn(u)
			}), nil
		},
	})
}

// TestServersOwnEventsAreNotCompared makes the real server write an Event by itself: it misses the
// address of a service.
func TestServersOwnEventsAreNotCompared(t *testing.T) {
	loadSubjects(t)
	plain, err := client.NewWithWatch(server, client.Options{Scheme: scheme})
	must(t, err)
	c := withoutServersOwn(plain)
	streams := watchAll(t, c)

	p := place{"own-"}
	namespace := p.namespace("a")
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "n0"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	must(t, c.Create(t.Context(), service))
	must(t, c.Delete(t.Context(), &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: service.Spec.ClusterIP}}))
	events := &eventsv1.EventList{}
	must(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			// The loop looks at a service that changes.
			service.Labels = map[string]string{"look": fmt.Sprint(time.Now().UnixNano())}
			if err := plain.Update(ctx, service); err != nil {
				return false, err
			}
			err := plain.List(ctx, events, client.InNamespace(namespace))
			return len(events.Items) > 0, err
		}))

	sentinel := sentinelOf("Event", "own", 0)
	sentinel.SetNamespace(namespace)
	must(t, c.Create(t.Context(), sentinel))
	seen, err := streams.until("Event", "own", p)
	must(t, err)
	if len(seen) != 1 {
		t.Errorf("the watch showed %v, wanted the sentinel alone; the server wrote %s", seen, events.Items[0].Name)
	}
	s := newSide(c, p)
	listed, err := s.list(t.Context(), request{Verb: "list", Kind: "Event", Namespace: "a"})
	must(t, err)
	if len(listed) != 1 {
		t.Errorf("the list has %d events, wanted the sentinel alone", len(listed))
	}
}
