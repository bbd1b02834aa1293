package operator

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/observe"
)

var orders = types.NamespacedName{Namespace: "shop", Name: "orders"}

// onlyReads fails the test at any write.
func onlyReads(t *testing.T) interceptor.Funcs {
	wrote := func(verb string, object client.Object) error {
		t.Errorf("inspection wrote: %s %T %s", verb, object, object.GetName())
		return errors.New("inspection must not write")
	}
	return interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return wrote("create", o)
		},
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
			return wrote("update", o)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return wrote("delete", o)
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch,
			_ ...client.PatchOption) error {
			return wrote("patch", o)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch,
			_ ...client.SubResourcePatchOption) error {
			return wrote("patch status", o)
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, o client.Object,
			_ ...client.SubResourceUpdateOption) error {
			return wrote("update status", o)
		},
	}
}

func reading(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(onlyReads(t)).Build()
}

func reconciler(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	c := reading(t, objects...)
	return &Reconciler{
		Reader: &observe.Reader{Cache: c, Live: c, Agents: &observe.Agents{},
			Install: facts.Install{Version: "v1", AgentImage: "agent"}, Now: at},
		Status: c,
		Now:    at,
		memories: memories{
			all: map[types.NamespacedName]*memory{orders: {running: make(chan struct{}, 1)}},
		},
	}
}

func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func someCluster() *v1alpha1.CassandraCluster {
	return &v1alpha1.CassandraCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: orders.Namespace, Name: orders.Name, UID: "c-1", Generation: 3},
		Spec: v1alpha1.CassandraClusterSpec{
			Version:     "5.0.6",
			Datacenters: []v1alpha1.Datacenter{{Name: "dc1", Racks: []v1alpha1.Rack{{Name: "r1"}}}},
		},
	}
}

func TestInspectDecidesAndWritesNothing(t *testing.T) {
	r := reconciler(t, someCluster())
	got, err := r.inspect(t.Context(), orders, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	if got.Snapshot.Cluster != "orders" || got.Snapshot.UID != "c-1" || got.Snapshot.Generation != 3 ||
		!got.ObservedAt.Time.Equal(at()) || got.Operator.Version != "v1" {
		t.Errorf("snapshot %+v at %s", got.Snapshot, got.ObservedAt)
	}
	// A cluster that nobody has looked at yet: there is much to write, and all of it only said.
	if len(got.Plan.Steps) == 0 || len(got.Plan.Writes) == 0 {
		t.Errorf("plan %+v", got.Plan)
	}
	for _, w := range got.Plan.Writes {
		if w.Text == "" || w.Verb == "" {
			t.Errorf("write %+v says nothing", w)
		}
	}
	if m := r.known(orders); m.line != "" || !m.rest.IsZero() {
		t.Error("the passes of the cluster were disturbed")
	}
}

func TestInspectWhatIsNotThere(t *testing.T) {
	r := reconciler(t)
	if _, err := r.inspect(t.Context(), types.NamespacedName{Namespace: "shop", Name: "made-up"}, nil, at); !errors.Is(err,
		inspect.ErrNoCluster) {
		t.Errorf("a name that somebody thought of: %v", err)
	}
	if len(r.all) != 1 {
		t.Error("it is remembered")
	}
	if _, err := r.inspect(t.Context(), orders, nil, at); !errors.Is(err, inspect.ErrNoCluster) {
		t.Errorf("a cluster that is gone: %v", err)
	}
}

// What the operator itself wrote last must be visible first: a plan without it would say that all
// of it is still to do.
func TestInspectBehind(t *testing.T) {
	r := reconciler(t, someCluster())
	r.known(orders).store.Wrote(consistency.Key{Kind: "CassandraCluster", Namespace: "shop", Name: "orders"}, "c-1",
		"4711000")
	if _, err := r.inspect(t.Context(), orders, nil, at); !errors.Is(err, inspect.ErrNotNow) {
		t.Errorf("got %v", err)
	}
}

func TestInspectWaitsForThePass(t *testing.T) {
	r := reconciler(t, someCluster())
	m := r.known(orders)
	m.running <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.inspect(ctx, orders, nil, at)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, inspect.ErrNotNow) {
		t.Errorf("a pass that does not end: %v", err)
	}
	<-m.running
	if _, err := r.inspect(t.Context(), orders, nil, at); err != nil {
		t.Errorf("after the pass: %v", err)
	}
	// Nothing is left behind that holds the cluster.
	m.running <- struct{}{} // that it can be taken is the test
}

// A spec that somebody asks about is judged, and no more: the cluster keeps its own.
func TestInspectJudgesASpec(t *testing.T) {
	c := someCluster()
	r := reconciler(t, c)
	spec := c.Spec.DeepCopy()
	spec.Node = &v1alpha1.NodeTemplate{NodeSettings: v1alpha1.NodeSettings{
		CassandraYaml: v1alpha1.Settings{"concurent_reads": {Raw: []byte("16")}},
	}}
	got, err := r.inspect(t.Context(), orders, spec, at)
	if err != nil || got.Plan.Stalled == nil || got.Plan.Stalled.Reason != v1alpha1.ReasonUnknownSetting {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = r.inspect(t.Context(), orders, nil, at); err != nil || got.Plan.Stalled != nil &&
		got.Plan.Stalled.Reason == v1alpha1.ReasonUnknownSetting {
		t.Errorf("the spec was kept: %+v, %v", got, err)
	}
}

func TestReplicasOfAClusterWithoutARing(t *testing.T) {
	r := reconciler(t, someCluster())
	if _, err := r.replicas(t.Context(), orders, "shop", nil); !errors.Is(err, inspect.ErrNotNow) ||
		!strings.Contains(err.Error(), "no ledger of a formed ring") {
		t.Errorf("got %v", err)
	}
}

// Those who watch a cluster are shown what a pass finds; nothing is kept, or written, for nobody.
func TestWhatIsWatchedIsShown(t *testing.T) {
	r := reconciler(t, someCluster())
	r.Board = &inspect.Board{}
	if err := r.look(t.Context(), orders); err != nil || r.Board.Watched(orders) {
		t.Errorf("shown to nobody: %v", err)
	}
	defer r.Board.Watch(orders)()
	if err := r.look(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	text, seen, changed := r.Board.Read(orders)
	view := &inspectapi.View{}
	if err := json.Unmarshal(text, view); err != nil || view.Cluster != "orders" || view.Wanted != "5.0.6" ||
		len(view.Plan.Steps) == 0 || !seen.Equal(at()) {
		t.Errorf("shown %s at %s, %v", text, seen, err)
	}
	if err := r.look(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Error("nothing has changed")
	default:
	}
}

// A pass shows the status that it has written, and that the cluster is gone.
func TestAPassIsShown(t *testing.T) {
	c := newClockwork(t)
	c.Board = &inspect.Board{}
	defer c.Board.Watch(orders)()
	c.pauses(t, 1)
	view := &inspectapi.View{}
	if text, _, _ := c.Board.Read(orders); json.Unmarshal(text, view) != nil || len(view.Status.Conditions) == 0 {
		t.Errorf("shown %s", text)
	}
	c.Reader.Cache = reading(t)
	c.pauses(t, 1)
	if text, _, _ := c.Board.Read(orders); text != nil {
		t.Errorf("a cluster that is gone is shown: %s", text)
	}
}

func TestTheFleetIsWhatIsWatched(t *testing.T) {
	other := someCluster()
	other.Namespace, other.UID = "bank", "c-2"
	c := reading(t, someCluster(), other)
	for namespace, want := range map[string]string{"": "bank shop", "shop": "shop", "none": ""} {
		all, err := fleet(t.Context(), c, namespace)
		var got []string
		for _, b := range all {
			got = append(got, b.Namespace)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("namespace %q: %v, %v", namespace, got, err)
		}
	}
}
