package act

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

func writer(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Writer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &Writer{Client: c, Live: c, Now: time.Now}
}

func snapshot() *facts.Snapshot {
	return &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: "orders", UID: "uid"}}}
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func confirmed(context.Context) error { return nil }

// An object that was decoded does not carry its kind: the store must know the write under the kind
// that views have.
func TestAWriteIsNotedUnderItsKind(t *testing.T) {
	w, store := writer(t, interceptor.Funcs{}), &consistency.Store{}
	plan := plan.Plan{Writes: []plan.Write{{Verb: plan.Create, Object: service("orders")}}}
	if done := w.Do(t.Context(), snapshot(), plan, confirmed, store); done.Err != nil || done.Done != 1 {
		t.Fatalf("done %+v", done)
	}
	if key := (consistency.Key{Kind: "Service", Namespace: "shop", Name: "orders"}); !store.Pending(key) {
		t.Errorf("the store does not wait for %s", key)
	}
}

func TestAFailedWriteEndsThePassAndARejectedPodDoesNot(t *testing.T) {
	refuse := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object,
		opts ...client.CreateOption) error {
		switch object.GetName() {
		case "rejected":
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, object.GetName(),
				errors.New("exceeded quota"))
		case "broken":
			return apierrors.NewInternalError(errors.New("broken"))
		}
		return c.Create(ctx, object, opts...)
	}}
	w := writer(t, refuse)
	plan := plan.Plan{Writes: []plan.Write{
		{Verb: plan.Create, Object: pod("rejected")}, {Verb: plan.Create, Object: pod("accepted")},
		{Verb: plan.Create, Object: service("broken")}, {Verb: plan.Create, Object: service("never")},
	}}
	done := w.Do(t.Context(), snapshot(), plan, confirmed, &consistency.Store{})
	if done.Done != 2 || done.Err == nil || !apierrors.IsForbidden(errors.Unwrap(firstOf(done.Rejected))) {
		t.Errorf("done %+v, want two writes, the quota as rejection and the third as failure", done)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "never"},
		&corev1.Service{}); !apierrors.IsNotFound(err) {
		t.Error("a write was carried out after one that failed")
	}
}

func firstOf(joined error) error {
	if many, ok := joined.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return joined
}

func TestNothingIsWrittenLiveThatWasNotConfirmed(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	plan := plan.Plan{Writes: []plan.Write{{Verb: plan.Create, Object: service("orders"), Live: true}}}
	changed := errors.New("changed")
	done := w.Do(t.Context(), snapshot(), plan, func(context.Context) error { return changed }, &consistency.Store{})
	if done.Done != 0 || !errors.Is(done.Err, changed) {
		t.Errorf("done %+v, want nothing and the reason", done)
	}
}

func TestADeletionAndAnApplyNeedAUID(t *testing.T) {
	for verb, object := range map[plan.Verb]plan.Object{
		plan.Delete: pod("orders-dc1-r1-0"),
		plan.Apply:  &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: "orders-dc1-r1-0"}},
	} {
		w := writer(t, interceptor.Funcs{}, pod("orders-dc1-r1-0"))
		done := w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: verb,
			Object: object}}}, confirmed, &consistency.Store{})
		if done.Err == nil {
			t.Errorf("%s without a uid was carried out", verb)
		}
	}
}

// A deletion is of the object that was seen, and of its version where that counts.
func TestADeletionNamesWhatWasSeen(t *testing.T) {
	for name, version := range map[string]string{"any version": "", "the version that was seen": "7"} {
		var asked client.DeleteOptions
		w := writer(t, interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object,
			options ...client.DeleteOption) error {
			asked.ApplyOptions(options)
			return nil
		}})
		done := w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: plan.Delete,
			Object: pod("orders-dc1-r1-0"), UID: "seen", ResourceVersion: version}}}, confirmed, &consistency.Store{})
		p := asked.Preconditions
		if done.Err != nil || p == nil || p.UID == nil || *p.UID != "seen" ||
			(p.ResourceVersion == nil) != (version == "") || p.ResourceVersion != nil && *p.ResourceVersion != version {
			t.Errorf("%s: deleted with %+v: %v", name, p, done.Err)
		}
	}
}

// What a record was created with must be able to go: a ticket above all.
func TestWhatARecordWasCreatedWithCanBeTakenAway(t *testing.T) {
	record := &v1alpha1.CassandraNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dc1-r1-0",
			Labels: map[string]string{"somebody": "else"}, Finalizers: []string{"another"}},
		Spec: v1alpha1.CassandraNodeSpec{Join: &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "1/join"}}, Rack: "r1"},
	}
	w, store, s := writer(t, interceptor.Funcs{}), &consistency.Store{}, snapshot()
	create := plan.Plan{Writes: []plan.Write{{Verb: plan.Create, Object: record}}}
	if done := w.Do(t.Context(), s, create, confirmed, store); done.Err != nil {
		t.Fatal(done.Err)
	}
	seen := &v1alpha1.CassandraNode{}
	if err := w.Live.Get(t.Context(), client.ObjectKeyFromObject(record), seen); err != nil {
		t.Fatal(err)
	}
	seen.UID = "record-1" // the fake server gives none
	s.Nodes = map[string]*facts.Node{record.Name: {Name: record.Name, Record: seen}}
	wanted := &v1alpha1.CassandraNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: record.Name, Labels: map[string]string{"ours": "yes"},
			Finalizers: []string{v1alpha1.FinalizerNode}},
		Spec: v1alpha1.CassandraNodeSpec{Member: &v1alpha1.Member{HostID: "host"}, Rack: "r1"},
	}
	change := plan.Plan{Writes: []plan.Write{{Verb: plan.Apply, Object: wanted, UID: seen.UID,
		ResourceVersion: seen.ResourceVersion}}}
	if done := w.Do(t.Context(), s, change, confirmed, store); done.Err != nil {
		t.Fatal(done.Err)
	}
	got := &v1alpha1.CassandraNode{}
	if err := w.Live.Get(t.Context(), client.ObjectKeyFromObject(record), got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Join != nil || got.Spec.Member == nil || got.Spec.Rack != "r1" || len(got.Labels) != 2 ||
		len(got.Finalizers) != 2 {
		t.Errorf("the record is %+v with labels %v and finalizers %v", got.Spec, got.Labels, got.Finalizers)
	}
	change.Writes[0].ResourceVersion = "1"
	if done := w.Do(t.Context(), s, change, confirmed, store); done.Err == nil {
		t.Error("a record was changed in a version that was not seen")
	}
}

// A change has what differs between what was seen and what is to be, and leaves the rest of what is
// there.
func TestAChangeLeavesTheRest(t *testing.T) {
	there := service("orders")
	there.UID, there.Labels = "seen", map[string]string{"team": "shop"}
	there.Spec.Ports = []corev1.ServicePort{{Name: "native", Port: 9042}, {Name: "debug", Port: 4711}}
	there.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	w := writer(t, interceptor.Funcs{}, there)
	seen := there.DeepCopy()
	seen.Spec.SessionAffinity = "" // a field that this release does not know of
	now := seen.DeepCopy()
	now.Labels = map[string]string{"team": "shop", "app": "cassandra"}
	now.Spec.Ports = now.Spec.Ports[:1]
	do := func(write plan.Write) error {
		return w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{write}}, confirmed,
			&consistency.Store{}).Err
	}
	if err := do(plan.Write{Verb: plan.Change, Object: now, Seen: seen, UID: "seen"}); err != nil {
		t.Fatal(err)
	}
	got := &corev1.Service{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(there), got); err != nil {
		t.Fatal(err)
	}
	if len(got.Spec.Ports) != 1 || got.Labels["app"] != "cassandra" || got.Labels["team"] != "shop" ||
		got.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		t.Errorf("%+v %+v", got.ObjectMeta, got.Spec)
	}
	for name, write := range map[string]plan.Write{
		"without a uid":         {Verb: plan.Change, Object: now, Seen: seen},
		"without what was seen": {Verb: plan.Change, Object: now, UID: "seen"},
	} {
		if do(write) == nil {
			t.Errorf("%s: the object was changed", name)
		}
	}
}

func TestAnnotationsOfARecordComeAndGo(t *testing.T) {
	record := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-0", UID: "seen",
		Annotations: map[string]string{"team": "shop"}}}
	w := writer(t, interceptor.Funcs{}, record)
	for _, want := range []map[string]string{{"team": "shop", v1alpha1.AnnotationPodFailures: "{}"}, {"team": "shop"}} {
		have := &v1alpha1.CassandraNode{}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(record), have); err != nil {
			t.Fatal(err)
		}
		changed := have.DeepCopy()
		changed.Annotations = want
		s := snapshot()
		s.Nodes = map[string]*facts.Node{record.Name: {Name: record.Name, Record: have}}
		write := plan.Write{Verb: plan.Apply, Object: changed, UID: have.UID, ResourceVersion: have.ResourceVersion}
		if done := w.Do(t.Context(), s, plan.Plan{Writes: []plan.Write{write}}, confirmed,
			&consistency.Store{}); done.Err != nil {
			t.Fatal(done.Err)
		}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(record), have); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(have.Annotations, want) {
			t.Errorf("annotations %v, want %v", have.Annotations, want)
		}
	}
}
