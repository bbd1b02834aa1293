package observe

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/threads"
)

var (
	orders = types.NamespacedName{Namespace: "shop", Name: "orders"}
	first  = "orders-dc1-r1-0"
)

// reader sees in its cache what has the labels of managed objects, as an operator's does, and
// everything at the API server.
func reader(t *testing.T, objects ...client.Object) *Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	size := resource.MustParse("1Gi")
	cluster := &v1alpha1.CassandraCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: orders.Namespace, Name: orders.Name, UID: "now"},
		Spec: v1alpha1.CassandraClusterSpec{Version: "5.0.6",
			Node: &v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{
					Storage: &v1alpha1.Storage{
						Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}},
					},
				},
			}, Datacenters: []v1alpha1.Datacenter{{
				Name: "dc1", NodesPerRack: 1, PlannedReplicationFactor: 1, NumTokens: 4,
				Racks: []v1alpha1.Rack{{Name: "r1"}},
			}}},
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster.DeepCopy())
	for _, o := range objects {
		_, record := o.(*v1alpha1.CassandraNode)
		_, task := o.(*v1alpha1.CassandraTask)
		_, restore := o.(*v1alpha1.CassandraRestore)
		if _, secret := o.(*corev1.Secret); !secret &&
			(record || task || restore || o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy) {
			cached = cached.WithObjects(o.DeepCopyObject().(client.Object))
		}
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, cluster)...).Build()
	return &Reader{
		Cache: cached.Build(), Live: live, Agents: &Agents{Threads: threads.Goroutines{}},
		Install: facts.Install{Version: "v1", AgentImage: "agent"},
		Now:     func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
	}
}

func owner(uid types.UID) render.Owner {
	return render.Owner{Namespace: "shop", Name: "orders", UID: uid}
}

func record(uid types.UID) *v1alpha1.CassandraNode {
	n := render.Record(owner("now"), render.Wanted{Name: first, Datacenter: "dc1", Rack: "r1"},
		[]v1alpha1.ClaimReference{{Volume: "data", Name: v1alpha1.ClaimName("data", first), UID: "claim-1"}}, "")
	n.UID = uid
	return n
}

func claim() *corev1.PersistentVolumeClaim {
	c := render.Claim(owner("now"), record("record-1"), render.Volume{Name: "data"})
	c.UID = "claim-1"
	return c
}

func podOf(record *v1alpha1.CassandraNode) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: record.Name, UID: "pod-1", Labels: render.NodeLabels(owner("now"), record),
		OwnerReferences: render.RecordReference(record),
	}}
}

func withLedger(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	data, err := ledger.Encode(&ledger.Ledger{ClusterUID: "now", Steps: 7})
	if err != nil {
		t.Fatal(err)
	}
	return render.Ledger(owner("now"), data)
}

// without takes labels away; all, if none is named.
func without[T client.Object](o T, labels ...string) T {
	if len(labels) == 0 {
		o.SetLabels(nil)
	}
	for _, l := range labels {
		delete(o.GetLabels(), l)
	}
	return o
}

func disowned[T client.Object](o T) T {
	o.SetOwnerReferences(nil)
	return o
}

func TestWhatIsOursWhateverItsLabelsSay(t *testing.T) {
	watched, of, uid := v1alpha1.LabelManagedBy, v1alpha1.LabelCluster, v1alpha1.LabelClusterUID
	service := func() *corev1.Service { return render.NodesService(owner("now"), nil) }
	authority := func() *corev1.Secret { return render.CertificateSecret(owner("now"), v1alpha1.UseAgent, nil) }
	hasService := func(s *facts.Snapshot) bool { return s.Shared.Services["orders"] != nil }
	hasAuthority := func(s *facts.Snapshot) bool { return s.Shared.Secrets["orders-agent-ca"] != nil }
	node := func(has func(*facts.Node) bool) func(*facts.Snapshot) bool {
		return func(s *facts.Snapshot) bool { n := s.Nodes[first]; return n != nil && has(n) }
	}
	hasPod := node(func(n *facts.Node) bool { return n.Pod != nil && n.Pod.UID == "pod-1" })
	hasClaim := node(func(n *facts.Node) bool { c := n.Claims["data"]; return c != nil && c.Claim.UID == "claim-1" })
	hasRecord := node(func(n *facts.Node) bool { return n.Record != nil })
	hasLedger := func(s *facts.Snapshot) bool { return s.Ledger != nil && s.Ledger.Steps == 7 && s.LedgerProblem == "" }
	stranger := func() *corev1.Service { return disowned(without(service())) }
	before := func() *corev1.Service { return render.NodesService(owner("before"), nil) }
	for name, c := range map[string]struct {
		objects              []client.Object
		has                  func(*facts.Snapshot) bool
		foreign, predecessor string
	}{
		"a service":               {[]client.Object{service()}, hasService, "", ""},
		"one without labels":      {[]client.Object{without(service())}, hasService, "", ""},
		"one that is not watched": {[]client.Object{without(service(), watched)}, hasService, "", ""},
		"one that is not watched, nor owned": {[]client.Object{disowned(without(service(), watched))}, hasService,
			"", ""},
		"one of no cluster by name":        {[]client.Object{without(service(), of)}, hasService, "", ""},
		"one of no cluster by uid":         {[]client.Object{without(service(), uid)}, hasService, "", ""},
		"one of nobody":                    {[]client.Object{stranger()}, nil, "Service/orders", ""},
		"one of an earlier cluster":        {[]client.Object{before()}, nil, "", "Service/orders"},
		"one that an earlier cluster left": {[]client.Object{disowned(before())}, nil, "", "Service/orders"},
		"an authority without labels":      {[]client.Object{without(authority())}, hasAuthority, "", ""},
		"an authority that is not owned":   {[]client.Object{disowned(authority())}, hasAuthority, "", ""},
		"an authority of nobody": {[]client.Object{disowned(without(authority()))}, nil,
			"Secret/orders-agent-ca", ""},
		"a ledger":                      {[]client.Object{withLedger(t)}, hasLedger, "", ""},
		"a ledger without labels":       {[]client.Object{without(withLedger(t))}, hasLedger, "", ""},
		"a ledger of no cluster by uid": {[]client.Object{without(withLedger(t), uid)}, hasLedger, "", ""},
		"a record without labels":       {[]client.Object{without(record("record-1"))}, hasRecord, "", ""},
		"a record that is not owned either": {[]client.Object{disowned(without(record("record-1")))}, hasRecord, "",
			""},
		"a record of no cluster by uid": {[]client.Object{without(record("record-1"), uid)}, hasRecord, "", ""},
		"a pod": {[]client.Object{record("record-1"), podOf(record("record-1"))},
			hasPod, "", ""},
		"a pod without labels": {[]client.Object{record("record-1"),
			without(podOf(record("record-1")))}, hasPod, "", ""},
		"a pod without labels, nor its record": {[]client.Object{without(record("record-1")),
			without(podOf(record("record-1")))}, hasPod, "", ""},
		"a pod without labels of nobody": {[]client.Object{record("record-1"),
			disowned(without(podOf(record("record-1"))))}, nil, "Pod/" + first, ""},
		"a claim": {[]client.Object{record("record-1"), claim()}, hasClaim, "", ""},
		"a claim without labels": {[]client.Object{record("record-1"), without(claim())}, hasClaim, "",
			""},
		"a claim of no node": {[]client.Object{record("record-1"),
			without(claim(), v1alpha1.LabelNode)}, hasClaim, "", ""},
		"a claim of no node that nobody pins": {[]client.Object{without(claim(), v1alpha1.LabelVolume)}, hasClaim, "",
			""},
		"a claim without labels nobody pins": {[]client.Object{without(claim())}, nil,
			"PersistentVolumeClaim/data-" + first, ""},
		"a claim of another uid under its name": {[]client.Object{record("record-1"),
			without(func() *corev1.PersistentVolumeClaim { c := claim(); c.UID = "x"; return c }())}, nil,
			"PersistentVolumeClaim/data-" + first, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := reader(t, c.objects...).Cluster(t.Context(), orders, &consistency.Store{})
			if err != nil {
				t.Fatal(err)
			}
			if c.has != nil && !c.has(s) {
				t.Errorf("it is not in the snapshot: %+v", s)
			}
			if c.has == nil && (hasService(s) || hasAuthority(s) || hasPod(s) || hasClaim(s)) {
				t.Error("it is taken for ours")
			}
			wantNames(t, "foreign", s.Foreign, c.foreign)
			wantNames(t, "predecessor", s.Predecessor, c.predecessor)
		})
	}
}

func wantNames(t *testing.T, what string, got []facts.ObjectName, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].String() != want) {
		t.Errorf("%s %v, want %q", what, got, want)
	}
}

// What we wrote and the cache does not show is waited for; but not for ever, if somebody took the
// labels away by which it would.
func TestItIsWaitedForOurOwnWrites(t *testing.T) {
	written := func(o client.Object, kind string) error {
		r := reader(t)
		if err := r.Live.(client.Client).Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		store := &consistency.Store{}
		store.Wrote(consistency.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, o.GetUID(),
			o.GetResourceVersion())
		_, err := r.Cluster(t.Context(), orders, store)
		return err
	}
	if err := written(render.NodesService(owner("now"), nil), "Service"); !errors.Is(err, ErrBehind) {
		t.Errorf("a service that will be shown: %v", err)
	}
	for name, c := range map[string]struct {
		object client.Object
		kind   string
	}{
		"a service without labels": {without(render.NodesService(owner("now"), nil)), "Service"},
		"a service that is not watched": {without(render.NodesService(owner("now"), nil), v1alpha1.LabelManagedBy),
			"Service"},
		"a claim of no node":             {without(claim(), v1alpha1.LabelNode), "PersistentVolumeClaim"},
		"a certificate without a record": {render.CertificateSecret(owner("now"), v1alpha1.UseAgent, record("record-1")), "Secret"},
	} {
		if err := written(c.object, c.kind); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
